/*
 * The table of models: sizes as published, names and shapes as torchvision's, every row on other inputs too.
 */
#include <stddef.h>
#include <stdint.h>

#include <lockstep/models.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "unit/test_main.h"

static ls_graph *build(const char *name, int channels, int side, int classes)
{
	ls_graph *g = NULL;
	ls_model_options o = LS_MODEL_OPTIONS_INIT;
	o.name = name;
	o.channels = channels;
	o.height = o.width = side;
	o.classes = classes;
	if (ls_model_build(&g, &o) != LS_OK)
		fail_msg("%s: %s", name, ls_last_error());
	return g;
}

/* torchvision's counts with 1 input channel and 10 classes (golden/make_names.py prints two of them). */
static void test_parameters(void **state)
{
	static const struct {
		const char *name;
		uint64_t parameters;
	} rows[] = { { "mlp", 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10 },
		     { "cnn", 421642 },
		     { "resnet18", 11175370 },
		     { "resnet34", 21283530 },
		     { "resnet50", 23522250 },
		     { "resnet101", 42514378 },
		     { "resnet152", 58158026 },
		     { "resnet18-cifar", 11172810 }, /* 64 filters of 3x3 in place of 7x7 */
		     { "vit-tiny", 5353738 },
		     { "vit-small", 21324298 },
		     { "vit-base", 85115914 } };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(ls_model_row_at(i)->name, rows[i].name);
		ls_graph *g = build(rows[i].name, 1, 28, 10);
		ls_graph_facts f = ls_graph_describe(g);
		assert_int_equal(f.parameters, rows[i].parameters);
		assert_true(f.flop_per_sample > 0 && f.flop_per_sample <= f.padded_flop_per_sample);
		assert_true(f.gradient_bytes < 4 * f.parameters * 11 / 10);
		ls_graph_free(g);
	}
	assert_true(ls_model_row_at(sizeof(rows) / sizeof(rows[0]))->is_text);
}

static ls_graph *build_text(const char *name, ls_text_model text, int classes)
{
	ls_graph *g = NULL;
	ls_model_options o = { .size = sizeof(ls_model_options), .name = name, .classes = classes, .text = text };
	if (ls_model_build(&g, &o) != LS_OK)
		fail_msg("%s: %s", name, ls_last_error());
	return g;
}

/* As Hugging Face's BertForPreTraining and BertForSequenceClassification count them, words shared with the head once.
 */
static uint64_t bert_parameters(uint64_t layers, uint64_t hidden, uint64_t vocabulary, uint64_t classes)
{
	uint64_t dense = hidden * hidden + hidden, norm = 2 * hidden;
	uint64_t embeddings = (vocabulary + 512 + 2) * hidden + norm;
	uint64_t layer = 4 * dense + norm + (8 * hidden * hidden + 4 * hidden + hidden) + norm;
	uint64_t heads = classes > 0 ? classes * (hidden + 1) : dense + norm + vocabulary + 2 * (hidden + 1);
	return embeddings + layers * layer + dense + heads;
}

static void test_text_parameters(void **state)
{
	static const struct {
		const char *name;
		uint64_t layers, hidden;
	} rows[] = { { "bert-tiny", 2, 128 },   { "bert-mini", 4, 256 },  { "bert-small", 4, 512 },
		     { "bert-medium", 8, 512 }, { "bert-base", 12, 768 }, { "bert-large", 24, 1024 } };
	const ls_text_model pretraining = { .tokens = 128, .masked = 20 }, classifying = { .tokens = 128 };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ls_graph *a = build_text(rows[i].name, pretraining, 2), *b = build_text(rows[i].name, classifying, 5);
		assert_int_equal(ls_graph_describe(a).parameters,
				 bert_parameters(rows[i].layers, rows[i].hidden, 30522, 0));
		assert_int_equal(ls_graph_describe(b).parameters,
				 bert_parameters(rows[i].layers, rows[i].hidden, 30522, 5));
		assert_true(ls_graph_describe(b).flop_per_sample > 0);
		ls_graph_free(a);
		ls_graph_free(b);
	}
	assert_int_equal(bert_parameters(12, 768, 30522, 0), 110106428); /* published of bert-base-uncased */
	assert_int_equal(bert_parameters(12, 768, 30522, 5), 109486085);
	assert_int_equal(bert_parameters(24, 1024, 30522, 0), 336226108);
	ls_graph *t = build_text("transformer", (ls_text_model){ .tokens = 64, .vocabulary = 8000 }, 5);
	uint64_t layer = 4 * (256 * 256 + 256) + 4 * 256 + 8 * 256 * 256 + 1024 + 256;
	assert_int_equal(ls_graph_describe(t).parameters, (8000 + 256) * 256 + 6 * layer + 512 + 5 * 257);
	ls_graph_free(t);
}

