#include "cluster/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"

static ls_member *find(const ls_members *m, const char *name)
{
	for (size_t i = 0; i < m->count; i++)
		if (!strcmp(m->list[i].host.name, name))
			return &m->list[i];
	return NULL;
}

const ls_member *ls_members_find(const ls_members *m, const char *name)
{
	return find(m, name);
}

static ls_status check_twice(const ls_host *hosts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(hosts[i].name, hosts[k].name))
				return ls_fail(
					LS_EINVALID,
					"hosts: '%s' is named twice; an elastic run has one node per host: name it "
					"once, with all its devices",
					hosts[i].name);
	return LS_OK;
}

ls_status ls_members_name(ls_members *m, const ls_host *hosts, size_t count)
{
	LS_TRY(check_twice(hosts, count));
	LS_TRY(ls_array_grow(&m->list, &m->capacity, m->count + count, sizeof(*m->list)));
	for (size_t i = 0; i < m->count; i++) {
		m->list[i].was_named = m->list[i].is_named;
		m->list[i].is_named = 0;
	}
	for (size_t i = 0; i < count; i++) {
		ls_member *known = find(m, hosts[i].name);
		if (!known) {
			known = &m->list[m->count++];
			*known = (ls_member){ .failures = 0 };
		}
		known->host = hosts[i];
		known->is_named = 1;
		if (known->is_doubted && !known->was_named)
			known->out_until = known->is_doubted = 0;
	}
	return LS_OK;
}

void ls_members_release(ls_members *m)
{
	free(m->list);
	*m = (ls_members){ 0 };
}

static void exclude(ls_member *member, double now)
{
	member->failures = 0;
	member->is_doubted = 0;
	member->out_s = member->out_s > 0 ? 2 * member->out_s : LS_MEMBER_OUT_S;
	if (member->out_s > LS_MEMBER_OUT_MOST_S)
		member->out_s = LS_MEMBER_OUT_MOST_S;
	member->out_until = now + member->out_s;
}

int ls_members_blame(ls_members *m, const char *name, double now)
{
	ls_member *member = find(m, name);
	if (!member)
		return 0;
	if (now - member->failed_at > LS_MEMBER_ROW_S)
		member->failures = 0;
	member->failed_at = now;
	if (++member->failures < LS_MEMBER_FAILURES)
		return 0;
	exclude(member, now);
	return 1;
}

void ls_members_exclude(ls_members *m, const char *name, double now)
{
	ls_member *member = find(m, name);
	if (member)
		exclude(member, now);
}

void ls_members_doubt(ls_members *m, const char *name, double now, double first_s)
{
	ls_member *member = find(m, name);
	if (!member)
		return;
	if (member->out_s <= 0)
		member->out_s = first_s / 2; /* and doubled */
	exclude(member, now);
	member->is_doubted = 1;
}

void ls_members_clear(ls_members *m, const char *name)
{
	ls_member *member = find(m, name);
	if (member)
		member->failures = 0;
}

void ls_members_set_silent(ls_members *m, const char *name, int is_silent)
{
	ls_member *member = find(m, name);
	if (!member)
		return;
	if (member->is_doubted && !is_silent)
		member->out_until = member->is_doubted = 0;
	member->is_silent = is_silent && (member->has_answered || !member->has_trained);
	member->has_answered |= !is_silent;
}

void ls_members_set_address(ls_members *m, const char *name, const ls_address *address)
{
	ls_member *member = find(m, name);
	ls_members_set_silent(m, name, 0);
	if (member)
		member->address = *address;
}

static int is_in(const ls_host *hosts, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(hosts[i].name, name))
			return 1;
	return 0;
}

void ls_members_train(ls_members *m, const ls_host *hosts, size_t count)
{
	for (size_t i = 0; i < m->count; i++) {
		m->list[i].is_proven = is_in(hosts, count, m->list[i].host.name);
		m->list[i].has_trained |= m->list[i].is_proven;
	}
}

void ls_members_start(ls_members *m, const ls_host *hosts, size_t count, ls_member_change_fn *changed, void *context)
{
	for (size_t i = 0; i < m->count; i++) {
		ls_member *member = &m->list[i];
		int is_now = is_in(hosts, count, member->host.name);
		if (changed && is_now && !member->takes_part)
			changed(context, member->host.name, member->took_part ? LS_MEMBER_BACK : LS_MEMBER_NEW);
		if (changed && !is_now && member->takes_part && !member->is_named)
			changed(context, member->host.name, LS_MEMBER_REMOVED);
		member->takes_part = is_now;
		member->took_part |= is_now;
		member->is_silent &= !is_now;
	}
}

static size_t list_those(const ls_members *m, double now, int with_doubtful, ls_host *out)
{
	size_t count = 0;
	for (size_t i = 0; i < m->count; i++) {
		const ls_member *member = &m->list[i];
		int answers = !member->is_silent || (with_doubtful && !member->has_answered);
		if (member->is_named && answers && member->out_until <= now)
			out[count++] = member->host;
	}
	return count;
}

size_t ls_members_usable(const ls_members *m, double now, ls_host *out)
{
	return list_those(m, now, 0, out);
}

size_t ls_members_possible(const ls_members *m, double now, ls_host *out)
{
	return list_those(m, now, 1, out);
}

size_t ls_members_named(const ls_members *m)
{
	size_t count = 0;
	for (size_t i = 0; i < m->count; i++)
		count += (size_t)m->list[i].is_named;
	return count;
}

char *ls_members_text(const ls_host *hosts, size_t count)
{
	size_t room = count * (sizeof(hosts->name) + 16) + 1, used = 0;
	char *text = malloc(room);
	if (!text)
		return NULL;
	text[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		used += (size_t)snprintf(text + used, room - used, "%s%s", i ? "," : "", hosts[i].name);
		if (hosts[i].devices)
			used += (size_t)snprintf(text + used, room - used, ":%d", hosts[i].devices);
	}
	return text;
}
