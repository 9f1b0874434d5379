#!/bin/bash
# Installed: the command runs, its library is found, and the worked example of lockstep.h compiles and runs as printed.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

prefix=$PWD/prefix
ok "cmake --install" cmake --install "$BUILD_DIR" --prefix "$prefix"
run "$prefix/bin/lockstep" --version
is "the installed command runs" "$status" 0
for page in lockstep lockstep-train lockstep-eval lockstep-data lockstep-models lockstep-bench lockstep-probe lockstep-slurm; do
	ok "$page.1 is installed" test -f "$prefix/share/man/man1/$page.1"
done
ok "what rehearses several nodes is installed" test -x "$prefix/libexec/lockstep/lab"
is "the installed command knows the recipes" "$("$prefix/bin/lockstep" bench --list | grep -c .)" \
	"$(find "$SOURCE_DIR/recipes" -name '*.json' | wc -l)"
ok "which are installed, too" test -f "$prefix/share/lockstep/recipes/oneflow-bert.json"
ok "completion is installed" test -f "$prefix/share/bash-completion/completions/lockstep"

pc=$(find "$prefix" -name lockstep.pc)
ok "a pkg-config file is installed" test -n "$pc"
export PKG_CONFIG_PATH=${pc%/*}
run pkg-config --modversion lockstep
like "pkg-config knows the version" "$out" '^[0-9]+\.[0-9]+\.[0-9]+$'
like "the command's version is the library's" "$("$prefix/bin/lockstep" --version)" "^lockstep $out\$"

# The lines of the comment between #include and the closing brace.
sed -nE '/^ \*     #include <lockstep/,/^ \*     \}$/s/^ \*     ?//p' "$prefix/include/lockstep/lockstep.h" >first.c
ok "the header has a worked example" grep -q 'ls_train(' first.c
sanitize=()
[ -z "${SANITIZER:-}" ] || sanitize=("-fsanitize=$SANITIZER")
# shellcheck disable=SC2046 # flags are words
ok "it compiles as the header says" cc -Wall -Wextra -Werror "${sanitize[@]}" first.c $(pkg-config --cflags --libs lockstep) -o first
libdir=$(pkg-config --variable=libdir lockstep)
run env LD_LIBRARY_PATH="$libdir" ./first
is "it runs" "$status" 0
like "and prints accuracy and fingerprint" "$(tail -n 1 <<<"$out")" '^accuracy (0\.[0-9]{4}|1\.0000), parameters [0-9a-f]{16}$'
ok "and keeps its run" test -f runs/first/run.json

test_end
