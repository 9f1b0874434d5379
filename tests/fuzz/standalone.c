/*
 * standalone.c - drives a fuzz target where libFuzzer is not to be had.
 *
 *     fuzz_data_idx [-runs=N] [-seed=S] [-max_total_time=SECONDS] [-max_len=BYTES] [FILE|DIRECTORY]...
 *
 * Runs every file as it is, then N mutations of them (of nothing, when there are none). The options are libFuzzer's, so
 * scripts need not know which they run. A failing input is written to crash-<seed>-<run> in the working directory.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
const char *__asan_default_options(void);

/* abort() is how assert fails: make it go through the report, and so through the callback. */
const char *__asan_default_options(void)
{
	return "handle_abort=1";
}

typedef struct input {
	uint8_t *data;
	size_t size;
} input;

static struct {
	input *inputs;
	size_t count;
	uint64_t seed, state, runs;
	size_t max_len;
	double max_time;
	input now; /* being tested */
	uint64_t run;
} fuzz = { .seed = 1, .runs = 10000, .max_len = 1 << 16 };

static void save_failing_input(void)
{
	char name[64];
	snprintf(name, sizeof(name), "crash-%llu-%llu", (unsigned long long)fuzz.seed, (unsigned long long)fuzz.run);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0)
		return;
	if (write(fd, fuzz.now.data, fuzz.now.size) == (ssize_t)fuzz.now.size)
		dprintf(2, "failing input: %s (seed %llu, run %llu)\n", name, (unsigned long long)fuzz.seed,
			(unsigned long long)fuzz.run);
	close(fd);
}

static void *must(void *memory)
{
	if (!memory) {
		perror("fuzz");
		exit(2);
	}
	return memory;
}

/* The target gets memory of exactly the input's size: one byte too far is seen. */
static void run_one(const uint8_t *data, size_t size)
{
	fuzz.now.data = must(malloc(size ? size : 1));
	fuzz.now.size = size;
	if (size)
		memcpy(fuzz.now.data, data, size);
	LLVMFuzzerTestOneInput(fuzz.now.data, size);
	free(fuzz.now.data);
	fuzz.run++;
}

static void add_file(const char *path)
{
	FILE *file = must(fopen(path, "rb"));
	uint8_t *data = must(malloc(fuzz.max_len));
	size_t size = fread(data, 1, fuzz.max_len, file);
	fclose(file);
	fuzz.inputs = must(realloc(fuzz.inputs, (fuzz.count + 1) * sizeof(*fuzz.inputs)));
	fuzz.inputs[fuzz.count++] = (input){ must(realloc(data, size ? size : 1)), size };
}

static void add_path(const char *path)
{
	DIR *directory = opendir(path);
	if (!directory) {
		add_file(path);
		return;
	}
	for (struct dirent *entry; (entry = readdir(directory));) {
		char file[4096];
		int length = snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		if (entry->d_name[0] != '.' && length > 0 && (size_t)length < sizeof(file))
			add_file(file);
	}
	closedir(directory);
}

static uint64_t draw(uint64_t below)
{
	uint64_t x = fuzz.state += 0x9E3779B97F4A7C15;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
	return (x ^ (x >> 31)) % below;
}

/* Lengths and counts that parsers get wrong, in either byte order. */
static uint64_t interesting(void)
{
	static const uint64_t values[] = { 0,          1,          0x7F,       0x80,          0xFF,
					   0x7FFF,     0x8000,     0xFFFF,     0x7FFFFFFF,    0x80000000,
					   0xFFFFFFFF, 0xFFFFFFF8, 0x40000001, 0x100000000,   INT64_MAX,
					   UINT64_MAX, 1ull << 62, 28,         0x0000080300u, 0x0000080100u };
	uint64_t value = values[draw(sizeof(values) / sizeof(values[0]))];
	return draw(2) ? value : __builtin_bswap64(value);
}

static void cut_out(uint8_t *data, size_t *size)
{
	size_t at = draw(*size), length = 1 + draw(*size - at);
	memmove(data + at, data + at + length, *size - at - length);
	*size -= length;
}

