/*
 * Any bytes as a tar archive: refused, or files with safe names and of no more bytes than were allowed. Headers'
 * checksums are put right first, or nothing behind them would ever be reached.
 */
#include <zlib.h>

#include "fetch/tar.h"
#include "fuzz/common.h"

enum { BLOCK = 512, SIZE = 124, SUM = 148, LIMIT = 4096 };

static size_t member_bytes(const uint8_t *header)
{
	char digits[13] = "";
	memcpy(digits, header + SIZE, 12);
	return (size_t)strtoull(digits, NULL, 8);
}

static void put_checksums_right(uint8_t *tar, size_t size)
{
	for (size_t at = 0; size - at >= BLOCK;) {
		unsigned sum = 8 * ' ';
		char digits[8];
		for (size_t i = 0; i < BLOCK; i++)
			sum += i >= SUM && i < SUM + 8 ? 0 : tar[at + i];
		snprintf(digits, sizeof(digits), "%06o", sum);
		memcpy(tar + at + SUM, digits, 7);
		tar[at + SUM + 7] = ' ';
		size_t blocks = 1 + (member_bytes(tar + at) + BLOCK - 1) / BLOCK;
		at = blocks > (size - at) / BLOCK ? size : at + blocks * BLOCK;
	}
}

static const char *write_gzip(const uint8_t *tar, size_t size)
{
	static char path[4200];
	snprintf(path, sizeof(path), "%s", fuzz_path("archive.tar.gz"));
	gzFile file = gzopen(path, "wb1");
	fuzz_require(file && (!size || gzwrite(file, tar, (unsigned)size) == (int)size));
	fuzz_require(gzclose(file) == Z_OK);
	return path;
}

/* All regular files of the directory, besides the archive. */
static void check_files(size_t count)
{
	size_t files = 0, bytes = 0;
	DIR *list = opendir(fuzz_directory());
	fuzz_require(list != NULL);
	for (struct dirent *entry; (entry = readdir(list));) {
		struct stat about;
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "archive.tar.gz") == 0)
			continue;
		fuzz_require(fstatat(dirfd(list), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0);
		fuzz_require(S_ISREG(about.st_mode) && strlen(entry->d_name) > 4);
		files++;
		bytes += (size_t)about.st_size;
	}
	closedir(list);
	fuzz_require(files <= count && bytes <= LIMIT); /* two members of one name are one file */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *tar = (uint8_t *)fuzz_text(data, size);
	size_t count = 0;

	put_checksums_right(tar, size);
	const char *archive = write_gzip(tar, size);
	free(tar);
	if (ls_tar_extract_all(archive, "package/", ".txt", fuzz_directory(), LIMIT, &count) == LS_OK)
		check_files(count);
	else
		fuzz_require(strstr(ls_last_error(), "archive.tar.gz") != NULL);

	char path[4200];
	snprintf(path, sizeof(path), "%s", fuzz_path("one.txt"));
	ls_tar_want want = { .member = "package/one.txt", .path = path, .limit = LIMIT };
	fuzz_require((ls_tar_extract(archive, &want, 1) != LS_OK) == !want.found || ls_last_error()[0] != '\0');
	fuzz_empty(fuzz_directory());
	return 0;
}
