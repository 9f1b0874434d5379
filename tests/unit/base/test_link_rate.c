#include <stddef.h>
#include <stdint.h>

#include "base/link_rate.h"
#include "unit/test_main.h"

static void test_rates(void **state)
{
	static const struct {
		const char *text;
		double bits;
	} cases[] = {
		{ "1gbit", 1e9 },    { "100mbit", 1e8 }, { "2.5 Gbps", 2.5e9 }, { "64kbit", 64e3 }, { "1tbit/s", 1e12 },
		{ "9600bit", 9600 }, { "", 0 },          { "fast", 0 },         { "1gbitx", 0 },    { "-1gbit", 0 },
		{ "0gbit", 0 },      { "infgbit", 0 },   { "nangbit", 0 },      { "1", 0 },         { "1g", 0 },
		{ "gbit", 0 },       { "0x10gbit", 0 },  { " 1gbit", 0 },       { "+1gbit", 0 }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (ls_link_rate(cases[i].text) != cases[i].bits)
			fail_msg("'%s' is %g", cases[i].text, ls_link_rate(cases[i].text));
}

TEST_MAIN(test_rates)
