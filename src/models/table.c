/*
 * table.c - the table of models: a row here, a function in a file of this folder, and its declaration in family.h.
 */
#include <string.h>

#include "base/names.h"
#include "base/options.h"
#include "graph/task.h"
#include "models/family.h"

static const ls_model_kind kinds[] = {
	{ { "mlp", "three linear layers, 256 and 128 wide", 0, 0, 0, 0 }, ls_model_mlp },
	{ { "cnn", "two 3x3 convolutions of 32 and 64 channels with pooling, a 128-wide layer", 0, 0, 0, 0 },
	  ls_model_cnn },
	{ { "resnet18", "torchvision's ResNet-18: basic blocks, 2-2-2-2", 0, 0, 0, 0 }, ls_model_resnet18 },
	{ { "resnet34", "torchvision's ResNet-34: basic blocks, 3-4-6-3", 0, 0, 0, 0 }, ls_model_resnet34 },
	{ { "resnet50", "torchvision's ResNet-50: bottlenecks, 3-4-6-3", 0, 0, 0, 0 }, ls_model_resnet50 },
	{ { "resnet101", "torchvision's ResNet-101: bottlenecks, 3-4-23-3", 0, 0, 0, 0 }, ls_model_resnet101 },
	{ { "resnet152", "torchvision's ResNet-152: bottlenecks, 3-8-36-3", 0, 0, 0, 0 }, ls_model_resnet152 },
	{ { "resnet18-cifar", "ResNet-18 with a 3x3 stem and no pooling in it, for images of 32x32", 0, 0, 0, 0 },
	  ls_model_resnet18_cifar },
	{ { "vit-tiny", "Vision Transformer, 12 layers, 192 wide, patches of 16x16 or, of small images, 4x4", 0, 0, 0,
	    0 },
	  ls_model_vit_tiny },
	{ { "vit-small", "Vision Transformer, 12 layers, 384 wide", 0, 0, 0, 0 }, ls_model_vit_small },
	{ { "vit-base", "Vision Transformer, 12 layers, 768 wide", 0, 0, 0, 0 }, ls_model_vit_base },
	{ { "transformer", "text classifier: 6 layers, 256 wide, 4 heads by default", 1, 0, 1, 0 },
	  ls_model_transformer },
	{ { "bert-tiny", "BERT, 2 layers, 128 wide: to pretrain on a corpus or to fine-tune", 1, 1, 0, 0 },
	  ls_model_bert_tiny },
	{ { "bert-mini", "BERT, 4 layers, 256 wide", 1, 1, 0, 0 }, ls_model_bert_mini },
	{ { "bert-small", "BERT, 4 layers, 512 wide", 1, 1, 0, 0 }, ls_model_bert_small },
	{ { "bert-medium", "BERT, 8 layers, 512 wide", 1, 1, 0, 0 }, ls_model_bert_medium },
	{ { "bert-base", "BERT, 12 layers, 768 wide", 1, 1, 0, 0 }, ls_model_bert_base },
	{ { "bert-large", "BERT, 24 layers, 1024 wide", 1, 1, 0, 0 }, ls_model_bert_large },
	{ { "gpt-nano", "GPT, 3 layers, 48 wide: the next token of any text", 1, 0, 0, 1 }, ls_model_gpt_nano },
	{ { "gpt-micro", "GPT, 4 layers, 128 wide", 1, 0, 0, 1 }, ls_model_gpt_micro },
	{ { "gpt-mini", "GPT, 6 layers, 192 wide", 1, 0, 0, 1 }, ls_model_gpt_mini },
	{ { "gpt-small", "GPT, 6 layers, 384 wide", 1, 0, 0, 1 }, ls_model_gpt_small },
	{ { "gpt2", "GPT-2, 12 layers, 768 wide, 124 million parameters with its vocabulary", 1, 0, 0, 1 },
	  ls_model_gpt2 },
	{ { "gpt2-medium", "GPT-2 medium, 24 layers, 1024 wide, 355 million parameters", 1, 0, 0, 1 },
	  ls_model_gpt2_medium },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

const ls_model_row *ls_model_row_at(size_t i)
{
	return i < KINDS ? &kinds[i].row : NULL;
}

static const char *name_at(size_t i)
{
	return i < KINDS ? kinds[i].row.name : NULL;
}

const ls_model_row *ls_model_row_of(const char *name)
{
	return ls_model_row_at(ls_name_row(name, name_at));
}

/* Zeros in the options stand for MNIST's shape, or for BERT's and GPT-2's. */
static ls_status take_options(ls_model_options *o, const ls_model_options *options)
{
	LS_TRY(LS_OPTIONS_TAKE(o, options, task, "LS_MODEL_OPTIONS_INIT"));
	if (!ls_options_are_zero(o->text.reserved, sizeof(o->text.reserved)))
		return ls_fail(LS_EINVALID, "options.text.reserved must be 0: start from LS_MODEL_OPTIONS_INIT");
	o->channels = o->channels ? o->channels : 1;
	o->height = o->height ? o->height : 28;
	o->width = o->width ? o->width : 28;
	o->classes = o->classes ? o->classes : 10;
	o->text.tokens = o->text.tokens ? o->text.tokens : 128;
	const ls_model_row *row = ls_model_row_of(o->name);
	if (o->text.vocabulary == 0)
		o->text.vocabulary = row && row->predicts_next ? 50257 : 30522;
	return LS_OK;
}

ls_status ls_model_build(ls_graph **out, const ls_model_options *options)
{
	ls_model_options o = LS_MODEL_OPTIONS_INIT;
	ls_graph *graph = NULL;
	size_t row;

	LS_TRY(take_options(&o, options));
	LS_TRY(ls_name_find("model", o.name, name_at, &row));
	const ls_model_kind *kind = &kinds[row];
	if (o.text.lora < 0 || (o.text.lora > 0 && !kind->row.predicts_next))
		return ls_fail(LS_EINVALID,
			       "options.lora %d: adapters are for gpt models, and have a rank of 1 or more",
			       o.text.lora);
	if (!(o.label_smoothing >= 0 && o.label_smoothing < 1))
		return ls_fail(LS_EINVALID, "options.label_smoothing %g is not in [0, 1)", o.label_smoothing);
	LS_TRY(ls_graph_new(&graph));
	ls_graph_set_task(graph, o.task);
	ls_status status = kind->build(graph, &o);
	if (status == LS_OK && o.label_smoothing > 0)
		status = ls_graph_smooth_labels(graph, o.label_smoothing);
	if (status != LS_OK) {
		ls_graph_free(graph);
		if (kind->row.is_text)
			return ls_fail_context(status, "model %s for samples of %d tokens", o.name, o.text.tokens);
		if (o.height == 1 && o.width == 1 && strcmp(o.name, "mlp") != 0)
			return ls_fail_context(status,
					       "model %s takes images; for rows of %d numbers use options.model mlp",
					       o.name, o.channels);
		return ls_fail_context(status, "model %s for %d channels of %dx%d", o.name, o.channels, o.height,
				       o.width);
	}
	*out = graph;
	return LS_OK;
}
