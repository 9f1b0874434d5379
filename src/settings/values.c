/*
 * values.c - the settings whose values have names, and the table that each has them from.
 *
 * Help, shell completion and the tests of the manual page list these values: none of them has a list of its own.
 */
#include <lockstep/models.h>
#include <lockstep/train.h>
#include <string.h>

#include "data/transforms/transforms.h"
#include "evaluation/test_metrics.h"
#include "exchange/codec.h"
#include "graph/graph.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "settings/model.h"
#include "trainer/layout.h"

/* The function of a table whose rows have a name and a summary. */
#define VALUES(function, row_at)                                                                                       \
	static ls_setting_value function(size_t i)                                                                     \
	{                                                                                                              \
		return row_at(i) ? (ls_setting_value){ row_at(i)->name, row_at(i)->summary }                           \
				 : (ls_setting_value){ NULL, NULL };                                                   \
	}

VALUES(model_at, ls_model_row_at)
VALUES(dataset_at, ls_dataset_row_at)
VALUES(optimizer_at, ls_optimizer_at)
VALUES(schedule_at, ls_schedule_at)
VALUES(strategy_at, ls_strategy_at)
VALUES(test_metric_at, ls_test_metric_at)
VALUES(pin_at, ls_layout_pin_at)
VALUES(share_at, ls_layout_share_at)

static ls_setting_value wire_at(size_t i)
{
	const ls_codec *codec = ls_wire_at(i);
	return codec ? (ls_setting_value){ codec->wire, codec->summary } : (ls_setting_value){ NULL, NULL };
}

/* And lists of them. */
static ls_setting_value augment_at(size_t i)
{
	const ls_transform *row = i > 0 ? ls_transform_at(i - 1) : NULL;

	if (i == 0)
		return (ls_setting_value){ "none", "take images as they are (the default)" };
	return row ? (ls_setting_value){ row->name, row->summary } : (ls_setting_value){ NULL, NULL };
}

/* Other values are folders. */
static ls_setting_value cache_at(size_t i)
{
	static const ls_setting_value values[] = {
		{ "auto", "in the data cache, if half of the free disk space is enough (the default)" },
		{ "off", "decode images in every epoch" },
		{ NULL, NULL },
	};
	return values[i < 2 ? i : 2];
}

/* Other values are lists of numbers. */
static ls_setting_value class_weights_at(size_t i)
{
	static const ls_setting_value values[] = {
		{ "auto", "samples / (classes x samples of the class)" },
		{ "none", "all classes alike (the default)" },
		{ NULL, NULL },
	};
	return values[i < 2 ? i : 2];
}

static ls_setting_value loss_at(size_t i)
{
	return ls_loss_name(i) ? (ls_setting_value){ ls_loss_name(i), ls_loss_summary(i) }
			       : (ls_setting_value){ NULL, NULL };
}

static ls_setting_value task_at(size_t i)
{
	static const ls_setting_value values[] = {
		{ "auto", "by the values of the targets (the default)" },
		{ "classification", "one of several classes" },
		{ "multi-label", "any of several labels, columns of 0 and 1" },
		{ "regression", "numbers" },
		{ NULL, NULL },
	};
	return values[i < 4 ? i : 4];
}

/* bf16-layers is not offered: only runs of earlier versions use it. */
static ls_setting_value precision_at(size_t i)
{
	i += i >= LS_PRECISION_BF16_LAYERS;
	return (ls_setting_value){ ls_precision_name_at(i), ls_precision_summary_at(i) };
}

static ls_setting_value conv_at(size_t i)
{
	return (ls_setting_value){ ls_conv_algorithm_name_at(i), ls_conv_algorithm_summary_at(i) };
}

static const struct {
	const char *setting;
	ls_setting_value (*at)(size_t i); /* no name: past the end */
} families[] = {
	{ "model", model_at },
	{ "data", dataset_at },
	{ "optimizer", optimizer_at },
	{ "schedule", schedule_at },
	{ "strategy", strategy_at },
	{ "wire", wire_at },
	{ "pin", pin_at },
	{ "share", share_at },
	{ "cache", cache_at },
	{ "augment", augment_at },
	{ "task", task_at },
	{ "loss", loss_at },
	{ "class-weights", class_weights_at },
	{ "keep-best", test_metric_at },
	{ "precision", precision_at },
	{ "conv", conv_at },
};

int ls_setting_value_at(const ls_setting *row, size_t i, ls_setting_value *out)
{
	for (size_t k = 0; k < sizeof(families) / sizeof(families[0]); k++)
		if (strcmp(families[k].setting, row->name) == 0) {
			ls_setting_value value = families[k].at(i);
			if (value.name)
				*out = value;
			return value.name != NULL;
		}
	return 0;
}
