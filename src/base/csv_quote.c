#include "base/csv_quote.h"

void ls_csv_quote(FILE *to, const char *text)
{
	putc('"', to);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', to);
		putc(*text, to);
	}
	putc('"', to);
}
