/*
 * Studies: lines, baselines, and names of lines and hosts.
 */
#include "tools/report/study.h"
#include "tools/report/variant.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <lockstep/train.h>

enum { MOST = 16 };

typedef struct sweep {
	ls_results results;
	ls_point points[MOST];
	ls_point_repeat repeats[MOST];
	ls_point_node nodes[MOST][4];
	ls_page page;
	ls_study study;
} sweep;

/* A done point on nodes of `per` devices each, on hosts named as given ("" ends them). */
static ls_point *add(sweep *s, const char *model, int batch, int nodes, int per, double rate, const char *const *hosts)
{
	size_t i = s->results.point_count++;
	ls_point *p = &s->points[i];
	assert_true(i < MOST);
	s->results.points = s->points;
	s->repeats[i].samples_per_s = rate;
	*p = (ls_point){ .state = LS_POINT_DONE, .repeats = &s->repeats[i], .repeat_count = 1, .samples_per_s = rate };
	snprintf(p->key, sizeof(p->key), "%zu", i);
	snprintf(p->job.kind, sizeof(p->job.kind), "bench");
	snprintf(p->job.model, sizeof(p->job.model), "%s", model);
	snprintf(p->job.strategy, sizeof(p->job.strategy), "%s", nodes > 1 ? "allreduce" : "local");
	snprintf(p->job.shape, sizeof(p->job.shape), "%d", per);
	for (int n = 1; n < nodes; n++)
		snprintf(p->job.shape + strlen(p->job.shape), sizeof(p->job.shape) - strlen(p->job.shape), "+%d", per);
	p->job.nodes = nodes;
	p->job.devices = nodes * per;
	p->job.batch = batch;
	p->nodes = s->nodes[i];
	for (; hosts && p->node_count < 4 && hosts[p->node_count]; p->node_count++)
		snprintf(p->nodes[p->node_count].host, sizeof(p->nodes[0].host), "%s", hosts[p->node_count]);
	return p;
}

static ls_study *study_of(sweep *s)
{
	assert_int_equal(ls_study_make(&s->study, &s->page, &s->results), LS_OK);
	return &s->study;
}

static void expect_line(const ls_line *line, const char *label, const char *heading, size_t count)
{
	assert_string_equal(line->label, label);
	assert_string_equal(line->heading, heading);
	assert_int_equal(line->count, count);
	for (size_t i = 1; i < count; i++)
		assert_true(line->points[i]->job.devices >= line->points[i - 1]->job.devices);
}

/* The published table: points of one node begin the line of several nodes. */
static void test_batches(void **state)
{
	sweep s = { 0 };
	(void)state;
	for (int batch = 32; batch <= 64; batch += 32) {
		add(&s, "bert", batch, 4, 8, 30 * batch, NULL);
		add(&s, "bert", batch, 1, 8, 7 * batch, NULL);
		add(&s, "bert", batch, 1, 1, batch, NULL);
	}
	ls_study *study = study_of(&s);
	assert_int_equal(study->line_count, 2);
	expect_line(&study->lines[0], "batch 32", "batch size = 32", 3);
	expect_line(&study->lines[1], "batch 64", "batch size = 64", 3);
	assert_ptr_equal(study->lines[1].base, &s.points[5]);
	assert_true(fabs(ls_study_speedup(study, &s.points[3]) - 30) < 1e-12);
	ls_page_release(&s.page);
}

/* Where one node has as many devices as several, it has a line of its own. */
static void test_overlap(void **state)
{
	sweep s = { 0 };
	(void)state;
	add(&s, "cnn", 8, 1, 1, 10, NULL);
	add(&s, "cnn", 8, 1, 4, 39, NULL);
	add(&s, "cnn", 8, 2, 2, 30, NULL);
	snprintf(s.points[2].job.rate, sizeof(s.points[2].job.rate), "1gbit");
	ls_study *study = study_of(&s);
	assert_int_equal(study->line_count, 2);
	expect_line(&study->lines[0], "cnn, one node", "one node, batch size = 8", 2);
	expect_line(&study->lines[1], "cnn", "batch size = 8", 2);
	assert_true(ls_study_seen(study, 1, &s.points[0]));
	assert_false(ls_study_seen(study, 1, &s.points[2]));
	ls_page_release(&s.page);
}

static void set_arguments(ls_point *point, const char *arguments)
{
	snprintf(point->job.arguments, sizeof(point->job.arguments), "%s", arguments);
}

