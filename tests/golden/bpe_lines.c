/*
 * bpe_lines.c - byte-pair encoding as a filter, for bpe.py to compare with.
 *
 *     bpe_lines                 print the version of Unicode it knows
 *     bpe_lines DIR             answer each line of hexadecimal bytes with the ids of that text, by DIR/vocab.json and
 *                               DIR/merges.txt
 *     bpe_lines DIR FILE N      encode a file N times, print bytes per second of the fastest
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "hex.h"

#include "base/clock.h"
#include "base/files.h"
#include "tokenizer/bpe.h"

static int fail(void)
{
	fprintf(stderr, "%s\n", ls_last_error());
	return 1;
}

static int answer(const ls_bpe *bpe, char *line)
{
	size_t bytes = hex_decode(line);
	ls_tokens tokens = { 0 };
	char *text = malloc(bytes + 1); /* of its size, so that a sanitizer sees a byte too far */
	if (!text)
		return 1;
	memcpy(text, line, bytes);
	int failed = ls_bpe_encode(bpe, text, bytes, &tokens) != LS_OK && fail();
	for (size_t i = 0; i < tokens.count; i++)
		printf("%s%d", i ? " " : "", (int)tokens.ids[i]);
	putchar('\n');
	ls_tokens_free(&tokens);
	free(text);
	return failed;
}

static int answer_all(const ls_bpe *bpe)
{
	static char line[1 << 20];
	int failed = 0;
	while (!failed && fgets(line, sizeof(line), stdin))
		failed = answer(bpe, line);
	return failed;
}

static int measure(const ls_bpe *bpe, const char *path, int times)
{
	ls_file_map file;
	double best = 0;
	if (ls_file_map_open(&file, path) != LS_OK)
		return fail();
	for (int i = 0; i < times; i++) {
		ls_tokens tokens = { 0 };
		double began = ls_clock_seconds();
		if (ls_bpe_encode(bpe, (const char *)file.data, file.bytes, &tokens) != LS_OK)
			return fail();
		double rate = (double)file.bytes / (ls_clock_seconds() - began);
		best = rate > best ? rate : best;
		ls_tokens_free(&tokens);
	}
	printf("%.0f\n", best);
	ls_file_map_close(&file);
	return 0;
}

int main(int argc, char **argv)
{
	ls_bpe *bpe;
	if (argc < 2)
		return puts(utf8proc_unicode_version()) < 0;
	if (ls_bpe_load(&bpe, argv[1]) != LS_OK)
		return fail();
	int failed = argc == 4 ? measure(bpe, argv[2], atoi(argv[3])) : answer_all(bpe);
	ls_bpe_free(bpe);
	return failed;
}
