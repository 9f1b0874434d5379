/*
 * Getting files: right or absent, continued after a break, from whichever source works.
 */
#include "unit/data/fixture.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/status.h"
#include "fetch/download.h"
#include "fetch/get.h"
#include "fetch/md5.h"
#include "fetch/tar.h"
#include "unit/fetch/server.h"

#define CONTENT_BYTES 50000

/* Not very compressible, so that a half download is really half. */
static uint8_t content[CONTENT_BYTES];
static char content_md5[33];

static void md5_of(const void *data, size_t bytes, char hex[33])
{
	ls_md5 md5;
	ls_md5_begin(&md5);
	ls_md5_add(&md5, data, bytes);
	ls_md5_end(&md5, hex);
}

static int make_content(void **state)
{
	(void)state;
	for (size_t i = 0; i < CONTENT_BYTES; i++)
		content[i] = (uint8_t)ls_mix64(i);
	md5_of(content, CONTENT_BYTES, content_md5);
	return 0;
}

static const ls_get_file one_file[] = { { "some-idx1-ubyte", content_md5, CONTENT_BYTES } };

static ls_get_plan plan_of(const char *const *mirrors, const char *package)
{
	return (ls_get_plan){ .name = "some",
			      .files = one_file,
			      .count = 1,
			      .mirrors = mirrors,
			      .package = package,
			      .package_dir = "package/data/" };
}

static void assert_whole(const char *dir)
{
	size_t bytes;
	uint8_t *found = take_file(in_dir(dir, "some-idx1-ubyte"), &bytes);
	assert_int_equal(bytes, CONTENT_BYTES);
	assert_memory_equal(found, content, CONTENT_BYTES);
	free(found);
	assert_false(ls_path_exists(in_dir(dir, "some-idx1-ubyte.gz.part")));
	assert_int_equal(count_matches(in_dir(dir, "*.draft")), 0);
}

static void md5_known_answers(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{ "", "d41d8cd98f00b204e9800998ecf8427e" },
		{ "abc", "900150983cd24fb0d6963f7d28e17f72" },
		{ "abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b" },
		{ "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
		  "57edf4a22be3c955ac49da2e2107b67a" },
	};
	char hex[33], pieces[33];
	for (size_t i = 0; i < 4; i++) {
		md5_of(cases[i][0], strlen(cases[i][0]), hex);
		assert_string_equal(hex, cases[i][1]);
	}
	for (size_t bytes = 0; bytes < 300; bytes += 7) { /* in pieces of all sizes */
		ls_md5 md5;
		ls_md5_begin(&md5);
		for (size_t at = 0, part = 1; at < bytes; at += part, part = part % 70 + 1) {
			part = bytes - at < part ? bytes - at : part;
			ls_md5_add(&md5, content + at, part);
		}
		ls_md5_end(&md5, pieces);
		md5_of(content, bytes, hex);
		assert_string_equal(pieces, hex);
	}
}

static void from_a_directory(void **state)
{
	static const char *const spellings[] = { "some-idx1-ubyte", "some-idx1-ubyte.gz", "some.idx1-ubyte",
						 "some.idx1-ubyte.gz" };
	for (int i = 0; i < 4; i++) {
		char from[4096], to[4096], name[16];
		size_t packed_bytes;
		uint8_t *packed = gzip_bytes(content, CONTENT_BYTES, &packed_bytes);
		snprintf(name, sizeof(name), "from%d", i);
		assert_ok(ls_path_join(from, sizeof(from), *state, name));
		snprintf(name, sizeof(name), "to%d", i);
		assert_ok(ls_path_join(to, sizeof(to), *state, name));
		mkdir(from, 0777);
		put_file(in_dir(from, spellings[i]), i & 1 ? packed : content, i & 1 ? packed_bytes : CONTENT_BYTES);
		ls_get_plan plan = plan_of(NULL, NULL);
		ls_data_get_options options = {
			.size = sizeof(ls_data_get_options), .from = from, .dir = to, .quiet = 1
		};
		assert_ok(ls_get_run(&plan, &options));
		assert_whole(to);
		options.from = "/nowhere/at/all"; /* it is complete: no source is needed any more */
		assert_ok(ls_get_run(&plan, &options));
		free(packed);
	}
}