/* A model with other options is another line with its own baseline, and named by the options that differ. */
static void test_variants(void **state)
{
	static const char *const arguments[] = { "--layers 8 --lr 0.01 --clip-norm 1", "--layers 6 --lr 0.01" };
	sweep s = { 0 };
	(void)state;
	for (int i = 0; i < 2; i++) {
		set_arguments(add(&s, "bert", 8, 1, 1, 10 + 10 * i, NULL), arguments[i]);
		set_arguments(add(&s, "bert", 8, 1, 2, 18 + 21 * i, NULL), arguments[i]);
	}
	set_arguments(add(&s, "cnn", 8, 1, 1, 10, NULL), "--width 3");
	ls_study *study = study_of(&s);
	assert_int_equal(study->line_count, 3);
	expect_line(&study->lines[0], "bert, --layers 8 --clip-norm 1",
		    "bert, --layers 8 --clip-norm 1, batch size = 8", 2);
	expect_line(&study->lines[1], "bert, --layers 6 no --clip-norm",
		    "bert, --layers 6 no --clip-norm, batch size = 8", 2);
	expect_line(&study->lines[2], "cnn", "cnn, batch size = 8", 1);
	assert_true(fabs(ls_study_speedup(study, &s.points[1]) - 1.8) < 1e-12);
	assert_true(fabs(ls_study_speedup(study, &s.points[3]) - 1.95) < 1e-12);
	assert_string_equal(ls_variant_model(&s.page, &s.results, &s.points[3]), "bert --layers 6 no --clip-norm");
	assert_string_equal(ls_variant_model(&s.page, &s.results, &s.points[4]), "cnn");
	snprintf(s.points[3].job.optimizer, sizeof(s.points[3].job.optimizer), "sgd");
	assert_null(ls_study_base(study, &s.points[3]));
	ls_page_release(&s.page);
}

/* Lines of servers and of allreduce are separate, but have the same baseline. */
static void test_strategies(void **state)
{
	sweep s = { 0 };
	(void)state;
	add(&s, "cnn", 8, 1, 1, 10, NULL);
	add(&s, "cnn", 8, 1, 2, 20, NULL);
	add(&s, "cnn", 8, 3, 1, 28, NULL);
	ls_point *ps = add(&s, "cnn", 8, 3, 1, 24, NULL);
	snprintf(ps->job.strategy, sizeof(ps->job.strategy), "ps");
	ps->job.servers = 1;
	ls_study *study = study_of(&s);
	assert_int_equal(study->line_count, 2);
	expect_line(&study->lines[0], "AllReduce", "AllReduce, batch size = 8", 3);
	expect_line(&study->lines[1], "PS", "PS, batch size = 8", 2);
	assert_ptr_equal(study->lines[1].points[0], &s.points[0]);
	ls_page_release(&s.page);
}

/* Every strategy has a line under its own name; servers, not names, decide which points lead in. */
static void test_every_strategy(void **state)
{
	sweep s = { 0 };
	(void)state;
	add(&s, "cnn", 8, 1, 1, 10, NULL);
	add(&s, "cnn", 8, 1, 2, 20, NULL);
	for (size_t i = 0; ls_strategy_at(i); i++) {
		ls_point *p = add(&s, "cnn", 8, 3, 1, 28, NULL);
		snprintf(p->job.strategy, sizeof(p->job.strategy), "%s", ls_strategy_at(i)->name);
		p->job.servers = ls_strategy_at(i)->has_servers;
	}
	ls_study *study = study_of(&s);
	assert_int_equal(study->line_count, 4);
	expect_line(&study->lines[0], "AllReduce", "AllReduce, batch size = 8", 3);
	expect_line(&study->lines[1], "PS", "PS, batch size = 8", 2);
	expect_line(&study->lines[2], "PS-async", "PS-async, batch size = 8", 2);
	expect_line(&study->lines[3], "MPI", "MPI, batch size = 8", 3);
	ls_page_release(&s.page);
}

/* Hosts that have a baseline are compared with it. */
static void test_hosts(void **state)
{
	sweep s = { 0 };
	(void)state;
	add(&s, "cnn", 8, 1, 1, 12, (const char *const[]){ "lm6", NULL });
	add(&s, "cnn", 8, 1, 1, 8, (const char *const[]){ "lm1", NULL });
	add(&s, "cnn", 8, 2, 1, 14, (const char *const[]){ "lm1", "lm6", NULL });
	ls_study *study = study_of(&s);
	assert_true(study->by_host);
	assert_ptr_equal(ls_study_base(study, &s.points[2]), &s.points[1]);
	assert_int_equal(study->line_count, 2);
	expect_line(&study->lines[0], "lm6, one node", "one node, lm6, batch size = 8", 1);
	expect_line(&study->lines[1], "from lm1", "from lm1, batch size = 8", 2);
	ls_page_release(&s.page);
}

