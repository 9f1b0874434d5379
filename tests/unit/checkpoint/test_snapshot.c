/*
 * A snapshot is what the stores were when it was taken, whatever becomes of them.
 */
#include "support.h"

#include "checkpoint/snapshot.h"
#include "unit/test_main.h"

static void keeps_what_was(void **state)
{
	const scratch *s = *state;
	ls_snapshot *snapshot = NULL;
	model m;
	model_init(&m, 4, 1, 3);
	assert_int_equal(ls_snapshot_new(&snapshot, &m.content), LS_OK);
	assert_int_equal(ls_ckpt_begin(s->path), LS_OK);
	for (uint64_t step = 10; step <= 30; step += 10) {
		model_fill(&m, (unsigned)step);
		m.content.progress = (ls_ckpt_progress){ .step = step, .loss_sum = 1, .loss_samples = 2 };
		ls_snapshot_take(snapshot, &m.content);
		model_fill(&m, 999); /* training goes on */
		m.content.progress.step = 999;
		assert_int_equal(ls_ckpt_save(s->path, &snapshot->content, 5), LS_OK);
		assert_newest(s->path, step);
	}
	ls_snapshot_free(snapshot);
	model_release(&m);
}

/* The file of a snapshot is that of the stores themselves, byte for byte. */
static void same_bytes(void **state)
{
	static const char *const files[] = { "model.safetensors", "optimizer.safetensors", "state.json" };
	const scratch *s = *state;
	ls_snapshot *snapshot = NULL;
	char one[2048], other[2048], path[4096];
	model m;
	model_init(&m, 16, 1, 3);
	assert_int_equal(ls_snapshot_new(&snapshot, &m.content), LS_OK);
	assert_int_equal(ls_ckpt_begin(join(one, s->path, "one")), LS_OK);
	assert_int_equal(ls_ckpt_begin(join(other, s->path, "other")), LS_OK);
	assert_int_equal(model_save(&m, one, 7, 1), LS_OK);
	ls_snapshot_take(snapshot, &m.content);
	assert_int_equal(ls_ckpt_save(other, &snapshot->content, 1), LS_OK);
	assert_int_equal(m.content.fingerprint, snapshot->content.fingerprint);
	for (size_t i = 0; i < 3; i++) {
		size_t bytes, again;
		snprintf(path, sizeof(path), "%s/ckpt/step-000000007/%s", one, files[i]);
		void *a = take_file(path, &bytes);
		snprintf(path, sizeof(path), "%s/ckpt/step-000000007/%s", other, files[i]);
		void *b = take_file(path, &again);
		assert_int_equal(bytes, again);
		assert_memory_equal(a, b, bytes);
		free(a);
		free(b);
	}
	ls_snapshot_free(snapshot);
	model_release(&m);
}

/* Without optimizer state; and what it takes is what the plan of memory counts. */
static void no_slots(void **state)
{
	ls_snapshot *snapshot = NULL;
	model m;
	(void)state;
	model_init(&m, 4, 0, 3);
	m.content.slots = 0;
	assert_int_equal(ls_snapshot_new(&snapshot, &m.content), LS_OK);
	assert_int_equal(snapshot->count * sizeof(float), ls_snapshot_bytes(&m.table, 0));
	assert_true(ls_snapshot_bytes(&m.table, 2) >=
		    ls_snapshot_bytes(&m.table, 0) + 2 * m.table.reachable * sizeof(float));
	model_fill(&m, 3);
	ls_snapshot_take(snapshot, &m.content);
	assert_memory_equal(snapshot->content.params, m.params, m.table.total * sizeof(float));
	assert_memory_equal(snapshot->content.buffers, m.buffers, m.table.buffers * sizeof(float));
	ls_snapshot_free(snapshot);
	ls_snapshot_free(NULL);
	model_release(&m);
}

TEST_MAIN_EACH(scratch_make, scratch_remove, keeps_what_was, same_bytes, no_slots)