static void put_in(uint8_t *data, size_t *size)
{
	size_t room = fuzz.max_len - *size;
	if (!room)
		return;
	size_t at = draw(*size + 1), length = 1 + draw(room < 64 ? room : 64);
	memmove(data + at + length, data + at, *size - at);
	int same = draw(2) != 0;
	uint8_t byte = (uint8_t)draw(256);
	for (size_t i = 0; i < length; i++)
		data[at + i] = same ? byte : (uint8_t)draw(256);
	*size += length;
}

static void graft(uint8_t *data, size_t *size)
{
	const input *other = &fuzz.inputs[draw(fuzz.count)];
	if (!other->size)
		return;
	size_t at = draw(*size), from = draw(other->size), length = 1 + draw(other->size - from);
	if (length > fuzz.max_len - at)
		length = fuzz.max_len - at;
	memcpy(data + at, other->data + from, length);
	if (at + length > *size)
		*size = at + length;
}

static void overwrite(uint8_t *data, size_t size)
{
	uint64_t value = interesting();
	size_t at = draw(size), length = (size_t)1 << draw(4);
	for (size_t i = 0; i < length && at + i < size; i++)
		data[at + i] = (uint8_t)(value >> (8 * i));
}

/* `data` has room for max_len bytes. */
static void mutate(uint8_t *data, size_t *size)
{
	uint64_t kind = *size ? draw(8) : 4;
	if (kind == 0)
		data[draw(*size)] ^= (uint8_t)(1u << draw(8));
	else if (kind == 1)
		data[draw(*size)] = (uint8_t)draw(256);
	else if (kind == 2)
		*size = draw(*size + 1); /* truncate */
	else if (kind == 3)
		cut_out(data, size);
	else if (kind == 4)
		put_in(data, size);
	else if (kind == 5)
		graft(data, size);
	else
		overwrite(data, *size);
}

static int parse_option(const char *text)
{
	if (strncmp(text, "-runs=", 6) == 0)
		fuzz.runs = strtoull(text + 6, NULL, 10);
	else if (strncmp(text, "-seed=", 6) == 0)
		fuzz.seed = strtoull(text + 6, NULL, 10);
	else if (strncmp(text, "-max_len=", 9) == 0)
		fuzz.max_len = strtoull(text + 9, NULL, 10);
	else if (strncmp(text, "-max_total_time=", 16) == 0)
		fuzz.max_time = strtod(text + 16, NULL);
	else
		return text[0] == '-'; /* other options of libFuzzer mean nothing here */
	return 1;
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void run_mutations(uint8_t *data)
{
	double begin = now();
	for (uint64_t i = 0; i < fuzz.runs; i++) {
		if (fuzz.max_time > 0 && now() - begin > fuzz.max_time)
			break;
		const input *from = &fuzz.inputs[draw(fuzz.count)];
		size_t size = from->size;
		memcpy(data, from->data, size);
		for (uint64_t count = 1 + draw(4); count; count--)
			mutate(data, &size);
		run_one(data, size);
	}
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		parse_option(argv[i]);
	for (int i = 1; i < argc; i++)
		if (argv[i][0] != '-')
			add_path(argv[i]);
	fuzz.state = fuzz.seed;
	printf("seed %llu\n", (unsigned long long)fuzz.seed);
	fflush(stdout);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(save_failing_input);
	if (!fuzz.count) {
		fuzz.inputs = must(calloc(1, sizeof(*fuzz.inputs)));
		fuzz.inputs[fuzz.count++].data = must(malloc(1));
	}
	for (size_t i = 0; i < fuzz.count; i++)
		run_one(fuzz.inputs[i].data, fuzz.inputs[i].size);
	uint8_t *data = must(malloc(fuzz.max_len));
	run_mutations(data);
	printf("%llu runs\n", (unsigned long long)fuzz.run);
	free(data);
	for (size_t i = 0; i < fuzz.count; i++)
		free(fuzz.inputs[i].data);
	free(fuzz.inputs);
	return 0;
}
