/*
 * support.h - a scratch directory, files, captured warnings and a small model with awkward shapes.
 */
#ifndef TEST_CKPT_SUPPORT_H
#define TEST_CKPT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "checkpoint/checkpoint.h"
#include "params/params.h"
#include "unit/temp_dir.h"

#define HELPER __attribute__((unused)) static

/* Set up and torn down around each test; cmocka runs the teardown after a failure, too. */
typedef struct scratch {
	char path[1024];
} scratch;

HELPER int scratch_make(void **state)
{
	const char *base = getenv("TMPDIR");
	scratch *s = malloc(sizeof(*s));
	snprintf(s->path, sizeof(s->path), "%s/lockstep-ckpt-XXXXXX", base && *base ? base : "/tmp");
	*state = s;
	return mkdtemp(s->path) ? 0 : -1;
}

HELPER int scratch_remove(void **state)
{
	scratch *s = *state;
	int bad = ls_path_remove_tree(s->path) != LS_OK;
	free(s);
	return bad;
}

/* Joined in a buffer of the caller. */
HELPER const char *join(char out[2048], const char *directory, const char *name)
{
	assert_int_equal(ls_path_join(out, 2048, directory, name), LS_OK);
	return out;
}

HELPER void flip_bit(const char *path, long from_end)
{
	FILE *file = fopen(path, "r+b");
	assert_non_null(file);
	assert_int_equal(fseek(file, -from_end, SEEK_END), 0);
	int c = fgetc(file);
	assert_int_equal(fseek(file, -from_end, SEEK_END), 0);
	assert_int_not_equal(fputc(c ^ 1, file), EOF);
	fclose(file);
}

#define assert_mentions(text) assert_mentions_in(ls_last_error(), text)
HELPER void assert_mentions_in(const char *message, const char *text)
{
	if (!strstr(message, text))
		fail_msg("the message \"%s\" does not mention \"%s\"", message, text);
}

/* stderr into a file of the scratch directory, between begin and end; end returns the text, malloc'd. */
typedef struct capture {
	int saved;
	char path[2048];
} capture;

