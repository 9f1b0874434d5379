#!/bin/bash
# The installed libraries export what include/lockstep declares and nothing else, so they take no name from a program: not
# their own functions' nor those of libraries inside them. libxsmm's stubs sgemm_ and dgemm_ once took the place of a BLAS.
# What liblockstep has for liblockstep-tools alone is in a version of its own (docs/decisions/0022).
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Functions and variables of the headers, whether marked or not; after the preprocessor, for builders of operators follow
# from a list.
cat >declared.py <<'P'
import re, sys
for header in sys.argv[1:]:
    text = re.sub(r"static inline [^;{]*\{[^{}]*\}", "", open(header).read())
    while re.search(r"\{[^{}]*\}", text):  # bodies of structs and enums, whose members are no symbols; extern "C" last
        text = re.sub(r"(extern \"C\" )?\{([^{}]*)\}", lambda m: m[2] if m[1] else "", text)
    text = text.replace('extern "C" {', "")
    for statement in text.split(";"):
        if "typedef" not in statement and (m := re.search(r"\b(ls_\w+)\s*(?:\(|\[|$)", statement.strip())):
            print(m[1])
P
for header in "$SOURCE_DIR"/include/lockstep/*.h; do
	cc -E -P -I "$SOURCE_DIR/include" "$header" >"$(basename "$header").i"
done
python3 declared.py ./*.i | sort -u >declared
ok "the headers declare functions" test "$(wc -l <declared)" -gt 50

prefix=$PWD/prefix
ok "cmake --install" cmake --install "$BUILD_DIR" --prefix "$prefix"
library=$(find "$prefix" -name 'liblockstep.so')
tools=$(find "$prefix" -name 'liblockstep-tools.so')
symbols() { # LIBRARY VERSION: what it exports under a version
	nm -D --defined-only --with-symbol-versions "$1" | awk -v node="@@$2" '
		index($NF, node) { print substr($NF, 1, index($NF, "@") - 1) }' | sort -u
}
version=$("$LOCKSTEP" --version | awk '{ print $2 }')
symbols "$library" LOCKSTEP_0 >core
symbols "$tools" LOCKSTEP_TOOLS_0 >tools
symbols "$library" "LOCKSTEP_PRIVATE_$version" >private
sort core tools >exported
is "the libraries export what the headers declare" "$(comm -13 exported declared | xargs)" ""
is "and nothing else" "$(comm -23 exported declared | xargs)" ""
is "no function is in both" "$(uniq -d exported | xargs)" ""
is "the tools are in their own" "$(grep -cE '^ls_(bench|sweep|recipe|forecast|fit|probe|report|serve|fault)(_|$)' core)" 0
ok "which has nothing but them" test "$(grep -vcE '^ls_(bench|sweep|recipe|forecast|fit|probe|report|serve|fault)(_|$)' tools)" = 0
for file in "$library" "$tools"; do
	# AddressSanitizer's own marks of globals are no symbols of ours.
	is "$(basename "$file") has no symbol outside these versions" \
		"$(nm -D --defined-only --with-symbol-versions "$file" | awk '$2 != "A" { print $NF }' |
			grep -vE '@@LOCKSTEP_(0|TOOLS_0|PRIVATE_[0-9.]+)$|^__asan_|^__odr_asan' | head -20 | xargs)" ""
done
ok "there is something private" test -s private
nm -D --undefined-only "$tools" | awk '{ sub("@.*", "", $NF); print $NF }' | sort -u >needed
is "all of it is used by the tools" "$(comm -23 private needed | xargs)" ""
like "and wanted of this version: tools and core of different ones do not load" \
	"$(nm -D --undefined-only --with-symbol-versions "$tools")" "ls_fail@LOCKSTEP_PRIVATE_$version\$"
is "and none of it is public" "$(comm -12 private declared | xargs)" ""

# A field that fills a struct of options up must be 0, or it can never get a meaning: the library looks at all of them.
python3 - "$SOURCE_DIR" >unchecked <<'P'
import glob, re, sys
read = lambda pattern: {path: open(path).read() for path in glob.glob(f"{sys.argv[1]}/{pattern}", recursive=True)}
filled = set()
for text in read("include/lockstep/*.h").values():
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\n\} (\w+);", text, re.S):
        if re.search(r"\bint unused;", body) and f"define {name.upper()}_INIT" in text:
            filled.add(f"{name.upper()}_INIT")
print(len(filled) >= 9)
for path, text in read("src/**/*.c").items():
    for init in re.findall(r'LS_OPTIONS_TAKE\([^;]*?"(\w+)"', text):
        if init in filled:
            print(path, init)