/* As Hugging Face's GPT2LMHeadModel counts them, words shared with the head once. */
static void test_gpt_parameters(void **state)
{
	static const struct {
		const char *name;
		uint64_t layers, hidden;
	} rows[] = { { "gpt-nano", 3, 48 },   { "gpt-micro", 4, 128 }, { "gpt-mini", 6, 192 },
		     { "gpt-small", 6, 384 }, { "gpt2", 12, 768 },     { "gpt2-medium", 24, 1024 } };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t h = rows[i].hidden, layer = 12 * h * h + 13 * h;
		ls_graph *g = build_text(rows[i].name, (ls_text_model){ .tokens = 64 }, 0);
		assert_int_equal(ls_graph_describe(g).parameters, (50257 + 1024) * h + rows[i].layers * layer + 2 * h);
		assert_true(g->predicts_next && g->masked_max == 64);
		ls_graph_free(g);
	}
	assert_int_equal((50257 + 1024) * 768 + 12 * (12 * 768 * 768 + 13 * 768) + 2 * 768, 124439808); /* published */
}

/* Its tensors, as Hugging Face's files have them. */
static void test_gpt_names(void **state)
{
	static const struct {
		const char *name;
		int64_t shape[2];
	} rows[] = { { "transformer.wte.weight", { 50257, 48 } },
		     { "transformer.wpe.weight", { 1024, 48 } },
		     { "transformer.h.2.ln_1.weight", { 48 } },
		     { "transformer.h.2.attn.c_attn.weight", { 48, 144 } },
		     { "transformer.h.2.attn.c_attn.bias", { 144 } },
		     { "transformer.h.2.attn.c_proj.weight", { 48, 48 } },
		     { "transformer.h.2.mlp.c_fc.weight", { 48, 192 } },
		     { "transformer.h.2.mlp.c_proj.weight", { 192, 48 } },
		     { "transformer.ln_f.bias", { 48 } } };
	ls_graph *g = build_text("gpt-nano", (ls_text_model){ .tokens = 64 }, 0);
	(void)state;
	assert_int_equal(g->params.count, 2 + 3 * 12 + 2);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const ls_param *found = NULL;
		for (size_t k = 0; k < g->params.count; k++)
			if (strcmp(g->params.rows[k].name, rows[i].name) == 0)
				found = &g->params.rows[k];
		if (!found)
			fail_msg("no %s", rows[i].name);
		assert_int_equal(found->shape[0], rows[i].shape[0]);
		assert_int_equal(found->rank == 2 ? found->shape[1] : 0, rows[i].shape[1]);
	}
	ls_graph_free(g);
}

/* Forward of a token is 2 flop a weight of the layers; training is three times that, and attention's products. */
static void test_text_flop(void **state)
{
	ls_graph *g = build_text("bert-base", (ls_text_model){ .tokens = 128 }, 2);
	double weights = 12 * 12 * 768.0 * 768, tokens = 128, attention = 12 * 12 * tokens * tokens * 768;
	double pooled = 6 * (768.0 * 768 + 2 * 768);
	(void)state;
	assert_true(ls_graph_describe(g).flop_per_sample == 6 * weights * tokens + attention + pooled);
	ls_graph_free(g);
}

static void test_text_mistakes(void **state)
{
	static const struct {
		const char *name;
		ls_text_model text;
		const char *says;
	} rows[] = { { "bert-tiny", { .tokens = 513 }, "positions for 512 tokens" },
		     { "transformer", { .tokens = 64, .positions = 32 }, "positions for 32 tokens" },
		     { "transformer", { .hidden = 256, .heads = 3 }, "3 heads in a width of 256" },
		     { "transformer", { .hidden = 256, .heads = 2 }, "16, 32 or 64 wide" },
		     { "transformer", { .masked = 4 }, "use a bert model" } };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ls_graph *g = NULL;
		ls_model_options o = {
			.size = sizeof(ls_model_options), .name = rows[i].name, .classes = 5, .text = rows[i].text
		};
		assert_int_equal(ls_model_build(&g, &o), LS_EINVALID);
		if (!strstr(ls_last_error(), rows[i].says))
			fail_msg("\"%s\" does not say \"%s\"", ls_last_error(), rows[i].says);
	}
}

