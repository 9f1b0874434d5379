/*
 * Who may take part in the next start of an elastic run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/members.h"
#include "unit/test_main.h"

static void name_all(ls_members *m, const char *text)
{
	ls_host *hosts = NULL;
	size_t count = 0;
	assert_int_equal(ls_hosts_parse(&hosts, &count, text), LS_OK);
	assert_int_equal(ls_members_name(m, hosts, count), LS_OK);
	ls_hosts_free(hosts);
}

static void expect(const ls_members *m, double now, const char *expected)
{
	ls_host *hosts = calloc(m->count + 1, sizeof(*hosts));
	size_t count = ls_members_usable(m, now, hosts);
	char *text = ls_members_text(hosts, count);
	assert_string_equal(text, expected);
	free(text);
	free(hosts);
}

static void hosts_come_and_go(void **state)
{
	ls_members m = { 0 };
	(void)state;
	name_all(&m, "a:4,b:2,c:1");
	expect(&m, 0, "a:4,b:2,c:1");
	ls_members_set_silent(&m, "b", 1);
	expect(&m, 0, "a:4,c:1");
	name_all(&m, "c:3,d:1,b:2");
	expect(&m, 0, "c:3,d:1"); /* b is still silent, a is not named any more */
	ls_members_set_silent(&m, "b", 0);
	expect(&m, 0, "b:2,c:3,d:1"); /* in the order they were first named: ranks change as little as can be */
	assert_int_equal(ls_members_named(&m), 3);
	name_all(&m, "a");
	expect(&m, 0, "a");
	ls_members_release(&m);
}

static void three_failures_in_a_row(void **state)
{
	ls_members m = { 0 };
	double now = 100;
	(void)state;
	name_all(&m, "a:1,b:1");
	assert_false(ls_members_blame(&m, "b", now));
	assert_false(ls_members_blame(&m, "b", now));
	ls_members_clear(&m, "b"); /* it trained: no row */
	assert_false(ls_members_blame(&m, "b", now));
	assert_false(ls_members_blame(&m, "b", now));
	expect(&m, now, "a:1,b:1");
	assert_true(ls_members_blame(&m, "b", now));
	expect(&m, now + LS_MEMBER_OUT_S - 1, "a:1");
	expect(&m, now + LS_MEMBER_OUT_S, "a:1,b:1");
	for (double out = 2 * LS_MEMBER_OUT_S; out < 1e5; out *= 2) { /* twice as long, up to a limit */
		now += 1e6;
		assert_false(ls_members_blame(&m, "b", now));
		assert_false(ls_members_blame(&m, "b", now));
		assert_true(ls_members_blame(&m, "b", now));
		double least = out < LS_MEMBER_OUT_MOST_S ? out : LS_MEMBER_OUT_MOST_S;
		expect(&m, now + least - 1, "a:1");
		expect(&m, now + least, "a:1,b:1");
	}
	assert_false(ls_members_blame(&m, "nobody", now));
	ls_members_set_silent(&m, "nobody", 1);
	assert_null(ls_members_find(&m, "nobody"));
	ls_members_release(&m);
}

/* Hosts that fail in turn: no start lasts, and none of them fails in a row. */
static void failures_far_apart(void **state)
{
	ls_members m = { 0 };
	double now = 100;
	(void)state;
	name_all(&m, "a:1,b:1");
	for (int i = 0; i < 10; i++, now += LS_MEMBER_ROW_S + 1)
		assert_false(ls_members_blame(&m, "b", now));
	assert_false(ls_members_blame(&m, "b", now));
	assert_false(ls_members_blame(&m, "b", now + LS_MEMBER_ROW_S));
	assert_true(ls_members_blame(&m, "b", now + 2 * LS_MEMBER_ROW_S));
	ls_members_release(&m);
}

static void twice(void **state)
{
	ls_members m = { 0 };
	ls_host *hosts = NULL;
	size_t count = 0;
	(void)state;
	name_all(&m, "a:1,b:1");
	assert_int_equal(ls_hosts_parse(&hosts, &count, "a:1,c:1,a:2"), LS_OK);
	assert_int_equal(ls_members_name(&m, hosts, count), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "'a' is named twice"));
	ls_hosts_free(hosts);
	expect(&m, 0, "a:1,b:1"); /* as it was */
	ls_members_release(&m);
}

