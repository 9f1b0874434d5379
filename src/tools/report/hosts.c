/*
 * hosts.c - short names of hosts and shapes: host lists folded as Slurm writes them, "4" for equal nodes "4+4".
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/study.h"

enum { HOSTS_MAX = 64 };

/* "4+4" is 4 on each node; "3+2" stays. */
const char *ls_point_shape(ls_page *page, const ls_point_job *job)
{
	size_t length = strcspn(job->shape, "+");
	for (const char *at = job->shape + length; *at == '+'; at += 1 + length)
		if (strcspn(at + 1, "+") != length || strncmp(at + 1, job->shape, length) != 0)
			return ls_page_text(page, "%s", job->shape);
	return ls_page_text(page, "%.*s", (int)length, job->shape);
}

const char *ls_run_name(const ls_point *point)
{
	const char *slash = strrchr(point->key, '/');
	return slash && slash[1] ? slash + 1 : point->key;
}

const char *ls_point_host(const ls_results *results, const ls_point *point)
{
	if (point->node_count > 0 && point->nodes[0].host[0])
		return point->nodes[0].host;
	return results->machine.host[0] ? results->machine.host : "this host";
}

/* Number of digits at the end of every host name, after the same prefix; 0: the names cannot be folded. */
static size_t common_digits(const ls_point *point)
{
	const char *first = point->nodes[0].host;
	size_t length = strlen(first), digits = 0;
	while (digits < length && isdigit((unsigned char)first[length - 1 - digits]))
		digits++;
	for (size_t i = 1; i < point->node_count; i++) {
		const char *host = point->nodes[i].host;
		if (strlen(host) != length || strncmp(host, first, length - digits) != 0)
			return 0;
		for (size_t k = length - digits; k < length; k++)
			if (!isdigit((unsigned char)host[k]))
				return 0;
	}
	return digits <= 9 ? digits : 0;
}

/* gn[01-03,07] */
static const char *fold(ls_page *page, const ls_point *point, size_t digits)
{
	const char *first = point->nodes[0].host;
	size_t stem = strlen(first) - digits;
	const char *text = ls_page_text(page, "%.*s[%s", (int)stem, first, first + stem);
	for (size_t i = 1, from = 0; i <= point->node_count; i++) {
		int64_t before = strtoll(point->nodes[i - 1].host + stem, NULL, 10);
		if (i < point->node_count && strtoll(point->nodes[i].host + stem, NULL, 10) == before + 1)
			continue;
		if (i - 1 > from)
			text = ls_page_text(page, "%s-%s", text, point->nodes[i - 1].host + stem);
		if (i < point->node_count)
			text = ls_page_text(page, "%s,%s", text, point->nodes[i].host + stem);
		from = i;
	}
	return ls_page_text(page, "%s]", text);
}

const char *ls_point_hosts(ls_page *page, const ls_results *results, const ls_point *point)
{
	if (point->node_count < 2)
		return ls_page_text(page, "%s", ls_point_host(results, point));
	if (point->node_count > HOSTS_MAX)
		return ls_page_text(page, "%s and %zu more", point->nodes[0].host, point->node_count - 1);
	size_t digits = common_digits(point);
	if (digits > 1)
		return fold(page, point, digits);
	const char *text = ls_page_text(page, "%s", point->nodes[0].host);
	for (size_t i = 1; i < point->node_count; i++)
		text = ls_page_text(page, "%s, %s", text, point->nodes[i].host);
	return text;
}
