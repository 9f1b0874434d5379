/*
 * Leaves of text: packed end to end, the same from any number of readers and however they are dealt.
 */
#include "unit/data/fixture.h"

#include "base/status.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/permute.h"

enum { TOKENS = 11, PICKS = 4 };

static int length_of(uint64_t index)
{
	return 1 + (int)(ls_mix64(index) % TOKENS);
}

static int picks_of(uint64_t index, uint64_t epoch)
{
	int length = length_of(index), picks = (int)(ls_mix64(index * 31 + epoch) % (PICKS + 1));
	return picks < length ? picks : length;
}

static int32_t token_of(uint64_t index, uint64_t epoch, int place)
{
	return (int32_t)(ls_mix64(index * 1000 + epoch * 100 + (uint64_t)place) % 5000);
}

/* The last picks_of() tokens are asked for. */
static ls_status text_read(void *self, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	const uint64_t *bad = self;
	if (index == *bad)
		return ls_fail(LS_EIO, "sample %llu cannot be read", (unsigned long long)index);
	out->length = length_of(index);
	out->picks = picks_of(index, epoch);
	out->label = (int32_t)(index % 3);
	for (int i = 0; i < out->length; i++) {
		out->tokens[i] = token_of(index, epoch, i);
		out->segments[i] = i > out->length / 2;
	}
	for (int i = 0; i < out->picks; i++) {
		out->places[i] = out->length - out->picks + i;
		out->targets[i] = out->places[i] + 100;
	}
	return LS_OK;
}

static ls_status text_measure(void *self, uint64_t index, uint64_t epoch, int *length, int *picks)
{
	(void)self;
	*length = length_of(index);
	*picks = picks_of(index, epoch);
	return LS_OK;
}

static uint64_t none_bad = UINT64_MAX;

static ls_dataset *make_text(uint64_t *bad, uint64_t samples, int picks)
{
	static const ls_dataset_ops ops = { .read_text = text_read, .measure_text = text_measure };
	ls_dataset *set;
	ls_dataset_info info = { .name = "words",
				 .samples = samples,
				 .classes = 3,
				 .tokens_max = TOKENS,
				 .vocabulary = 5000,
				 .picks_max = picks };
	assert_ok(ls_dataset_new(&set, &info, &ops, bad));
	return set;
}

static uint64_t index_at(const ls_loader_options *o, uint64_t n, uint64_t epoch, uint64_t place)
{
	return o->shuffle ? ls_permute(o->seed, epoch, n, place) : place;
}

static void check_sample(const ls_packed *p, int64_t i, uint64_t index, uint64_t epoch)
{
	int32_t begin = p->start[i], asked = p->pick_start[i];
	int length = length_of(index), picks = picks_of(index, epoch);
	assert_int_equal(p->start[i + 1], begin + length);
	assert_int_equal(p->pick_start[i + 1], asked + picks);
	for (int k = 0; k < length; k++) {
		assert_int_equal(p->token[begin + k], token_of(index, epoch, k));
		assert_int_equal(p->segment[begin + k], k > length / 2);
	}
	for (int k = 0; k < picks; k++) {
		assert_int_equal(p->pick[asked + k], begin + length - picks + k);
		assert_int_equal(p->target[asked + k], length - picks + k + 100);
	}
}

static int64_t picks_of_step(const ls_loader_options *o, uint64_t n, const ls_leaf *leaf)
{
	uint64_t begin = leaf->step * (uint64_t)o->global_batch;
	int64_t sum = 0;
	for (int64_t i = 0; i < leaf->step_samples; i++)
		sum += picks_of(index_at(o, n, leaf->epoch, begin + (uint64_t)i), leaf->epoch);
	return sum;
}

static void check_leaf(const ls_leaf *leaf, const ls_loader_options *o, uint64_t n)
{
	uint64_t begin = leaf->step * (uint64_t)o->global_batch + (uint64_t)(leaf->leaf * o->leaf);
	assert_null(leaf->images);
	assert_non_null(leaf->text);
	assert_int_equal(leaf->text->start[0], 0);
	assert_int_equal(leaf->text->pick_start[0], 0);
	assert_int_equal(leaf->text->step_picks, picks_of_step(o, n, leaf));
	for (int64_t i = 0; i < leaf->count; i++) {
		uint64_t index = index_at(o, n, leaf->epoch, begin + (uint64_t)i);
		assert_int_equal(leaf->samples[i], index);
		assert_int_equal(leaf->labels[i], index % 3);
		check_sample(leaf->text, i, index, leaf->epoch);
	}
}

