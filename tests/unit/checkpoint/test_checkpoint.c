/*
 * Checkpoints that go well, and files that do not fit the model.
 */
#include "support.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/rng.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shape.h"
#include "checkpoint/state.h"
#include "unit/test_main.h"

static ls_status fill_zero(void *context, size_t i, void *data)
{
	const ls_st_tensor *tensor = (const ls_st_tensor *)context + i;
	size_t bytes;
	assert_true(ls_shape_bytes(tensor->dtype, tensor->rank, tensor->shape, &bytes));
	memset(data, 0, bytes);
	return LS_OK;
}

static void round_trip(void **state)
{
	const scratch *s = *state;
	char path[2048], expected[2048];
	model m, again;
	model_init(&m, 4, 1, 3);
	model_init(&again, 4, 1, 3);
	assert_int_equal(model_save(&m, s->path, 250, 2), LS_OK);
	assert_int_equal(ls_ckpt_newest(s->path, path, sizeof(path)), LS_OK);
	assert_string_equal(path, join(expected, s->path, "ckpt/step-000000250"));
	assert_int_equal(ls_ckpt_load(path, &again.content), LS_OK);
	assert_int_equal(model_differences(&again, 250), 0);
	assert_memory_equal(m.params, again.params, m.table.total * sizeof(float));
	assert_memory_equal(&m.content.progress, &again.content.progress, sizeof(m.content.progress));
	char *settings = NULL;
	assert_int_equal(ls_ckpt_settings(path, &settings), LS_OK);
	assert_string_equal(settings, settings_text);
	free(settings);
	model_release(&again);
	model_release(&m);
}

/* A save that fails says what is left: nothing where the run directory is gone, else the earlier ones, if any. */
static void a_failed_save_says_what_is_left(void **state)
{
	const scratch *s = *state;
	char run[2048];
	model m;
	model_init(&m, 4, 1, 3);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(model_save(&m, join(run, s->path, "gone"), 7, 1), LS_EIO);
	assert_non_null(
		strstr(ls_last_error(), "step 7 was not saved (its run directory is gone, with all earlier ones)"));
	assert_int_equal(ls_ckpt_begin(join(run, s->path, "run")), LS_OK);
	for (int saved = 0; saved < 2; saved++) {
		if (saved)
			assert_int_equal(model_save(&m, run, 7, 1), LS_OK);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 16, RLIM_INFINITY }), 0);
		ls_status status = model_save(&m, run, 8, 1);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }), 0);
		assert_int_not_equal(status, LS_OK);
		assert_non_null(strstr(ls_last_error(), saved ? "not saved (earlier ones are untouched)"
							      : "not saved (there is no earlier one)"));
	}
	model_release(&m);
}