static void note(void *context, const char *name, ls_member_change change)
{
	static const char signs[] = { [LS_MEMBER_NEW] = '+', [LS_MEMBER_BACK] = '*', [LS_MEMBER_REMOVED] = '-' };
	char *text = context;
	size_t used = strlen(text);
	snprintf(text + used, 64 - used, "%c%s", signs[change], name);
}

static void starts_as(ls_members *m, const char *expected)
{
	char text[64] = "";
	ls_host *hosts = calloc(m->count + 1, sizeof(*hosts));
	size_t count = ls_members_usable(m, 0, hosts);
	ls_members_start(m, hosts, count, note, text);
	assert_string_equal(text, expected);
	free(hosts);
}

static void changes_between_starts(void **state)
{
	ls_members m = { 0 };
	(void)state;
	name_all(&m, "a:1,b:1");
	ls_members_start(&m, (ls_host[]){ { .name = "a" }, { .name = "b" } }, 2, NULL, NULL);
	starts_as(&m, "");
	ls_members_set_silent(&m, "b", 1);
	starts_as(&m, ""); /* that it is silent was said before */
	ls_members_set_silent(&m, "b", 0);
	name_all(&m, "b:1,c:1");
	starts_as(&m, "-a*b+c");
	starts_as(&m, "");
	ls_members_release(&m);
}

static void possible(const ls_members *m, double now, const char *expected)
{
	ls_host *hosts = calloc(m->count + 1, sizeof(*hosts));
	char *text = ls_members_text(hosts, ls_members_possible(m, now, hosts));
	assert_string_equal(text, expected);
	free(text);
	free(hosts);
}

/* ssh may reach a host where the port that is asked does not answer. */
static void silence_counts_of_who_has_answered(void **state)
{
	static const ls_host all[] = { { .name = "a" }, { .name = "b" }, { .name = "c" } };
	const ls_address somewhere = { .length = 16 };
	ls_members m = { 0 };
	(void)state;
	name_all(&m, "a:1,b:1,c:1");
	ls_members_train(&m, all, 2);
	ls_members_set_address(&m, "a", &somewhere);
	assert_int_equal(ls_members_find(&m, "a")->address.length, 16);
	for (int i = 0; i < 3; i++)
		ls_members_set_silent(&m, all[i].name, 1);
	expect(&m, 0, "b:1"); /* a has answered; b has trained, and never answered; c has done neither */
	possible(&m, 0, "b:1,c:1");
	ls_members_start(&m, all, 3, NULL, NULL); /* then it counts as there */
	expect(&m, 0, "a:1,b:1,c:1");
	ls_members_train(&m, all + 1, 2);
	ls_members_set_silent(&m, "c", 1);
	expect(&m, 0, "a:1,b:1,c:1"); /* by now c has trained */
	assert_false(ls_members_find(&m, "a")->is_proven);
	assert_true(ls_members_find(&m, "a")->has_trained && ls_members_find(&m, "c")->is_proven);
	ls_members_release(&m);
}

static void left_out_for_a_while(void **state)
{
	ls_members m = { 0 };
	(void)state;
	name_all(&m, "a:1,b:1");
	ls_members_exclude(&m, "b", 100);
	ls_members_set_silent(&m, "b", 0); /* that it answers does not make it fit */
	expect(&m, 100 + LS_MEMBER_OUT_S - 1, "a:1");
	expect(&m, 100 + LS_MEMBER_OUT_S, "a:1,b:1");
	ls_members_exclude(&m, "b", 200);
	expect(&m, 200 + 2 * LS_MEMBER_OUT_S - 1, "a:1");
	ls_members_doubt(&m, "a", 1000, 15);
	expect(&m, 1014, "b:1");
	expect(&m, 1015, "a:1,b:1");
	possible(&m, 1000, "b:1");
	ls_members_set_silent(&m, "a", 0); /* it was thought to be off */
	expect(&m, 1000, "a:1,b:1");
	ls_members_doubt(&m, "a", 1000, 15);
	name_all(&m, "a:1,b:1");
	expect(&m, 1000, "b:1");
	name_all(&m, "b:1");
	name_all(&m, "a:1,b:1"); /* as Slurm does with a node that is up again */
	expect(&m, 1000, "a:1,b:1");
	ls_members_exclude(&m, "nobody", 0);
	ls_members_doubt(&m, "nobody", 0, 15);
	ls_members_release(&m);
}

TEST_MAIN(silence_counts_of_who_has_answered, left_out_for_a_while, hosts_come_and_go, three_failures_in_a_row,
	  failures_far_apart, twice, changes_between_starts)
