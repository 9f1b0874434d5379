/*
 * Micro-batches of text: packed end to end, the same from any number of readers and however they are assigned.
 */
#include "unit/data/fixture.h"

#include "base/status.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/shuffle.h"
#include "unit/data/loader_variant.h"
#include "unit/test_main.h"

enum { TOKENS = 11, MASKED = 4 };

static int length_of(uint64_t index)
{
	return 1 + (int)(ls_mix64(index) % TOKENS);
}

static int masked_of(uint64_t index, uint64_t epoch)
{
	int length = length_of(index), masked = (int)(ls_mix64(index * 31 + epoch) % (MASKED + 1));
	return masked < length ? masked : length;
}

static int32_t token_of(uint64_t index, uint64_t epoch, int place)
{
	return (int32_t)(ls_mix64(index * 1000 + epoch * 100 + (uint64_t)place) % 5000);
}

/* The last masked_of() tokens are masked. */
static ls_status text_read(void *self, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	const uint64_t *bad = self;
	if (index == *bad)
		return ls_fail(LS_EIO, "sample %llu cannot be read", (unsigned long long)index);
	out->length = length_of(index);
	out->masked = masked_of(index, epoch);
	out->label = (int32_t)(index % 3);
	for (int i = 0; i < out->length; i++) {
		out->tokens[i] = token_of(index, epoch, i);
		out->segments[i] = i > out->length / 2;
	}
	for (int i = 0; i < out->masked; i++) {
		out->places[i] = out->length - out->masked + i;
		out->targets[i] = out->places[i] + 100;
	}
	return LS_OK;
}

static ls_status text_measure(void *self, uint64_t index, uint64_t epoch, int *length, int *masked)
{
	(void)self;
	*length = length_of(index);
	*masked = masked_of(index, epoch);
	return LS_OK;
}

static uint64_t none_bad = UINT64_MAX;

static ls_dataset *make_text(uint64_t *bad, uint64_t samples, int masked)
{
	static const ls_dataset_ops ops = { .read_text = text_read, .measure_text = text_measure };
	ls_dataset *set;
	ls_dataset_info info = { .name = "words",
				 .samples = samples,
				 .classes = 3,
				 .tokens_max = TOKENS,
				 .vocabulary = 5000,
				 .masked_max = masked };
	assert_ok(ls_dataset_new(&set, &info, &ops, bad));
	return set;
}

static uint64_t index_at(const ls_loader_options *o, uint64_t n, uint64_t epoch, uint64_t place)
{
	return o->shuffle ? ls_permute(o->seed, epoch, n, place) : place;
}

static void check_sample(const ls_packed *p, int64_t i, uint64_t index, uint64_t epoch)
{
	int32_t begin = p->start[i], asked = p->masked_start[i];
	int length = length_of(index), masked = masked_of(index, epoch);
	assert_int_equal(p->start[i + 1], begin + length);
	assert_int_equal(p->masked_start[i + 1], asked + masked);
	for (int k = 0; k < length; k++) {
		assert_int_equal(p->token[begin + k], token_of(index, epoch, k));
		assert_int_equal(p->segment[begin + k], k > length / 2);
	}
	for (int k = 0; k < masked; k++) {
		assert_int_equal(p->masked_at[asked + k], begin + length - masked + k);
		assert_int_equal(p->target[asked + k], length - masked + k + 100);
	}
}

static int64_t masked_of_step(const ls_loader_options *o, uint64_t n, const ls_microbatch *microbatch)
{
	uint64_t begin = microbatch->step * (uint64_t)o->global_batch;
	int64_t sum = 0;
	for (int64_t i = 0; i < microbatch->step_samples; i++)
		sum += masked_of(index_at(o, n, microbatch->epoch, begin + (uint64_t)i), microbatch->epoch);
	return sum;
}

static void check_microbatch(const ls_microbatch *microbatch, const ls_loader_options *o, uint64_t n)
{
	uint64_t begin =
		microbatch->step * (uint64_t)o->global_batch + (uint64_t)(microbatch->microbatch * o->microbatch);
	assert_null(microbatch->images);
	assert_non_null(microbatch->text);
	assert_int_equal(microbatch->text->start[0], 0);
	assert_int_equal(microbatch->text->masked_start[0], 0);
	assert_int_equal(microbatch->text->step_masked, masked_of_step(o, n, microbatch));
	for (int64_t i = 0; i < microbatch->count; i++) {
		uint64_t index = index_at(o, n, microbatch->epoch, begin + (uint64_t)i);
		assert_int_equal(microbatch->samples[i], index);
		assert_int_equal(microbatch->labels[i], index % 3);
		check_sample(microbatch->text, i, index, microbatch->epoch);
	}
}