static void wrong_files_are_refused(void **state)
{
	char from[4096], to[4096];
	assert_ok(ls_path_join(from, sizeof(from), *state, "from"));
	assert_ok(ls_path_join(to, sizeof(to), *state, "to"));
	mkdir(from, 0777);
	ls_get_plan plan = plan_of(NULL, NULL);
	ls_data_get_options options = { .size = sizeof(ls_data_get_options), .from = from, .dir = to, .quiet = 1 };
	assert_fails(ls_get_run(&plan, &options), LS_ENOTFOUND, "there is no some-idx1-ubyte");
	put_file(in_dir(from, "some-idx1-ubyte"), content, CONTENT_BYTES - 1);
	assert_fails(ls_get_run(&plan, &options), LS_EMISMATCH, "holds 49999 bytes, some-idx1-ubyte has 50000");
	content[100] ^= 1;
	put_file(in_dir(from, "some-idx1-ubyte"), content, CONTENT_BYTES);
	content[100] ^= 1;
	assert_fails(ls_get_run(&plan, &options), LS_EMISMATCH, "MD5 is");
	uint8_t *zeros = calloc(1, 1 << 22);
	size_t bytes;
	uint8_t *packed = gzip_bytes(zeros, 1 << 22, &bytes);
	put_file(in_dir(from, "some-idx1-ubyte"), packed, bytes);
	assert_fails(ls_get_run(&plan, &options), LS_EMISMATCH, "decompresses to more than the 50000 bytes");
	put_file(in_dir(from, "some-idx1-ubyte"), packed, bytes / 2);
	assert_int_not_equal(ls_get_run(&plan, &options), LS_OK);
	assert_false(ls_path_exists(in_dir(to, "some-idx1-ubyte")));
	assert_int_equal(count_matches(in_dir(to, "*.draft")), 0);

	/* a damaged file under the final name is replaced by a right one */
	put_file(in_dir(to, "some-idx1-ubyte"), "damaged", 7);
	put_file(in_dir(from, "some-idx1-ubyte"), content, CONTENT_BYTES);
	assert_ok(ls_get_run(&plan, &options));
	assert_whole(to);
	free(packed);
	free(zeros);
}

static void from_a_mirror_in_two_halves(void **state)
{
	size_t bytes;
	uint8_t *packed = gzip_bytes(content, CONTENT_BYTES, &bytes);
	server s;
	assert_int_equal(server_start(&s, packed, bytes), 0);
	const char *const mirrors[] = { s.url, NULL };
	ls_get_plan plan = plan_of(mirrors, NULL);
	ls_data_get_options options = { .size = sizeof(ls_data_get_options), .dir = *state, .quiet = 1 };
	s.mode = SERVE_HALF;
	assert_fails(ls_get_run(&plan, &options), LS_EIO, "could not get some; tried:");
	assert_non_null(strstr(ls_last_error(), s.url));
	assert_false(ls_path_exists(in_dir(*state, "some-idx1-ubyte")));
	struct stat facts;
	assert_int_equal(stat(in_dir(*state, "some-idx1-ubyte.gz.part"), &facts), 0);
	assert_int_equal(facts.st_size, bytes / 2);
	s.mode = SERVE_RANGES;
	assert_ok(ls_get_run(&plan, &options));
	assert_whole(*state);
	assert_int_equal(s.sent, bytes); /* nothing was fetched twice */
	server_stop(&s);
	free(packed);
}

/* A part that the server cannot continue, is longer than the file, or was begun from other bytes. */
static void parts_that_cannot_be_continued(void **state)
{
	size_t bytes;
	uint8_t *packed = gzip_bytes(content, CONTENT_BYTES, &bytes);
	uint8_t *rubbish = calloc(1, bytes + 100);
	const struct {
		int mode;
		size_t part;
	} cases[] = {
		{ SERVE_WHOLE, 1000 }, { SERVE_RANGES, bytes + 100 }, { SERVE_RANGES, bytes }, { SERVE_RANGES, 500 }
	};
	server s;
	assert_int_equal(server_start(&s, packed, bytes), 0);
	const char *const mirrors[] = { s.url, NULL };
	ls_get_plan plan = plan_of(mirrors, NULL);
	ls_data_get_options options = { .size = sizeof(ls_data_get_options), .dir = *state, .quiet = 1 };
	for (size_t i = 0; i < 4; i++) {
		unlink(in_dir(*state, "some-idx1-ubyte"));
		put_file(in_dir(*state, "some-idx1-ubyte.gz.part"), rubbish, cases[i].part);
		s.mode = cases[i].mode;
		assert_ok(ls_get_run(&plan, &options));
		assert_whole(*state);
	}
	server_stop(&s);
	free(rubbish);
	free(packed);
}

