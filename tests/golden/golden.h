/*
 * golden.h - read a golden file of models/ (README.md describes the lines). Every line is read or the file is refused.
 *
 *     golden g;
 *     if (golden_open(&g, path)) fail(g.error);
 *     ... g.logits, g.tensors ...
 *     golden_close(&g);
 */
#ifndef LS_GOLDEN_GOLDEN_H
#define LS_GOLDEN_GOLDEN_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN_SAMPLES 8
#define GOLDEN_CLASSES 16
#define GOLDEN_LOGITS 16

/* Some elements of a tensor, in row-major order of PyTorch's shape. */
typedef struct golden_points {
	int count;
	size_t index[GOLDEN_SAMPLES];
	double value[GOLDEN_SAMPLES];
} golden_points;

/* A parameter (its gradient of the mean loss) or a running statistic (its value after the step). */
typedef struct golden_tensor {
	char name[96];
	int is_buffer;
	size_t count;
	double norm, sum, probe;
	golden_points points;
	golden_points after; /* the parameter after one step of Adam */
} golden_tensor;

typedef struct golden {
	char error[1280];
	char model[32];
	int channels, height, width, classes, batch;
	uint32_t seed;
	double loss_tolerance, logits_tolerance, grad_tolerance, buffer_tolerance;
	double lr;
	double loss_mean, loss_sum;
	int correct;
	int logits_count;
	int logits_sample[GOLDEN_LOGITS];
	double logits[GOLDEN_LOGITS][GOLDEN_CLASSES]; /* (logits_count, classes) with running statistics */
	golden_tensor *tensors;
	int tensor_count;
	int ended;
} golden;

static inline int golden_read_numbers(FILE *from, int count, double *out)
{
	for (int i = 0; i < count; i++)
		if (fscanf(from, "%lf", &out[i]) != 1)
			return 0;
	return 1;
}

static inline int golden_read_points(FILE *from, golden_points *p)
{
	if (fscanf(from, "%d", &p->count) != 1 || p->count < 0 || p->count > GOLDEN_SAMPLES)
		return 0;
	for (int i = 0; i < p->count; i++)
		if (fscanf(from, "%zu %lf", &p->index[i], &p->value[i]) != 2)
			return 0;
	return 1;
}

static inline int golden_read_head(FILE *from, golden *g)
{
	return fscanf(from, "%31s %d %d %d %d %d %u", g->model, &g->channels, &g->height, &g->width, &g->classes,
		      &g->batch, &g->seed) == 7 &&
	       g->classes > 0 && g->classes <= GOLDEN_CLASSES && g->batch > 0;
}

static inline int golden_read_tolerance(FILE *from, golden *g)
{
	return fscanf(from, " loss %lf logits %lf grad %lf buffer %lf", &g->loss_tolerance, &g->logits_tolerance,
		      &g->grad_tolerance, &g->buffer_tolerance) == 4;
}

static inline int golden_read_logits(FILE *from, golden *g)
{
	if (g->logits_count == GOLDEN_LOGITS || fscanf(from, "%d", &g->logits_sample[g->logits_count]) != 1)
		return 0;
	return golden_read_numbers(from, g->classes, g->logits[g->logits_count++]);
}

static inline int golden_read_tensor(FILE *from, golden *g, int is_buffer)
{
	golden_tensor *grown = realloc(g->tensors, ((size_t)g->tensor_count + 1) * sizeof(*grown));
	if (!grown)
		return 0;
	g->tensors = grown;
	golden_tensor *t = &g->tensors[g->tensor_count++];
	memset(t, 0, sizeof(*t));
	t->is_buffer = is_buffer;
	return fscanf(from, "%95s %zu %lf %lf %lf", t->name, &t->count, &t->norm, &t->sum, &t->probe) == 5;
}

/* One line that starts with `word`; 0 when it is malformed, unknown or out of place. */
static inline int golden_read_line(FILE *from, const char *word, golden *g)
{
	golden_tensor *last = g->tensor_count ? &g->tensors[g->tensor_count - 1] : NULL;
	if (strcmp(word, "model") == 0)
		return golden_read_head(from, g);
	if (strcmp(word, "tolerance") == 0)
		return golden_read_tolerance(from, g);
	if (strcmp(word, "adam") == 0)
		return golden_read_numbers(from, 1, &g->lr);
	if (strcmp(word, "loss") == 0)
		return fscanf(from, "%lf %lf %d", &g->loss_mean, &g->loss_sum, &g->correct) == 3;
	if (strcmp(word, "logits") == 0)
		return golden_read_logits(from, g);
	if (strcmp(word, "param") == 0 || strcmp(word, "buffer") == 0)
		return golden_read_tensor(from, g, word[0] == 'b');
	if (strcmp(word, "grad") == 0 || strcmp(word, "value") == 0)
		return last && golden_read_points(from, &last->points);
	if (strcmp(word, "after") == 0)
		return last && golden_read_points(from, &last->after);
	g->ended = strcmp(word, "end") == 0;
	return g->ended;
}

static inline void golden_close(golden *g)
{
	free(g->tensors);
	g->tensors = NULL;
}

/* 0, or -1 with g->error set and nothing to close. */
static inline int golden_open(golden *g, const char *path)
{
	char word[32] = "nothing";
	memset(g, 0, sizeof(*g));
	FILE *from = fopen(path, "r");
	if (!from) {
		snprintf(g->error, sizeof(g->error), "%s: cannot open", path);
		return -1;
	}
	int good = fscanf(from, " #%*[^\n]") == 0;
	while (good && !g->ended)
		good = fscanf(from, "%31s", word) == 1 && golden_read_line(from, word, g);
	fclose(from);
	if (good && g->tensor_count && g->logits_count)
		return 0;
	snprintf(g->error, sizeof(g->error), "%s: malformed near '%s', after %d tensors", path, word, g->tensor_count);
	golden_close(g);
	return -1;
}

#endif