HELPER void capture_begin(capture *c, const scratch *s)
{
	join(c->path, s->path, "stderr.txt");
	fflush(stderr);
	c->saved = dup(STDERR_FILENO);
	int file = open(c->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(file >= 0 && dup2(file, STDERR_FILENO) >= 0);
	close(file);
}

HELPER char *capture_end(capture *c)
{
	size_t bytes;
	fflush(stderr);
	dup2(c->saved, STDERR_FILENO);
	close(c->saved);
	return (char *)take_file(c->path, &bytes);
}

/* ---- the model ---- */

enum { ROWS_MAX = 12 };

typedef struct model {
	ls_param rows[ROWS_MAX];
	ls_param_table table;
	float *params, *buffers, *slot[2];
	ls_ckpt_content content;
} model;

static const char *const adam_slots[] = { "exp_avg", "exp_avg_sq" };

/* A 3x3 filter of which only the lower right four taps ever meet the image; their slots come first. */
static const int16_t dead_slots[9] = { 4, 5, 6, 7, 0, 1, 8, 2, 3 };

HELPER ls_param *add_row(model *m, const char *name, ls_param_role role, int rank, const int64_t *shape, int panel)
{
	ls_param *p = &m->rows[m->table.count++];
	*p = (ls_param){ .name = name, .role = role, .rank = rank };
	if (rank)
		memcpy(p->shape, shape, (size_t)rank * sizeof(*shape));
	p->layout.out = rank > 0 ? (int)shape[0] : 1;
	p->layout.in = rank > 1 ? (int)shape[1] : 1;
	p->layout.taps = rank > 3 ? (int)(shape[2] * shape[3]) : 1;
	p->layout.out_panel = panel;
	p->layout.in_panel = rank > 1 ? panel : 1;
	p->layout.reachable_taps = p->layout.taps;
	return p;
}

/* The same logical model whatever `panel` and `unreachable`; `classes` is for models that do not fit. */
HELPER void model_rows(model *m, int panel, int unreachable, int classes)
{
	*m = (model){ .table = { .rows = m->rows, .capacity = ROWS_MAX } };
	ls_param *p = add_row(m, "conv1.weight", LS_ROLE_WEIGHT, 4, (int64_t[]){ 5, 3, 3, 3 }, panel);
	p->layout.gathered = 1;
	p->layout.in_panel = p->layout.in * p->layout.taps;
	add_row(m, "bn1.weight", LS_ROLE_NORM, 1, (int64_t[]){ 5 }, panel);
	add_row(m, "bn1.bias", LS_ROLE_NORM, 1, (int64_t[]){ 5 }, panel);
	add_row(m, "bn1.running_mean", LS_ROLE_BUFFER, 1, (int64_t[]){ 5 }, panel);
	add_row(m, "bn1.running_var", LS_ROLE_BUFFER, 1, (int64_t[]){ 5 }, panel);
	add_row(m, "bn1.num_batches_tracked", LS_ROLE_COUNTER, 0, NULL, panel);
	p = add_row(m, "layer1.conv.weight", LS_ROLE_WEIGHT, 4, (int64_t[]){ 7, 5, 3, 3 }, panel);
	p->layout.slot = dead_slots;
	p->layout.reachable_taps = 4;
	add_row(m, "fc.weight", LS_ROLE_WEIGHT, 2, (int64_t[]){ classes, 7 }, panel);
	add_row(m, "fc.bias", LS_ROLE_BIAS, 1, (int64_t[]){ classes }, panel);
	ls_params_lay_out(&m->table, !unreachable);
}

static const char settings_text[] = "{\"lr\":0.10000000000000001,\"seed\":7,\"model\":\"tiny\"}";

HELPER void model_init(model *m, int panel, int unreachable, int classes)
{
	model_rows(m, panel, unreachable, classes);
	m->params = calloc(m->table.total, sizeof(float));
	m->buffers = calloc(m->table.buffers, sizeof(float));
	for (int i = 0; i < 2; i++)
		m->slot[i] = calloc(m->table.reachable, sizeof(float));
	m->content = (ls_ckpt_content){
		.table = &m->table,
		.params = m->params,
		.buffers = m->buffers,
		.slots = 2,
		.slot_names = adam_slots,
		.slot = m->slot,
		.model = "tiny",
		.settings = settings_text,
	};
}

HELPER void model_release(model *m)
{
	for (int i = 0; i < 2; i++)
		free(m->slot[i]);
	free(m->buffers);
	free(m->params);
}

/* Element `i` of tensor `name` of a model filled with `salt`; which array it is in counts as well. */
HELPER float value_of(const char *name, int array, size_t i, unsigned salt)
{
	uint32_t hash = 2166136261u ^ (salt * 31 + (unsigned)array * 7);
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	hash = (hash ^ (uint32_t)i) * 16777619u;
	return (float)(int32_t)hash * 0x1p-31f;
}

HELPER int is_dead(const ls_param *p, size_t i)
{
	return p->layout.slot && p->layout.slot[i % (size_t)p->layout.taps] >= p->layout.reachable_taps;
}

/* array 0: parameters and buffers; 1, 2: slots, in which unreachable taps are zero. */
HELPER float wanted(const ls_param *p, int array, size_t i, unsigned salt)
{
	return array && is_dead(p, i) ? 0.0f : value_of(p->name, array, i, salt);
}

HELPER float *array_of(const model *m, const ls_param *p, int array)
{
	if (array)
		return p->role == LS_ROLE_BUFFER ? NULL : m->slot[array - 1];
	return p->role == LS_ROLE_BUFFER ? m->buffers : m->params;
}

HELPER void model_fill(model *m, unsigned salt)
{
	float logical[1024];
	for (size_t r = 0; r < m->table.count; r++) {
		const ls_param *p = &m->rows[r];
		for (int a = 0; a < 3 && p->role != LS_ROLE_COUNTER; a++) {
			float *store = array_of(m, p, a);
			for (size_t i = 0; i < ls_param_elements(p); i++)
				logical[i] = wanted(p, a, i, salt);
			if (store)
				ls_param_import(p, a ? LS_STORE_REACHABLE : LS_STORE_WHOLE, logical, store);
		}
	}
}

/* The number of elements that are not what model_fill(salt) gives. */
HELPER size_t model_differences(const model *m, unsigned salt)
{
	float logical[1024];
	size_t differences = 0;
	for (size_t r = 0; r < m->table.count; r++) {
		const ls_param *p = &m->rows[r];
		for (int a = 0; a < 3 && p->role != LS_ROLE_COUNTER; a++) {
			const float *store = array_of(m, p, a);
			if (!store)
				continue;
			ls_param_export(p, a ? LS_STORE_REACHABLE : LS_STORE_WHOLE, store, logical);
			for (size_t i = 0; i < ls_param_elements(p); i++)
				differences += logical[i] != wanted(p, a, i, salt);
		}
	}
	return differences;
}

/* A filled model at `step`, saved. */
HELPER ls_status model_save(model *m, const char *run, uint64_t step, int64_t keep)
{
	model_fill(m, (unsigned)step);
	m->content.progress = (ls_ckpt_progress){ .step = step,
						  .epoch = step / 100,
						  .epoch_step = step % 100,
						  .loss_sum = 0.1 * (double)step,
						  .loss_samples = step * 32,
						  .correct = step * 3,
						  .batches_tracked = (int64_t)step };
	return ls_ckpt_save(run, &m->content, keep);
}

/* The newest checkpoint must be whole, of `step`, and hold what model_save() put there. */
HELPER void assert_newest(const char *run, uint64_t step)
{
	char path[2048];
	model m;
	if (ls_ckpt_newest(run, path, sizeof(path)) != LS_OK)
		fail_msg("%s", ls_last_error());
	model_init(&m, 4, 1, 3);
	ls_status status = ls_ckpt_load(path, &m.content);
	size_t differences = status == LS_OK ? model_differences(&m, (unsigned)step) : 0;
	uint64_t found = m.content.progress.step;
	model_release(&m);
	if (status != LS_OK)
		fail_msg("%s", ls_last_error());
	assert_int_equal(found, step);
	assert_int_equal(differences, 0);
}

#endif
