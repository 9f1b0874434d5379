/*
 * Any text as a list of hosts: refused with a message, or entries that, written out again, are the text.
 */
#include <lockstep/launch.h>

#include "fuzz/common.h"

static void check(const ls_host *hosts, size_t count, const char *text)
{
	fuzz_require(count >= 1);
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(hosts[i].name);
		fuzz_require(length > 0 && length < sizeof(hosts[i].name) && hosts[i].name[0] != '-');
		fuzz_require(hosts[i].devices >= 0 && hosts[i].devices <= 4096);
		fuzz_require(!hosts[i].devices == !hosts[0].devices);
		fuzz_require(strncmp(text, hosts[i].name, length) == 0 && strchr(",:", text[length]));
		fuzz_require((text[length] == ':') == (hosts[i].devices > 0));
		text += strcspn(text, ",");
		text += *text == ',';
		(void)ls_host_is_here(hosts[i].name);
	}
	fuzz_require(*text == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	ls_host *hosts = NULL;
	size_t count = 0;
	if (text[0] == '@') /* a file's name */
		text[0] = 'a';
	if (ls_hosts_parse(&hosts, &count, text) == LS_OK)
		check(hosts, count, text);
	else
		fuzz_require(!hosts && ls_last_error()[0] != '\0');
	ls_hosts_free(hosts);
	free(text);
	return 0;
}