static void wrong_bytes_from_a_mirror(void **state)
{
	size_t bytes;
	content[7] ^= 1;
	uint8_t *packed = gzip_bytes(content, CONTENT_BYTES, &bytes);
	content[7] ^= 1;
	server s;
	assert_int_equal(server_start(&s, packed, bytes), 0);
	const char *const mirrors[] = { "http://127.0.0.1:1/", s.url, NULL }; /* nobody listens on port 1 */
	ls_get_plan plan = plan_of(mirrors, NULL);
	ls_data_get_options options = { .size = sizeof(ls_data_get_options), .dir = *state, .quiet = 1 };
	assert_fails(ls_get_run(&plan, &options), LS_EIO, "http://127.0.0.1:1/");
	assert_non_null(strstr(ls_last_error(), "MD5 is"));
	assert_non_null(strstr(ls_last_error(), "`options.data glyphs`"));
	s.mode = SERVE_NOTHING;
	assert_fails(ls_get_run(&plan, &options), LS_EIO, "404");
	assert_false(ls_path_exists(in_dir(*state, "some-idx1-ubyte")));
	assert_false(ls_path_exists(in_dir(*state, "some-idx1-ubyte.gz.part")));
	server_stop(&s);
	free(packed);
}

static void more_than_allowed_is_not_fetched(void **state)
{
	uint8_t *big = calloc(1, 1 << 20);
	server s;
	assert_int_equal(server_start(&s, big, 1 << 20), 0);
	ls_download_options options = { .url = s.url, .part = in_dir(*state, "x.part"), .limit = 1000, .quiet = 1 };
	assert_fails(ls_download(&options), LS_EFORMAT, "larger than the 1000 bytes");
	options.url = "file:///etc/hostname";
	assert_int_equal(ls_download(&options), LS_EIO); /* only http and https */
	server_stop(&s);
	free(big);
}

