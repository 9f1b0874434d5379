/*
 * ZIP archives: members come out as they went in, and every field of an archive is checked.
 */
#include "unit/fetch/zips.h"

#include "base/status.h"
#include "data/readers/zip.h"
#include "unit/test_main.h"

static uint8_t noise[5000];

static void make_archive(zip_builder *zip)
{
	memset(zip, 0, sizeof(*zip));
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)(ls_mix64(i) % 5);
	zip_add(zip, "trees/a.txt", noise, sizeof(noise), 1);
	zip_add(zip, "empty", "", 0, 0);
	zip_add(zip, "stored", noise, 100, 0);
	zip_add(zip, "nothing", "", 0, 1);
	zip_finish(zip, "a comment");
}

static void members_come_out(void **state)
{
	(void)state;
	static zip_builder made;
	static const char *const names[] = { "trees/a.txt", "empty", "stored", "nothing" };
	static const size_t sizes[] = { 5000, 0, 100, 0 };
	ls_zip zip;
	ls_zip_member member;
	int more;
	make_archive(&made);
	assert_ok(ls_zip_open(&zip, made.data, made.bytes, "x.zip"));
	for (int i = 0; i < 4; i++) {
		uint8_t out[5000];
		assert_ok(ls_zip_next(&zip, &member, &more));
		assert_true(more);
		assert_string_equal(member.name, names[i]);
		assert_int_equal(member.bytes, sizes[i]);
		assert_ok(ls_zip_read(&zip, &member, out));
		assert_memory_equal(out, noise, sizes[i]);
	}
	assert_ok(ls_zip_next(&zip, &member, &more));
	assert_false(more);
}

/* Read everything; the first failure. */
static ls_status read_all(const uint8_t *data, size_t bytes)
{
	ls_zip zip;
	int more = 1;
	LS_TRY(ls_zip_open(&zip, data, bytes, "x.zip"));
	while (more) {
		ls_zip_member member;
		LS_TRY(ls_zip_next(&zip, &member, &more));
		if (!more || member.bytes > 100000)
			continue;
		uint8_t *out = malloc(member.bytes + 1);
		ls_status status = ls_zip_read(&zip, &member, out);
		free(out);
		LS_TRY(status);
	}
	return LS_OK;
}

static void damage_is_found(void **state)
{
	(void)state;
	static zip_builder made;
	make_archive(&made);
	assert_ok(read_all(made.data, made.bytes));
	for (size_t cut = 0; cut < made.bytes; cut++) {
		uint8_t *part = malloc(cut + 1);
		memcpy(part, made.data, cut);
		assert_int_equal(read_all(part, cut), LS_EFORMAT);
		free(part);
	}
	uint8_t *copy = malloc(made.bytes);
	memcpy(copy, made.data, made.bytes);
	copy[60] ^= 1; /* inside the deflated member */
	assert_fails(read_all(copy, made.bytes), LS_EFORMAT, "trees/a.txt is damaged");
	free(copy);
	for (size_t i = 0; i < made.bytes; i++) { /* the first byte of the stored member */
		if (memcmp(made.data + i, "storedxtra", 10) != 0)
			continue;
		made.data[i + 10] ^= 1;
		assert_fails(read_all(made.data, made.bytes), LS_EFORMAT, "stored is damaged: its checksum is wrong");
		made.data[i + 10] ^= 1;
	}
	/* any byte changed: an error or the right bytes, never more memory than there is (address sanitizer watches) */
	for (size_t i = 0; i < made.bytes; i++) {
		copy = malloc(made.bytes);
		memcpy(copy, made.data, made.bytes);
		copy[i] ^= 0x80;
		read_all(copy, made.bytes);
		free(copy);
	}
	assert_fails(read_all((const uint8_t *)"PK hello", 8), LS_EFORMAT, "not a ZIP archive");
	uint8_t *entry = made.data + made.bytes - 22 - 9 - made.directory_bytes;
	uint32_t packed;
	memcpy(&packed, entry + 20, 4);
	zip_put(entry + 8, 1, 2);
	assert_fails(read_all(made.data, made.bytes), LS_EUNSUPPORTED, "encrypted");
	zip_put(entry + 8, 0, 2);
	zip_put(entry + 10, 12, 2);
	assert_fails(read_all(made.data, made.bytes), LS_EUNSUPPORTED, "another method than deflate");
	zip_put(entry + 10, 8, 2);
	zip_put(entry + 20, 1 << 20, 4);
	assert_fails(read_all(made.data, made.bytes), LS_EFORMAT, "goes beyond the archive's end");
	zip_put(entry + 20, packed, 4);
	zip_put(entry + 24, 6000, 4);
	assert_fails(read_all(made.data, made.bytes), LS_EFORMAT, "does not decompress to 6000 bytes");
	zip_put(entry + 24, 4000, 4);
	assert_fails(read_all(made.data, made.bytes), LS_EFORMAT, "does not decompress to 4000 bytes");
}

TEST_MAIN(members_come_out, damage_is_found)
