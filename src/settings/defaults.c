/*
 * defaults.c - lockstep/bindings.h: the INIT macros of options structs as a table, for languages without macros.
 *
 * A struct of a public header of the core library that has such a macro has a row here (tests/python/test_binding.py
 * compares).
 */
#include <lockstep/bindings.h>
#include <lockstep/data.h>
#include <lockstep/exchange.h>
#include <lockstep/generate.h>
#include <lockstep/hooks.h>
#include <lockstep/launch.h>
#include <lockstep/model.h>
#include <lockstep/models.h>
#include <lockstep/operator.h>
#include <lockstep/predict.h>
#include <lockstep/text.h>
#include <lockstep/train.h>
#include <lockstep/trainer.h>
#include <string.h>

#include "base/status.h"

static const ls_allreduce_options allreduce = LS_ALLREDUCE_OPTIONS_INIT;
static const ls_batch batch = LS_BATCH_INIT;
static const ls_data_get_options data_get = LS_DATA_GET_OPTIONS_INIT;
static const ls_data_make_options data_make = LS_DATA_MAKE_OPTIONS_INIT;
static const ls_data_show_options data_show = LS_DATA_SHOW_OPTIONS_INIT;
static const ls_dataset_options dataset = LS_DATASET_OPTIONS_INIT;
static const ls_elastic_options elastic = LS_ELASTIC_OPTIONS_INIT;
static const ls_eval_options eval = LS_EVAL_OPTIONS_INIT;
static const ls_generate_options generate = LS_GENERATE_OPTIONS_INIT;
static const ls_image_options image = LS_IMAGE_OPTIONS_INIT;
static const ls_launch_options launch = LS_LAUNCH_OPTIONS_INIT;
static const ls_loss loss = LS_LOSS_INIT;
static const ls_model_load_options model_load = LS_MODEL_LOAD_OPTIONS_INIT;
static const ls_model_options model = LS_MODEL_OPTIONS_INIT;
static const ls_operator operator_row = LS_OPERATOR_INIT;
static const ls_operator_check_options operator_check = LS_OPERATOR_CHECK_OPTIONS_INIT;
static const ls_predict_options predict = LS_PREDICT_OPTIONS_INIT;
static const ls_train_hooks train_hooks = LS_TRAIN_HOOKS_INIT;
static const ls_train_options train = LS_TRAIN_OPTIONS_INIT;
static const ls_trainer_options trainer = LS_TRAINER_OPTIONS_INIT;
static const ls_vocab_make_options vocab_make = LS_VOCAB_MAKE_OPTIONS_INIT;

static const struct row {
	const char *type;
	const void *values;
	size_t size;
} rows[] = {
	{ "ls_allreduce_options", &allreduce, sizeof(allreduce) },
	{ "ls_batch", &batch, sizeof(batch) },
	{ "ls_data_get_options", &data_get, sizeof(data_get) },
	{ "ls_data_make_options", &data_make, sizeof(data_make) },
	{ "ls_data_show_options", &data_show, sizeof(data_show) },
	{ "ls_dataset_options", &dataset, sizeof(dataset) },
	{ "ls_elastic_options", &elastic, sizeof(elastic) },
	{ "ls_eval_options", &eval, sizeof(eval) },
	{ "ls_generate_options", &generate, sizeof(generate) },
	{ "ls_image_options", &image, sizeof(image) },
	{ "ls_launch_options", &launch, sizeof(launch) },
	{ "ls_loss", &loss, sizeof(loss) },
	{ "ls_model_load_options", &model_load, sizeof(model_load) },
	{ "ls_model_options", &model, sizeof(model) },
	{ "ls_operator", &operator_row, sizeof(operator_row) },
	{ "ls_operator_check_options", &operator_check, sizeof(operator_check) },
	{ "ls_predict_options", &predict, sizeof(predict) },
	{ "ls_train_hooks", &train_hooks, sizeof(train_hooks) },
	{ "ls_train_options", &train, sizeof(train) },
	{ "ls_trainer_options", &trainer, sizeof(trainer) },
	{ "ls_vocab_make_options", &vocab_make, sizeof(vocab_make) },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

ls_status ls_options_init(const char *type, void *options, size_t size)
{
	if (size < sizeof(size_t))
		return ls_fail(LS_EINVALID, "%s has more than %zu bytes", type, size);
	for (size_t i = 0; i < ROWS; i++) {
		if (strcmp(rows[i].type, type) != 0)
			continue;
		memset(options, 0, size);
		memcpy(options, rows[i].values, size < rows[i].size ? size : rows[i].size);
		memcpy(options, &size, sizeof(size)); /* the first field of all of them */
		return LS_OK;
	}
	return ls_fail(LS_ENOTFOUND, "there is no struct '%s' that has default values", type);
}

const char *ls_options_type_at(size_t i)
{
	return i < ROWS ? rows[i].type : NULL;
}