/* Measured and simulated points are separate lines with their own baselines, under one heading. */
static void test_kinds(void **state)
{
	sweep s = { 0 };
	(void)state;
	add(&s, "cnn", 8, 1, 1, 10, NULL);
	add(&s, "cnn", 8, 1, 2, 19, NULL);
	add(&s, "cnn", 8, 1, 1, 9, NULL)->job.replay = 1;
	add(&s, "cnn", 8, 1, 4, 33, NULL)->job.replay = 1;
	add(&s, "cnn", 8, 2, 4, 66, NULL)->job.replay = 1;
	ls_study *study = study_of(&s);
	assert_int_equal(study->line_count, 2);
	expect_line(&study->lines[0], "cnn", "batch size = 8", 2);
	expect_line(&study->lines[1], "simulated", "batch size = 8", 3);
	for (size_t l = 0; l < study->line_count; l++)
		for (size_t i = 0; i < study->lines[l].count; i++) {
			assert_int_equal(ls_point_figure(study->lines[l].points[i]), study->lines[l].figure);
			assert_int_equal(ls_point_figure(ls_study_base(study, study->lines[l].points[i])),
					 study->lines[l].figure);
		}
	assert_true(fabs(ls_study_speedup(study, &s.points[4]) - 66.0 / 9) < 1e-12);
	s.points[2].state = LS_POINT_FAILED; /* no baseline of its own: no speedup at all */
	assert_true(ls_study_speedup(study, &s.points[4]) == 0);
	assert_non_null(strstr(ls_study_flag(study, &s.points[4]),
			       "no speedup: this row is simulated, the row of one device measured"));
	ls_page_release(&s.page);
}

static void test_none(void **state)
{
	sweep s = { 0 };
	(void)state;
	add(&s, "cnn", 8, 1, 2, 12, NULL);
	add(&s, "cnn", 8, 1, 1, 12, NULL)->state = LS_POINT_FAILED;
	ls_study *study = study_of(&s);
	assert_int_equal(study->line_count, 1);
	assert_null(study->lines[0].base);
	assert_true(ls_study_speedup(study, &s.points[0]) == 0);
	ls_page_release(&s.page);
}

static void expect_hosts(const char *const *hosts, const char *expected)
{
	sweep s = { 0 };
	const ls_point *point = add(&s, "cnn", 8, 3, 1, 1, hosts);
	assert_string_equal(ls_point_hosts(&s.page, &s.results, point), expected);
	ls_page_release(&s.page);
}

static void test_places(void **state)
{
	(void)state;
	expect_hosts((const char *const[]){ "gn01", "gn02", "gn03", NULL }, "gn[01-03]");
	expect_hosts((const char *const[]){ "gn01", "gn02", "gn07", NULL }, "gn[01-02,07]");
	expect_hosts((const char *const[]){ "gn02", "gn05", NULL }, "gn[02,05]");
	expect_hosts((const char *const[]){ "gn08", "gn09", "gn10", NULL }, "gn[08-10]");
	expect_hosts((const char *const[]){ "lm1", "lm6", NULL }, "lm1, lm6");
	expect_hosts((const char *const[]){ "gn01", "x01", NULL }, "gn01, x01");
	expect_hosts((const char *const[]){ "gn01", "gn0x", NULL }, "gn01, gn0x");
	expect_hosts((const char *const[]){ "only", NULL }, "only");
	expect_hosts(NULL, "this host");
}

static void test_shapes(void **state)
{
	static const char *const cases[][2] = { { "4", "4" },       { "4+4", "4" },     { "3+2", "3+2" },
						{ "2+2+2+2", "2" }, { "1+11", "1+11" }, { "11+1", "11+1" },
						{ "12+12", "12" } };
	ls_page page = LS_PAGE_INIT;
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ls_point_job job = { .nodes = 1 };
		snprintf(job.shape, sizeof(job.shape), "%s", cases[i][0]);
		assert_string_equal(ls_point_shape(&page, &job), cases[i][1]);
	}
	ls_page_release(&page);
	assert_true(ls_model_related("bert-mini", "bert-base") && ls_model_related("cnn", "cnn"));
	assert_false(ls_model_related("resnet18", "resnet101") || ls_model_related("bert", "bert-base"));
}

TEST_MAIN(test_batches, test_overlap, test_variants, test_strategies, test_every_strategy, test_hosts, test_kinds,
	  test_none, test_places, test_shapes)