static void leaves_are_packed(void **state)
{
	(void)state;
	static const int64_t cases[][3] = {
		{ 100, 10, 20 }, { 103, 10, 20 }, { 1, 5, 5 }, { 30, 7, 16 }, { 65, 64, 64 }
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int variant = 0; variant < 4; variant++) {
			uint64_t n = (uint64_t)cases[i][0], seen = 0;
			ls_dataset *set = make_text(&none_bad, n, PICKS);
			ls_loader *loader;
			ls_loader_options o = { .seed = i,
						.shuffle = variant & 1,
						.leaf = cases[i][1],
						.global_batch = cases[i][2],
						.ahead = variant,
						.threads = variant };
			assert_ok(ls_loader_new(&loader, set, &o));
			while (seen < 3 * n) {
				const ls_leaf *leaf;
				assert_ok(ls_loader_next(loader, &leaf));
				assert_int_equal(leaf->epoch, seen / n);
				check_leaf(leaf, &o, n);
				seen += (uint64_t)leaf->count;
			}
			assert_int_equal(seen, 3 * n);
			ls_loader_free(loader);
			ls_dataset_free(set);
		}
}

/* Two loaders share the leaves, one gets the first `cut` of each step: each tells the picks of the whole step. */
static void dealt_loaders_know_the_whole_step(void **state)
{
	(void)state;
	const uint64_t n = 103;
	ls_dataset *set = make_text(&none_bad, n, PICKS);
	for (int64_t cut = 0; cut <= 4; cut++) {
		ls_loader *pair[2];
		ls_loader_options o = {
			.seed = 6, .shuffle = 1, .leaf = 5, .global_batch = 20, .dealt = 1, .threads = 2
		};
		for (int i = 0; i < 2; i++)
			assert_ok(ls_loader_new(&pair[i], set, &o));
		for (uint64_t step = 0; step < 2 * ls_loader_steps(n, 20); step++) {
			ls_step_shape shape;
			ls_loader_step_at(n, 20, 5, step % ls_loader_steps(n, 20), &shape);
			int64_t first = cut < shape.leaves ? cut : shape.leaves;
			assert_ok(ls_loader_deal(pair[0], 0, first));
			assert_ok(ls_loader_deal(pair[1], first, shape.leaves - first));
			for (int64_t k = 0; k < shape.leaves; k++) {
				const ls_leaf *leaf;
				assert_ok(ls_loader_next(pair[k >= first], &leaf));
				assert_int_equal(leaf->leaf, k);
				check_leaf(leaf, &o, n);
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
	ls_dataset *set = make_text(&bad, 100, PICKS);
	ls_loader *loader;
	const ls_leaf *leaf;
	ls_loader_options o = { .leaf = 10, .global_batch = 10, .threads = 3 };
	assert_ok(ls_loader_new(&loader, set, &o));
	for (int i = 0; i < 3; i++)
		assert_ok(ls_loader_next(loader, &leaf));
	assert_fails(ls_loader_next(loader, &leaf), LS_EIO, "sample 31 cannot be read");
	ls_loader_free(loader);
	ls_dataset_free(set);
}

/* The picks of a step are measured of every sample, and a sample that lies about them stops the step it is in. */
static void picks_beyond_what_was_announced(void **state)
{
	(void)state;
	ls_dataset *set = make_text(&none_bad, 100, 1);
	ls_loader *loader;
	const ls_leaf *leaf;
	ls_loader_options o = { .leaf = 10, .global_batch = 10 };
	assert_ok(ls_loader_new(&loader, set, &o));
	assert_fails(ls_loader_next(loader, &leaf), LS_EFORMAT, "picks");
	ls_loader_free(loader);
	o = (ls_loader_options){ .leaf = INT64_MAX, .global_batch = INT64_MAX };
	ls_dataset_free(set);
	set = make_text(&none_bad, INT64_MAX / 2, PICKS);
	assert_fails(ls_loader_new(&loader, set, &o), LS_EMEMORY, "do not fit");
	o.leaf = (int64_t)1 << 30;
	assert_fails(ls_loader_new(&loader, set, &o), LS_EINVALID, "too large");
	ls_dataset_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_are_packed),
		cmocka_unit_test(dealt_loaders_know_the_whole_step),
		cmocka_unit_test(errors_come_in_their_place),
		cmocka_unit_test(picks_beyond_what_was_announced),
	};
	return cmocka_run_group_tests_name("loader_text", tests, NULL, NULL);
}