static uint64_t mapped_bytes(void)
{
	unsigned long long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu", &pages), 1);
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A checkpoint that cannot be looked at for lack of memory is not damaged: it stays where it is. */
static void no_memory_to_verify(void **state)
{
	const scratch *s = *state;
	char run[2048], name[4096];
	model m;
	const char *sanitizer = getenv("SANITIZER");
	if (sanitizer && (strcmp(sanitizer, "address") == 0 || strcmp(sanitizer, "thread") == 0)) {
		print_message("sanitizers reserve terabytes of address space\n");
		skip();
	}
	model_init(&m, 4, 1, 3);
	assert_int_equal(ls_ckpt_begin(join(run, s->path, "run")), LS_OK);
	assert_int_equal(model_save(&m, run, 7, 1), LS_OK);
	snprintf(name, sizeof(name), "%s/ckpt/step-000000007/model.safetensors", run);
	assert_int_equal(truncate(name, 200 << 20), 0);
	struct rlimit before, limit;
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	limit = (struct rlimit){ mapped_bytes() + (100 << 20), before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	ls_status again = model_save(&m, run, 7, 1), later = model_save(&m, run, 6, 1);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(again, LS_EMEMORY);
	assert_int_equal(later, LS_OK);
	assert_true(ls_path_exists(name));
	assert_int_equal(model_save(&m, run, 7, 1), LS_OK); /* with memory it is seen to be damaged, and set aside */
	snprintf(name, sizeof(name), "%s/ckpt/step-000000007.aside", run);
	assert_true(ls_path_exists(name));
	model_release(&m);
}

/* Invariant 4: other panels and no unreachable taps give the same files, and each loads into the other. */
static void layout_does_not_show(void **state)
{
	const scratch *s = *state;
	char one[2048], two[2048], left[2048], right[2048];
	model m, other;
	model_init(&m, 4, 1, 3);
	model_init(&other, 16, 0, 3);
	assert_int_equal(model_save(&m, join(one, s->path, "one"), 7, 1), LS_EIO); /* a run that was removed stays so */
	assert_false(ls_path_exists(one));
	assert_int_equal(ls_ckpt_begin(one), LS_OK);
	assert_int_equal(ls_ckpt_begin(join(two, s->path, "two")), LS_OK);
	assert_int_equal(model_save(&m, one, 7, 1), LS_OK);
	assert_int_equal(model_save(&other, two, 7, 1), LS_OK);
	static const char *const files[] = { "model.safetensors", "optimizer.safetensors", "state.json" };
	for (int i = 0; i < 3; i++) {
		char name[64];
		snprintf(name, sizeof(name), "ckpt/step-000000007/%s", files[i]);
		assert_same_files(join(left, one, name), join(right, two, name));
	}
	model_fill(&other, 99);
	assert_int_equal(ls_ckpt_load(join(left, one, "ckpt/step-000000007"), &other.content), LS_OK);
	assert_int_equal(model_differences(&other, 7), 0);
	model_release(&other);
	model_release(&m);
}

/* What PyTorch will see: names, shapes, an I64 scalar, metadata; optimizer state for trainable parameters only. */
static void files_as_others_see_them(void **state)
{
	const scratch *s = *state;
	char path[2048];
	ls_st_reader *reader;
	int64_t counter;
	model m;
	model_init(&m, 4, 1, 3);
	assert_int_equal(model_save(&m, s->path, 41, 2), LS_OK);
	assert_int_equal(ls_st_open(&reader, join(path, s->path, "ckpt/step-000000041/model.safetensors")), LS_OK);
	assert_int_equal(ls_st_count(reader), m.table.count);
	for (size_t i = 0; i < m.table.count; i++)
		assert_string_equal(ls_st_at(reader, i)->name, m.rows[i].name);
	const ls_st_tensor *t = ls_st_find(reader, "bn1.num_batches_tracked");
	assert_true(t->dtype == LS_I64 && t->rank == 0 && t->bytes == 8);
	memcpy(&counter, t->data, 8);
	assert_int_equal(counter, 41);
	t = ls_st_find(reader, "layer1.conv.weight");
	assert_true(t->rank == 4 && t->shape[0] == 7 && t->shape[1] == 5 && t->shape[2] == 3 && t->shape[3] == 3);
	for (size_t i = 0; i < t->bytes / 4; i++)
		assert_true(((const float *)t->data)[i] == value_of("layer1.conv.weight", 0, i, 41));
	assert_string_equal(ls_st_metadata(reader, "format"), "pt");
	assert_string_equal(ls_st_metadata(reader, "model"), "tiny");
	assert_string_equal(ls_st_metadata(reader, "lockstep"), ls_version());
	ls_st_close(reader);
	assert_int_equal(ls_st_open(&reader, join(path, s->path, "ckpt/step-000000041/optimizer.safetensors")), LS_OK);
	assert_int_equal(ls_st_count(reader), 2 * 6);
	assert_non_null(ls_st_find(reader, "exp_avg_sq.fc.bias"));
	assert_null(ls_st_find(reader, "exp_avg.bn1.running_mean"));
	ls_st_close(reader);
	model_release(&m);
}

static void no_slots_no_settings_no_name(void **state)
{
	const scratch *s = *state;
	char path[2048];
	char *settings = NULL;
	model m;
	model_init(&m, 4, 1, 3);
	m.content.slots = 0;
	m.content.settings = m.content.model = NULL;
	assert_int_equal(model_save(&m, s->path, 1, 2), LS_OK);
	assert_int_equal(ls_ckpt_newest(s->path, path, sizeof(path)), LS_OK);
	assert_int_equal(ls_ckpt_load(path, &m.content), LS_OK);
	assert_int_equal(ls_ckpt_settings(path, &settings), LS_OK);
	assert_string_equal(settings, "{}");
	free(settings);
	model_release(&m);
}

/* Doubles come back bit for bit, counters up to the largest. */
static void progress_is_exact(void **state)
{
	static const double hard[] = { 0.1,       -0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
				       1.0 / 3.0, 1e22 };
	enum { HARD = sizeof(hard) / sizeof(hard[0]), ALL = HARD + 60 };
	const scratch *s = *state;
	uint64_t seed = 20240611;
	char path[2048];
	join(path, s->path, "state.json");
	print_message("# seed %" PRIu64 "\n", seed);
	ls_rng rng = ls_rng_make(seed, LS_RNG_TEST, 0);
	for (size_t i = 0; i < ALL; i++) {
		ls_ckpt_content content = { .progress = {
						    .step = INT64_MAX, .correct = i, .batches_tracked = INT64_MAX } };
		ls_ckpt_sum sums[LS_CKPT_FILES] = { { 1, UINT64_MAX }, { INT64_MAX, 0 } };
		uint32_t words[4];
		ls_rng_words(rng, 0, i, words);
		memcpy(&content.progress.loss_sum, words, sizeof(double));
		if (i < HARD)
			content.progress.loss_sum = hard[i];
		if (!isfinite(content.progress.loss_sum))
			continue;
		ls_ckpt_state back;
		assert_int_equal(ls_ckpt_state_check(&content), LS_OK);
		assert_int_equal(ls_ckpt_state_write(path, &content, sums), LS_OK);
		if (ls_ckpt_state_read(&back, path) != LS_OK)
			fail_msg("%a: %s", content.progress.loss_sum, ls_last_error());
		assert_memory_equal(&back.progress, &content.progress, sizeof(back.progress));
		assert_memory_equal(back.files, sums, sizeof(sums));
		ls_ckpt_state_release(&back);
	}
}

static void unstorable_content(void **state)
{
	const scratch *s = *state;
	char path[2048];
	model m;
	model_init(&m, 4, 1, 3);
	static const double bad[] = { NAN, INFINITY, -INFINITY };
	for (int i = 0; i < 3; i++) {
		m.content.progress = (ls_ckpt_progress){ .step = 12, .loss_sum = bad[i] };
		assert_int_equal(ls_ckpt_save(s->path, &m.content, 2), LS_ENUMERIC);
		assert_mentions("step 12");
	}
	m.content.progress = (ls_ckpt_progress){ .step = (uint64_t)INT64_MAX + 1 };
	assert_int_equal(ls_ckpt_save(s->path, &m.content, 2), LS_EINVALID);
	assert_mentions("progress.step");
	m.content.progress = (ls_ckpt_progress){ .step = 1 };
	static const char *const settings[] = { "[]", "{", "{\"a\":1,\"a\":2}" };
	for (int i = 0; i < 3; i++) {
		m.content.settings = settings[i];
		assert_int_equal(ls_ckpt_save(s->path, &m.content, 2), LS_EINVALID);
		assert_mentions("settings");
	}
	assert_false(ls_path_exists(join(path, s->path, "ckpt")));
	model_release(&m);
}

/* ---- what does not fit ---- */

static void other_classes(void **state)
{
	const scratch *s = *state;
	char path[2048];
	model m, other;
	model_init(&m, 4, 1, 3);
	model_init(&other, 4, 1, 10);
	model_fill(&other, 5);
	assert_int_equal(model_save(&m, s->path, 1, 2), LS_OK);
	join(path, s->path, "ckpt/step-000000001");
	assert_int_equal(ls_ckpt_load(path, &other.content), LS_EMISMATCH);
	assert_mentions("model.safetensors");
	assert_mentions(
		"'fc.weight' has shape (3, 7), the model needs (10, 7); 'fc.bias' has shape (3), the model needs (10)");
	assert_int_equal(model_differences(&other, 5), 0);
	model_release(&other);
	model_release(&m);
}

static void other_optimizer(void **state)
{
	static const char *const momentum[] = { "momentum_buffer" };
	const scratch *s = *state;
	char path[2048];
	model m;
	model_init(&m, 4, 1, 3);
	assert_int_equal(model_save(&m, s->path, 1, 2), LS_OK);
	m.content.slots = 1;
	m.content.slot_names = momentum;
	m.content.progress.step = 77;
	model_fill(&m, 5);
	assert_int_equal(ls_ckpt_load(join(path, s->path, "ckpt/step-000000001"), &m.content), LS_EMISMATCH);
	assert_mentions("it stores exp_avg, exp_avg_sq for each parameter, this run's stores momentum_buffer");
	assert_int_equal(model_differences(&m, 5), 0);
	assert_int_equal(m.content.progress.step, 77);
	model_release(&m);
}

/* The model's file fits and the optimizer's does not: neither may be loaded. */
static void optimizer_does_not_fit(void **state)
{
	const scratch *s = *state;
	char path[2048];
	model m, frozen;
	model_init(&m, 4, 1, 3);
	model_init(&frozen, 4, 1, 3);
	frozen.rows[1].role = LS_ROLE_BUFFER; /* same name and shape, no state */
	ls_params_lay_out(&frozen.table, 0);
	free(frozen.buffers);
	frozen.content.buffers = frozen.buffers = calloc(frozen.table.buffers, sizeof(float));
	assert_int_equal(model_save(&frozen, s->path, 1, 2), LS_OK);
	model_fill(&m, 5);
	assert_int_equal(ls_ckpt_load(join(path, s->path, "ckpt/step-000000001"), &m.content), LS_EMISMATCH);
	assert_mentions("optimizer.safetensors does not fit this model: 'exp_avg.bn1.weight' (5) is missing; "
			"'exp_avg_sq.bn1.weight' (5) is missing");
	assert_int_equal(model_differences(&m, 5), 0);
	model_release(&frozen);
	model_release(&m);
}

static void many_differences(void **state)
{
	static const ls_st_tensor tensors[] = {
		{ .name = "fc.weight", .dtype = LS_I32, .rank = 2, .shape = { 3, 7 } },
		{ .name = "fc.bias", .dtype = LS_F32, .rank = 2, .shape = { 3, 1 } },
		{ .name = "stranger", .dtype = LS_F32 },
		{ .name = "old.num_batches_tracked", .dtype = LS_I64 },
	};
	const scratch *s = *state;
	char path[2048];
	int64_t counter = -5;
	model m;
	model_init(&m, 4, 1, 3);
	model_fill(&m, 5);
	join(path, s->path, "odd.safetensors");
	assert_int_equal(ls_st_write(path, tensors, 4, NULL, 0, fill_zero, (void *)tensors, NULL), LS_OK);
	assert_int_equal(ls_ckpt_load_weights(path, &m.table, NULL, m.params, m.buffers, &counter), LS_EMISMATCH);
	/* conv1, four of bn1 and layer1 are missing, fc.weight, fc.bias and the stranger are wrong; counters may be
	 * absent */
	assert_mentions(
		"'conv1.weight' (5, 3, 3, 3) is missing; 'bn1.weight' (5) is missing; 'bn1.bias' (5) is missing; "
		"and 6 more (9 in all)");
	assert_int_equal(counter, -5);
	assert_int_equal(model_differences(&m, 5), 0);
	model_release(&m);
}

/* A table of one vector, so that each difference is the first to be shown. */
static ls_status load_one(const scratch *s, const ls_st_tensor *tensors, size_t count, float *out, int64_t *counter)
{
	char path[2048];
	model m = { .table = { .rows = m.rows, .capacity = ROWS_MAX } };
	add_row(&m, "w", LS_ROLE_BIAS, 1, (int64_t[]){ 2 }, 4);
	add_row(&m, "num_batches_tracked", LS_ROLE_COUNTER, 0, NULL, 4);
	ls_params_lay_out(&m.table, 0);
	join(path, s->path, "one.safetensors");
	assert_int_equal(ls_st_write(path, tensors, count, NULL, 0, fill_zero, (void *)tensors, NULL), LS_OK);
	return ls_ckpt_load_weights(path, &m.table, NULL, out, NULL, counter);
}

static void each_difference(void **state)
{
	static const struct {
		ls_st_tensor tensors[2];
		const char *expect; /* NULL: it fits */
	} cases[] = {
		{ { { .name = "w", .dtype = LS_F32, .rank = 1, .shape = { 2 } }, { .name = "x", .dtype = LS_U8 } },
		  "'x' () is not in the model" },
		{ { { .name = "w", .dtype = LS_U8, .rank = 1, .shape = { 2 } },
		    { .name = "y.num_batches_tracked", .dtype = LS_I64 } },
		  "'w' is of integer type U8" },
		{ { { .name = "w", .dtype = LS_F32, .rank = 1, .shape = { 2 } },
		    { .name = "num_batches_tracked", .dtype = LS_F32 } },
		  "'num_batches_tracked' must be one I64 number >= 0, it is F32 ()" },
		{ { { .name = "w", .dtype = LS_F32, .rank = 0 }, { .name = "num_batches_tracked", .dtype = LS_I64 } },
		  "'w' has shape (), the model needs (2)" },
		{ { { .name = "w", .dtype = LS_F16, .rank = 1, .shape = { 2 } },
		    { .name = "num_batches_tracked", .dtype = LS_I64, .rank = 1, .shape = { 1 } } },
		  NULL },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		float out[16] = { 1, 1 };
		int64_t counter = -1;
		ls_status status = load_one(*state, cases[i].tensors, 2, out, &counter);
		assert_int_equal(status, cases[i].expect ? LS_EMISMATCH : LS_OK);
		if (cases[i].expect)
			assert_mentions(cases[i].expect);
		assert_true(out[0] == (cases[i].expect ? 1 : 0));
		assert_int_equal(counter, cases[i].expect ? -1 : 0);
	}
}

/* ---- weights made elsewhere ---- */

static ls_status fill_foreign(void *context, size_t i, void *data)
{
	static const double deep[] = { 1.5, -2.25 };
	static const uint16_t halves[] = { 0x3c00, 0xc000 }, brains[] = { 0x3f80, 0xc000 }; /* 1, -2 */
	const ls_st_tensor *tensors = context;
	int64_t counter = 17;
	const void *source = tensors[i].dtype == LS_F64   ? (const void *)deep
			     : tensors[i].dtype == LS_F16 ? (const void *)halves
			     : tensors[i].dtype == LS_I64 ? (const void *)&counter
							  : (const void *)brains;
	memcpy(data, source, tensors[i].dtype == LS_F64 ? 16 : tensors[i].dtype == LS_I64 ? 8 : 4);
	return LS_OK;
}

static void foreign_weights(void **state)
{
	static const ls_st_tensor tensors[] = {
		{ .name = "c", .dtype = LS_BF16, .rank = 1, .shape = { 2 } },
		{ .name = "b", .dtype = LS_F16, .rank = 1, .shape = { 2 } },
		{ .name = "a", .dtype = LS_F64, .rank = 1, .shape = { 2 } },
		{ .name = "bn.num_batches_tracked", .dtype = LS_I64 },
	};
	const scratch *s = *state;
	char path[2048];
	float params[64] = { 0 }, buffers[16] = { 0 };
	int64_t counter = 0;
	model m = { .table = { .rows = m.rows, .capacity = ROWS_MAX } };
	add_row(&m, "a", LS_ROLE_WEIGHT, 1, (int64_t[]){ 2 }, 4);
	add_row(&m, "b", LS_ROLE_BUFFER, 1, (int64_t[]){ 2 }, 4);
	add_row(&m, "c", LS_ROLE_BIAS, 1, (int64_t[]){ 2 }, 4);
	add_row(&m, "bn.num_batches_tracked", LS_ROLE_COUNTER, 0, NULL, 4);
	ls_params_lay_out(&m.table, 0);
	join(path, s->path, "foreign.safetensors");
	assert_int_equal(ls_st_write(path, tensors, 4, NULL, 0, fill_foreign, (void *)tensors, NULL), LS_OK);
	assert_int_equal(ls_ckpt_load_weights(path, &m.table, NULL, params, buffers, &counter), LS_OK);
	assert_int_equal(counter, 17);
	assert_true(params[m.rows[0].offset] == 1.5f && params[m.rows[0].offset + 1] == -2.25f);
	assert_true(buffers[0] == 1.0f && buffers[1] == -2.0f);
	assert_true(params[m.rows[2].offset] == 1.0f && params[m.rows[2].offset + 1] == -2.0f);
	assert_int_equal(ls_ckpt_load_weights(path, &m.table, NULL, params, buffers, NULL), LS_OK);
}

/* Save a model of which one value, in the array given (0: parameters and buffers), is not finite, and load it. */
static ls_status load_with(const scratch *s, const char *name, int array, float value, size_t *changed)
{
	char path[2048];
	float logical[1024];
	model m, other;
	size_t r = 0;
	model_init(&m, 4, 1, 3);
	model_init(&other, 4, 1, 3);
	model_fill(&m, 3);
	model_fill(&other, 5);
	while (strcmp(m.rows[r].name, name) != 0)
		r++;
	ls_store_kind kind = array ? LS_STORE_REACHABLE : LS_STORE_WHOLE;
	float *store = array_of(&m, &m.rows[r], array);
	ls_param_export(&m.rows[r], kind, store, logical);
	logical[1] = value;
	ls_param_import(&m.rows[r], kind, logical, store);
	m.content.progress.step = 7;
	assert_int_equal(ls_ckpt_save(s->path, &m.content, 1), LS_OK);
	assert_int_equal(ls_ckpt_newest(s->path, path, sizeof(path)), LS_OK);
	ls_status status = ls_ckpt_load(path, &other.content);
	*changed = model_differences(&other, 5);
	model_release(&other);
	model_release(&m);
	assert_int_equal(ls_path_remove_tree(join(path, s->path, "ckpt")), LS_OK);
	return status;
}

static void values_that_are_not_finite(void **state)
{
	static const struct {
		const char *name;
		int array;
		float value;
		const char *expect; /* NULL: it loads */
	} cases[] = {
		{ "fc.bias", 0, NAN, "model.safetensors: element 1 of tensor 'fc.bias' is NaN" },
		{ "conv1.weight", 0, -INFINITY, "element 1 of tensor 'conv1.weight' is infinite" },
		{ "bn1.running_var", 0, INFINITY, "element 1 of tensor 'bn1.running_var' is infinite" },
		{ "fc.weight", 1, NAN, "optimizer.safetensors: element 1 of tensor 'exp_avg.fc.weight' is NaN" },
		{ "fc.weight", 2, INFINITY, NULL }, /* the square of a large gradient: its update is 0 */
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t changed = 0;
		ls_status status = load_with(*state, cases[i].name, cases[i].array, cases[i].value, &changed);
		assert_int_equal(status, cases[i].expect ? LS_ENUMERIC : LS_OK);
		if (!cases[i].expect)
			continue;
		assert_mentions(cases[i].expect);
		assert_int_equal(changed, 0); /* found before anything is taken */
	}
}

static ls_status fill_special(void *context, size_t i, void *data)
{
	static const double deep[] = { 1, 1e300 };
	static const uint16_t halves[] = { 0x3c00, 0x7c00 }, brains[] = { 0x3f80, 0x7fc0 }; /* 1, then inf and NaN */
	const ls_st_tensor *tensor = (const ls_st_tensor *)context + i;
	const void *source = tensor->dtype == LS_F64   ? (const void *)deep
			     : tensor->dtype == LS_F16 ? (const void *)halves
						       : (const void *)brains;
	memcpy(data, source, tensor->dtype == LS_F64 ? 16 : 4);
	return LS_OK;
}

/* In any type; a double that no float can hold becomes infinite. */
static void foreign_values_that_are_not_finite(void **state)
{
	static const ls_dtype types[] = { LS_F64, LS_F16, LS_BF16 };
	const scratch *s = *state;
	char path[2048], expect[64];
	model m = { .table = { .rows = m.rows, .capacity = ROWS_MAX } };
	add_row(&m, "w", LS_ROLE_BIAS, 1, (int64_t[]){ 2 }, 4);
	ls_params_lay_out(&m.table, 0);
	join(path, s->path, "w.safetensors");
	for (size_t i = 0; i < 3; i++) {
		float out[16] = { 7 };
		ls_st_tensor tensor = { .name = "w", .dtype = types[i], .rank = 1, .shape = { 2 } };
		assert_int_equal(ls_st_write(path, &tensor, 1, NULL, 0, fill_special, &tensor, NULL), LS_OK);
		assert_int_equal(ls_ckpt_load_weights(path, &m.table, NULL, out, NULL, NULL), LS_ENUMERIC);
		snprintf(expect, sizeof(expect), "w.safetensors: element 1 of tensor 'w' is %s",
			 types[i] == LS_BF16 ? "NaN" : "infinite");
		assert_mentions(expect);
		assert_true(out[0] == 7);
	}
}

/* ---- state.json ---- */

/* Replace a key of a good state.json; the message must be about that key, not about the checksum. */
static void damaged_state(void **state)
{
	static const struct {
		const char *object, *key, *value, *expect; /* value NULL: the key is removed */
	} cases[] = {
		{ NULL, "format", NULL, "no \"format\"" },
		{ NULL, "format", "0", "format 0, this version reads format 1" },
		{ NULL, "progress", "[]", "\"progress\" is missing" },
		{ "progress", "step", "-1", "progress.step" },
		{ "progress", "correct", "1.0", "progress.correct" },
		{ "progress", "loss_sum", "\"x\"", "progress.loss_sum" },
		{ "progress", "batches_tracked", NULL, "progress.batches_tracked" },
		{ NULL, "files", NULL, "the size of model.safetensors" },
		{ "files", "model.safetensors", "{\"bytes\":1,\"xxh64\":\"123\"}", "the xxh64 of model.safetensors" },
		{ "files", "model.safetensors", "{\"bytes\":1,\"xxh64\":\"123456789012345g\"}",
		  "16 hexadecimal digits" },
		{ "files", "optimizer.safetensors", "{\"bytes\":-1}", "the size of optimizer.safetensors" },
		{ NULL, "slots", "{}", "\"slots\"" },
		{ NULL, "slots", "[3]", "slot 0 is not text" },
		{ NULL, "settings", "[]", "\"settings\"" },
		{ NULL, "xxh64", NULL, "its xxh64 is missing" },
		{ NULL, "xxh64", "\"0000000000000000\"", "damaged or edited" },
		{ "progress", "correct", "4", "damaged or edited" },
		{ "settings", "lr", "0.2", "damaged or edited" },
		{ NULL, "extra", "1", "damaged or edited" },
	};
	const scratch *s = *state;
	char path[2048];
	model m;
	model_init(&m, 4, 1, 3);
	assert_int_equal(model_save(&m, s->path, 1, 2), LS_OK);
	model_release(&m);
	join(path, s->path, "ckpt/step-000000001/state.json");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *root = json_load_file(path, 0, NULL);
		json_t *object = cases[i].object ? json_object_get(root, cases[i].object) : root;
		if (cases[i].value)
			json_object_set_new(object, cases[i].key, json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
		else
			json_object_del(object, cases[i].key);
		char *text = json_dumps(root, 0);
		ls_ckpt_state parsed;
		assert_int_equal(ls_ckpt_state_parse(&parsed, text, strlen(text), "state.json"), LS_EFORMAT);
		assert_mentions("state.json");
		assert_mentions(cases[i].expect);
		free(text);
		json_decref(root);
	}
}

static void state_is_not_json(void **state)
{
	(void)state;
	static const char *const texts[] = { "", "{", "[]", "null", "{\"a\":1,\"a\":1}", "{\"format\":1}\xff" };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ls_ckpt_state parsed;
		assert_int_equal(ls_ckpt_state_parse(&parsed, texts[i], strlen(texts[i]), "state.json"), LS_EFORMAT);
	}
	ls_ckpt_state parsed;
	assert_int_equal(ls_ckpt_state_parse(&parsed, NULL, 0, "state.json"), LS_EFORMAT);
}

TEST_MAIN_EACH(scratch_make, scratch_remove, round_trip, a_failed_save_says_what_is_left, no_memory_to_verify,
	       layout_does_not_show, files_as_others_see_them, progress_is_exact, unstorable_content,
	       no_slots_no_settings_no_name, other_classes, other_optimizer, optimizer_does_not_fit, many_differences,
	       each_difference, foreign_weights, damaged_state, state_is_not_json, values_that_are_not_finite,
	       foreign_values_that_are_not_finite)