/* A program's own downloader: appends `content` from where the part ends. */
static uint64_t asked_from;
static ls_status bring_content(void *context, const char *url, const char *part, uint64_t have, uint64_t limit)
{
	FILE *file = fopen(part, "ab");
	(void)limit;
	asked_from = have;
	assert_string_equal(url, "http://nowhere.invalid/x");
	assert_non_null(file);
	size_t written = fwrite(content + have, 1, CONTENT_BYTES - have, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(written, CONTENT_BYTES - have);
	return *(ls_status *)context;
}

static void a_program_downloads_itself(void **state)
{
	ls_status outcome = LS_OK;
	ls_download_options options = { .url = "http://nowhere.invalid/x",
					.part = in_dir(*state, "x.part"),
					.quiet = 1 };
	size_t bytes;

	ls_set_downloader(bring_content, &outcome);
	put_file(options.part, content, 123);
	options.limit = CONTENT_BYTES;
	assert_ok(ls_download(&options));
	assert_int_equal(asked_from, 123);
	uint8_t *found = take_file(options.part, &bytes);
	assert_int_equal(bytes, CONTENT_BYTES);
	assert_memory_equal(found, content, CONTENT_BYTES);
	free(found);
	options.limit = CONTENT_BYTES - 1;
	assert_fails(ls_download(&options), LS_EFORMAT, "larger than the 49999 bytes");
	outcome = LS_EIO;
	assert_fails(ls_download(&options), LS_EIO, "http://nowhere.invalid/x could not be downloaded");
	ls_set_downloader(NULL, NULL);
}

/* One member of a tar archive: header and padded data. */
static size_t tar_member(uint8_t *out, const char *name, const void *data, size_t bytes)
{
	size_t padded = (bytes + 511) / 512 * 512;
	memset(out, 0, 512 + padded);
	snprintf((char *)out, 100, "%s", name);
	snprintf((char *)out + 100, 8, "%07o", 0644);
	snprintf((char *)out + 124, 12, "%011o", (unsigned)bytes);
	memcpy(out + 257, "ustar", 6);
	out[156] = '0';
	memset(out + 148, ' ', 8);
	unsigned sum = 0;
	for (int i = 0; i < 512; i++)
		sum += out[i];
	snprintf((char *)out + 148, 8, "%06o", sum);
	memcpy(out + 512, data, bytes);
	return 512 + padded;
}

static uint8_t *make_archive(size_t *packed_bytes)
{
	uint8_t *tar = calloc(1, CONTENT_BYTES + 8192);
	size_t used = tar_member(tar, "package/package.json", "{}", 2);
	used += tar_member(tar + used, "../../evil", "x", 1);
	used += tar_member(tar + used, "package/data/some-idx1-ubyte", content, CONTENT_BYTES);
	uint8_t *packed = gzip_bytes(tar, used + 1024, packed_bytes);
	free(tar);
	return packed;
}

static void archives(void **state)
{
	size_t bytes;
	uint8_t *packed = make_archive(&bytes);
	const char *archive = in_dir(*state, "a.tgz"), *out = in_dir(*state, "out");
	put_file(archive, packed, bytes);
	ls_tar_want want = { .member = "package/data/some-idx1-ubyte", .path = out, .limit = CONTENT_BYTES };
	assert_ok(ls_tar_extract(archive, &want, 1));
	assert_true(want.found);
	size_t out_bytes;
	uint8_t *found = take_file(out, &out_bytes);
	assert_int_equal(out_bytes, CONTENT_BYTES);
	assert_memory_equal(found, content, CONTENT_BYTES);
	free(found);
	unlink(out);

	want.found = 0, want.limit = 49999;
	assert_fails(ls_tar_extract(archive, &want, 1), LS_EFORMAT, "has 50000 bytes, expected at most 49999");
	want = (ls_tar_want){ .member = "package/absent", .path = out, .limit = 10 };
	assert_fails(ls_tar_extract(archive, &want, 1), LS_EFORMAT, "does not hold package/absent");
	want = (ls_tar_want){ .member = "package/data/some-idx1-ubyte", .path = out, .limit = CONTENT_BYTES };
	put_file(archive, packed, bytes / 2);
	assert_int_equal(ls_tar_extract(archive, &want, 1), LS_EFORMAT);
	free(packed);
	uint8_t tar[1024];
	tar_member(tar, "name", "x", 1);
	tar[3]++;
	packed = gzip_bytes(tar, 1024, &bytes);
	put_file(archive, packed, bytes);
	assert_fails(ls_tar_extract(archive, &want, 1), LS_EFORMAT, "a damaged tar header");
	assert_false(ls_path_exists(out));
	free(packed);
}

/* A stand-in for npm: a script on PATH that does what `npm pack` does, or fails as it does. */
static void put_npm(const char *bin, const char *script)
{
	char path[4096];
	assert_ok(ls_path_join(path, sizeof(path), bin, "npm"));
	put_file(path, script, strlen(script));
	assert_int_equal(chmod(path, 0755), 0);
}

static void count_entries(const char *dir, int expected)
{
	char command[4200], line[64] = "";
	snprintf(command, sizeof(command), "ls -A '%.4000s' | wc -l", dir);
	FILE *pipe = popen(command, "r");
	assert_non_null(fgets(line, sizeof(line), pipe));
	pclose(pipe);
	assert_int_equal(atoi(line), expected);
}

static void from_npm(void **state)
{
	char bin[4096], to[4096], archive[4096], path[8300], script[9000];
	size_t bytes;
	uint8_t *packed = make_archive(&bytes);
	assert_ok(ls_path_join(bin, sizeof(bin), *state, "bin"));
	assert_ok(ls_path_join(to, sizeof(to), *state, "to"));
	assert_ok(ls_path_join(archive, sizeof(archive), *state, "some-1.0.tgz"));
	mkdir(bin, 0777);
	put_file(archive, packed, bytes);
	char *before = strdup(getenv("PATH"));
	snprintf(path, sizeof(path), "%s:%s", bin, before);
	setenv("PATH", path, 1);
	ls_get_plan plan = plan_of(NULL, "some@1.0");
	ls_data_get_options options = { .size = sizeof(ls_data_get_options), .dir = to, .quiet = 1 };

	put_npm(bin, "#!/bin/sh\necho 'npm ERR! network request failed' >&2\nexit 3\n");
	assert_fails(ls_get_run(&plan, &options), LS_EIO, "failed with status 3: npm ERR! network request failed");
	count_entries(to, 0);

	snprintf(script, sizeof(script),
		 "#!/bin/sh\n[ \"$1\" = pack ] && [ \"$2\" = some@1.0 ] || exit 9\ncase $npm_config_cache in $PWD/*) "
		 ";; *) "
		 "exit 8;; esac\nmkdir cache\ncp '%s' some-1.0.tgz\n",
		 archive);
	put_npm(bin, script);
	mkdir(in_dir(to, ".npm-00000000-1-abcdef"), 0777); /* left by another machine, long ago */
	const struct timespec past[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	assert_int_equal(utimensat(AT_FDCWD, in_dir(to, ".npm-00000000-1-abcdef"), past, 0), 0);
	assert_ok(ls_get_run(&plan, &options));
	assert_whole(to);
	count_entries(to, 1);

	unlink(in_dir(to, "some-idx1-ubyte"));
	put_npm(bin, "#!/bin/sh\nexit 0\n");
	assert_fails(ls_get_run(&plan, &options), LS_EIO, "left no archive");
	unlink(in_dir(bin, "npm"));
	setenv("PATH", bin, 1);
	assert_fails(ls_get_run(&plan, &options), LS_EIO, "npm is not installed");
	setenv("PATH", before, 1);
	free(before);
	free(packed);
}

static void names(void **state)
{
	(void)state;
	ls_data_get_options options = { .size = sizeof(ls_data_get_options), .name = "mnits" };
	assert_fails(ls_data_get(&options), LS_EINVALID, "did you mean 'mnist'?");
	options.name = "glyphs";
	assert_fails(ls_data_get(&options), LS_EINVALID, "needs no download");
	options = (ls_data_get_options){
		.size = sizeof(ls_data_get_options), .name = "mnist", .from = "/nowhere/at/all", .dir = *state
	};
	assert_fails(ls_data_get(&options), LS_ENOTFOUND, "/nowhere/at/all is not a directory");
}

/* A process killed while npm runs leaves its directory; the next get removes it, wherever the files come from, and
 * keeps one whose process is alive. */
static void leftovers_of_the_killed_go(void **state)
{
	char bin[4096], to[4096], from[4096], path[8300];
	assert_ok(ls_path_join(bin, sizeof(bin), *state, "bin"));
	assert_ok(ls_path_join(to, sizeof(to), *state, "to"));
	assert_ok(ls_path_join(from, sizeof(from), *state, "from"));
	mkdir(bin, 0777);
	mkdir(from, 0777);
	put_file(in_dir(from, "some-idx1-ubyte"), content, CONTENT_BYTES);
	put_npm(bin, "#!/bin/sh\n: >started\n"
		     "for i in $(seq 300); do [ -e started ] || exit 1; sleep 0.1; done\n");
	snprintf(path, sizeof(path), "%s:%s", bin, getenv("PATH"));
	ls_get_plan plan = plan_of(NULL, "some@1.0");
	ls_data_get_options options = { .size = sizeof(ls_data_get_options), .dir = to, .quiet = 1 };
	pid_t child = fork();
	if (child == 0) {
		setenv("PATH", path, 1);
		_exit(ls_get_run(&plan, &options) != LS_OK);
	}
	glob_t found = { 0 };
	for (int wait = 0; wait < 15000 && glob(in_dir(to, ".npm-*/started"), 0, NULL, &found) != 0; wait++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(found.gl_pathc, 1);
	globfree(&found);
	ls_get_sweep(to);
	count_entries(to, 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	options.from = from;
	assert_ok(ls_get_run(&plan, &options));
	assert_whole(to);
	count_entries(to, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(md5_known_answers),
		cmocka_unit_test_setup_teardown(from_a_directory, fixture_enter, temp_dir_remove),
		cmocka_unit_test_setup_teardown(wrong_files_are_refused, fixture_enter, temp_dir_remove),
		cmocka_unit_test_setup_teardown(from_a_mirror_in_two_halves, fixture_enter, temp_dir_remove),
		cmocka_unit_test_setup_teardown(parts_that_cannot_be_continued, fixture_enter, temp_dir_remove),
		cmocka_unit_test_setup_teardown(wrong_bytes_from_a_mirror, fixture_enter, temp_dir_remove),
		cmocka_unit_test_setup_teardown(a_program_downloads_itself, fixture_enter, temp_dir_remove),
		cmocka_unit_test_setup_teardown(more_than_allowed_is_not_fetched, fixture_enter, temp_dir_remove),
		cmocka_unit_test_setup_teardown(archives, fixture_enter, temp_dir_remove),
		cmocka_unit_test_setup_teardown(from_npm, fixture_enter, temp_dir_remove),
		cmocka_unit_test_setup_teardown(leftovers_of_the_killed_go, fixture_enter, temp_dir_remove),
		cmocka_unit_test_setup_teardown(names, fixture_enter, temp_dir_remove),
	};
	return cmocka_run_group_tests_name("data get", tests, make_content, NULL);
}