P
is "fields that fill a struct up are checked" "$(cat unchecked)" True

# Static libraries, where the linker knows no versions: private names have a prefix.
if [ -z "${SANITIZER:-}" ]; then
	for pair in lockstep:core lockstep-tools:tools; do
		archive=$(find "$prefix" -name "lib${pair%:*}.a")
		nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | grep -v '^lockstep_private_ls_' | sort -u >static
		is "lib${pair%:*}.a defines the same functions and no others" "$(diff static "${pair#*:}")" ""
	done
fi

cat >both.c <<'C'
#include <lockstep/lockstep.h>
#include <math.h>
#include <stdio.h>

void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha,
	    const double *a, const int *lda, const double *b, const int *ldb, const double *beta, double *c,
	    const int *ldc);
void sgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const float *alpha, const float *a,
	    const int *lda, const float *b, const int *ldb, const float *beta, float *c, const int *ldc);

enum { M = 3, N = 2, K = 4 };

/* Column-major products of integers, which both precisions hold exactly. */
int main(void)
{
	double a[M * K], b[K * N], c[M * N] = { 0 }, one = 1, zero = 0;
	float fa[M * K], fb[K * N], fc[M * N] = { 0 }, fone = 1, fzero = 0;
	const int m = M, n = N, k = K;
	for (int i = 0; i < M * K; i++)
		fa[i] = (float)(a[i] = i + 1);
	for (int i = 0; i < K * N; i++)
		fb[i] = (float)(b[i] = 2 * i - 3);
	dgemm_("N", "N", &m, &n, &k, &one, a, &m, b, &k, &zero, c, &m);
	sgemm_("N", "N", &m, &n, &k, &fone, fa, &m, fb, &k, &fzero, fc, &m);
	int wrong = 0;
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++) {
			double sum = 0;
			for (int l = 0; l < K; l++)
				sum += a[l * M + i] * b[j * K + l];
			wrong += c[j * M + i] != sum || fc[j * M + i] != (float)sum;
		}

	/* A step of training still multiplies by libxsmm. */
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	options.model = "cnn";
	options.data = "glyphs";
	options.samples = 64;
	options.test_samples = 64;
	ls_train_result result;
	if (ls_train(&options, &result))
		return fprintf(stderr, "%s\n", ls_last_error()), 1;
	printf("%d wrong, parameters %016llx\n", wrong, (unsigned long long)result.fingerprint);
	return wrong > 0;
}
C
compiler=$(sed -nE 's/^CMAKE_C_COMPILER:[A-Z]+=//p' "$BUILD_DIR/CMakeCache.txt")
run "$LOCKSTEP" train --model cnn --data glyphs --samples 64 --test-samples 64
expected=$(fingerprint "$out")
like "the command trains" "$expected" '^[0-9a-f]{16}$'
for order in "-llockstep -lblas" "-lblas -llockstep"; do
	# shellcheck disable=SC2086 # words
	ok "a program links with $order" "$compiler" -Wall -Wextra -Werror ${SANITIZER:+-fsanitize=$SANITIZER} both.c \
		-I "$prefix/include" -L "$(dirname "$library")" -Wl,-rpath,"$(dirname "$library")" -Wl,--no-as-needed $order -lm -o both
	run ./both
	is "its products are right and its training gives the command's bits" "$(tail -n 1 <<<"$out")" \
		"0 wrong, parameters $expected"
done

test_end
