#!/bin/bash
# Every public header is named by lockstep.h, compiles alone and twice, by gcc, clang, g++ and clang++, in the standards
# that programs use, without a warning; and the INIT macros are initialisers in C and in C++20, which wants the fields
# in their order.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# lockstep.h begins with a list of the others, and includes them or has them included.
find "$SOURCE_DIR/include/lockstep" -name '*.h' ! -name lockstep.h -printf '%f\n' | sort >there
sed -nE 's/^ \*   ([a-z]+\.h) .*/\1/p' "$SOURCE_DIR/include/lockstep/lockstep.h" | sort >listed
is "lockstep.h lists all headers" "$(cat listed)" "$(cat there)"
echo '#include <lockstep/lockstep.h>' | cc -E -x c -I "$SOURCE_DIR/include" - | sed -nE 's|^# [0-9]+ ".*/lockstep/([a-z]+\.h)".*|\1|p' |
	grep -vx lockstep.h | sort -u >included
is "and includes them" "$(cat included)" "$(cat there)"

for header in "$SOURCE_DIR"/include/lockstep/*.h; do
	name=$(basename "$header" .h)
	printf '#include <lockstep/%s.h>\n#include <lockstep/%s.h>\ntypedef int %s_is_alone;\n' "$name" "$name" "$name" >"alone_$name.c"
done
{
	echo '#include <lockstep/lockstep.h>'
	echo 'int use(const void *options);'
	echo 'void initialise(void);'
	echo 'void initialise(void) {'
	grep -ohE '^#define LS_[A-Z_]+_INIT\b' "$SOURCE_DIR"/include/lockstep/*.h | awk '
		{ type = tolower($2); sub("_init$", "", type); printf "\t%s o%d = %s; use(&o%d);\n", type, NR, $2, NR }'
	echo '}'
} >macros.c
ok "there are macros" test "$(grep -c _INIT macros.c)" -ge 15

check() { # COMPILER LANGUAGE STANDARD FILE...
	local compiler=$1 language=$2 standard=$3
	shift 3
	"$compiler" -x "$language" -std="$standard" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$SOURCE_DIR/include" "$@"
}
for compiler in gcc clang g++ clang++; do
	if ! command -v "$compiler" >/dev/null; then
		skip "headers with $compiler" "it is not installed (tools/install-deps test clang)"
		continue
	fi
	case $compiler in
	*++) language=c++ standards="c++11 c++17 c++20" newest=c++20 ;;
	*) language=c standards="c99 c11 c17" newest=c17 ;;
	esac
	for standard in $standards; do
		ok "headers with $compiler, $standard" check "$compiler" "$language" "$standard" alone_*.c
	done
	# g++ 12 calls fields that a designated initialiser leaves out missing.
	ok "macros with $compiler, $newest" check "$compiler" "$language" "$newest" -Wno-missing-field-initializers macros.c
done

test_end