static void microbatches_are_packed(void **state)
{
	(void)state;
	static const int64_t cases[][3] = {
		{ 100, 10, 20 }, { 103, 10, 20 }, { 1, 5, 5 }, { 30, 7, 16 }, { 65, 64, 64 }
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int variant = 0; variant < 4; variant++) {
			uint64_t n = (uint64_t)cases[i][0], seen = 0;
			ls_dataset *set = make_text(&none_bad, n, MASKED);
			ls_loader *loader;
			ls_loader_options o = loader_variant(i, variant, cases[i]);
			assert_ok(ls_loader_new(&loader, set, &o));
			while (seen < 3 * n) {
				const ls_microbatch *microbatch;
				assert_ok(ls_loader_next(loader, &microbatch));
				assert_int_equal(microbatch->epoch, seen / n);
				check_microbatch(microbatch, &o, n);
				seen += (uint64_t)microbatch->count;
			}
			assert_int_equal(seen, 3 * n);
			ls_loader_free(loader);
			ls_dataset_free(set);
		}
}

/* Two loaders share the micro-batches, one gets the first `cut` of each step: each reports the masked positions of the
 * whole step. */
static void assigned_loaders_know_the_whole_step(void **state)
{
	(void)state;
	const uint64_t n = 103;
	ls_dataset *set = make_text(&none_bad, n, MASKED);
	for (int64_t cut = 0; cut <= 4; cut++) {
		ls_loader *pair[2];
		ls_loader_options o = {
			.seed = 6, .shuffle = 1, .microbatch = 5, .global_batch = 20, .assigned = 1, .threads = 2
		};
		for (int i = 0; i < 2; i++)
			assert_ok(ls_loader_new(&pair[i], set, &o));
		for (uint64_t step = 0; step < 2 * ls_loader_steps(n, 20); step++) {
			ls_step_shape shape;
			ls_loader_step_at(n, 20, 5, step % ls_loader_steps(n, 20), &shape);
			int64_t first = cut < shape.microbatches ? cut : shape.microbatches;
			assert_ok(ls_loader_assign(pair[0], 0, first));
			assert_ok(ls_loader_assign(pair[1], first, shape.microbatches - first));
			for (int64_t k = 0; k < shape.microbatches; k++) {
				const ls_microbatch *microbatch;
				assert_ok(ls_loader_next(pair[k >= first], &microbatch));
				assert_int_equal(microbatch->microbatch, k);
				check_microbatch(microbatch, &o, n);
			}
		}
		for (int i = 0; i < 2; i++)
			ls_loader_free(pair[i]);
	}
	ls_dataset_free(set);
}

static void errors_come_in_their_place(void **state)
{
	(void)state;
	uint64_t bad = 31;
	ls_dataset *set = make_text(&bad, 100, MASKED);
	ls_loader *loader;
	const ls_microbatch *microbatch;
	ls_loader_options o = { .microbatch = 10, .global_batch = 10, .threads = 3 };
	assert_ok(ls_loader_new(&loader, set, &o));
	for (int i = 0; i < 3; i++)
		assert_ok(ls_loader_next(loader, &microbatch));
	assert_fails(ls_loader_next(loader, &microbatch), LS_EIO, "sample 31 cannot be read");
	ls_loader_free(loader);
	ls_dataset_free(set);
}

/* The masked positions of a step are measured for every sample, and a sample with a wrong number stops its step. */
static void masked_beyond_what_was_announced(void **state)
{
	(void)state;
	ls_dataset *set = make_text(&none_bad, 100, 1);
	ls_loader *loader;
	const ls_microbatch *microbatch;
	ls_loader_options o = { .microbatch = 10, .global_batch = 10 };
	assert_ok(ls_loader_new(&loader, set, &o));
	assert_fails(ls_loader_next(loader, &microbatch), LS_EFORMAT, "masked");
	ls_loader_free(loader);
	o = (ls_loader_options){ .microbatch = INT64_MAX, .global_batch = INT64_MAX };
	ls_dataset_free(set);
	set = make_text(&none_bad, INT64_MAX / 2, MASKED);
	assert_fails(ls_loader_new(&loader, set, &o), LS_EMEMORY, "do not fit");
	o.microbatch = (int64_t)1 << 30;
	assert_fails(ls_loader_new(&loader, set, &o), LS_EINVALID, "too large");
	ls_dataset_free(set);
}

TEST_MAIN(microbatches_are_packed, assigned_loaders_know_the_whole_step, errors_come_in_their_place,
	  masked_beyond_what_was_announced)