/* torchvision publishes 1.82 and 4.09 billion multiply-adds for a forward pass on 224x224x3 with 1000 classes. */
static void test_flop(void **state)
{
	static const struct {
		const char *name;
		double macs;
		uint64_t parameters;
	} rows[] = { { "resnet18", 1.82e9, 11689512 }, { "resnet50", 4.09e9, 25557032 } };
	static const struct {
		const char *name;
		uint64_t parameters;
	} vits[] = { { "vit-tiny", 5717416 }, { "vit-small", 22050664 }, { "vit-base", 86567656 } }; /* as published */
	(void)state;
	for (int i = 0; i < 3; i++) {
		ls_graph *g = build(vits[i].name, 3, 224, 1000);
		assert_int_equal(ls_graph_describe(g).parameters, vits[i].parameters);
		ls_graph_free(g);
	}
	for (int i = 0; i < 2; i++) {
		ls_graph *g = build(rows[i].name, 3, 224, 1000);
		ls_graph_facts f = ls_graph_describe(g);
		double forward = f.padded_flop_per_sample / 2; /* three passes of multiply-adds, the first layer two */
		forward = (forward + 64 * 3 * 49 * 112.0 * 112.0) / 3;
		assert_true(forward > 0.99 * rows[i].macs && forward < 1.01 * rows[i].macs);
		assert_int_equal(f.parameters, rows[i].parameters);
		ls_graph_free(g);
	}
}

/* A parameter as golden/make_names.py writes it. */
static void format_row(const ls_param *p, char *out, size_t size)
{
	int used = snprintf(out, size, "%s ", p->name);
	for (int i = 0; i < p->rank; i++)
		used += snprintf(out + used, size - (size_t)used, i ? "x%lld" : "%lld", (long long)p->shape[i]);
	if (p->rank == 0)
		snprintf(out + used, size - (size_t)used, "scalar");
}

static void check_names(const char *name)
{
	char path[512], line[256], ours[256];
	unsigned long long parameters = 0;
	ls_graph *g = build(name, 1, 28, 10);
	snprintf(path, sizeof(path), "%s/names-%s.txt", LS_GOLDEN_DIR, name);
	FILE *from = fopen(path, "r");
	if (!from)
		fail_msg("cannot open %s", path);
	assert_int_equal(fscanf(from, "# %llu\n", &parameters), 1);
	assert_int_equal(parameters, g->params.trainable);
	for (size_t i = 0; i < g->params.count; i++) {
		assert_non_null(fgets(line, sizeof(line), from));
		line[strcspn(line, "\n")] = '\0';
		format_row(&g->params.rows[i], ours, sizeof(ours));
		assert_string_equal(ours, line);
	}
	assert_null(fgets(line, sizeof(line), from));
	fclose(from);
	ls_graph_free(g);
}

static void test_names(void **state)
{
	(void)state;
	check_names("resnet18");
	check_names("resnet50");
}

static void test_any_input(void **state)
{
	(void)state;
	for (size_t i = 0; ls_model_row_at(i); i++) {
		ls_graph_free(build(ls_model_row_at(i)->name, 3, 32, 100));
		ls_graph_free(build(ls_model_row_at(i)->name, 16, 9, 2));
		ls_graph_free(build(ls_model_row_at(i)->name, 3, 256, 2));
		assert_true(strlen(ls_model_row_at(i)->summary) > 10);
	}
}

static void test_bad_options(void **state)
{
	ls_graph *g = NULL;
	ls_model_options o = LS_MODEL_OPTIONS_INIT;
	(void)state;
	o.name = "resnet81";
	assert_int_not_equal(ls_model_build(&g, &o), LS_OK);
	assert_non_null(strstr(ls_last_error(), "resnet18"));
	o.name = NULL;
	assert_int_not_equal(ls_model_build(&g, &o), LS_OK);
	o.name = "cnn";
	o.height = 1;
	assert_int_not_equal(ls_model_build(&g, &o), LS_OK);
	assert_non_null(strstr(ls_last_error(), "cnn"));
	o.height = 28;
	o.dropout = 1.5f;
	assert_int_not_equal(ls_model_build(&g, &o), LS_OK);
	assert_non_null(strstr(ls_last_error(), "dropout"));
	assert_null(g);
}

TEST_MAIN(test_parameters, test_text_parameters, test_gpt_parameters, test_gpt_names, test_text_flop,
	  test_text_mistakes, test_flop, test_names, test_any_input, test_bad_options)
