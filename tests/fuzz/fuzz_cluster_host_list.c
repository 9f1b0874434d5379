/*
 * Any text as a file of hosts: refused with a message, or entries that, written out, read back the same.
 */
#include "fuzz/common.h"

#include "cluster/host_list.h"
#include "cluster/members.h"

static void check(const ls_host *hosts, size_t count)
{
	ls_host *again = NULL;
	size_t same = 0;
	char *text = ls_members_text(hosts, count);
	fuzz_require(count >= 1 && text);
	fuzz_require(ls_hosts_parse_list(&again, &same, text) == LS_OK && same == count);
	for (size_t i = 0; i < count; i++)
		fuzz_require(!strcmp(hosts[i].name, again[i].name) && hosts[i].devices == again[i].devices);
	ls_hosts_free(again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	ls_host *hosts = NULL;
	size_t count = 0;
	if (ls_host_list_parse(&hosts, &count, text, "list") == LS_OK)
		check(hosts, count);
	else
		fuzz_require(!hosts && ls_last_error()[0] != '\0');
	ls_hosts_free(hosts);
	free(text);
	return 0;
}
