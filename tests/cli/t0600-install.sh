#!/bin/bash
# Installed: the command runs, its library is found, and the examples compile and run by the lines at their heads.
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
is "pkg-config gives directories and the library, and no flag of what is inside it" \
	"$(pkg-config --cflags --libs lockstep | tr -s ' ' '\n' | grep -v '^-[IL]' | xargs)" "-llockstep"

is "which is that of the headers" "$out" "$(sed -nE 's/^#define LS_VERSION_STRING "(.*)"/\1/p' "$prefix/include/lockstep/version.h")"
is "the tools come with the library" \
	"$(pkg-config --cflags --libs lockstep-tools | tr -s ' ' '\n' | grep -v '^-[IL]' | xargs)" "-llockstep-tools -llockstep"

# The program at the head of lockstep.h, the lines of the comment between #include and the closing brace, is first.c.
statements() { # of a C file without comments, whatever their layout
	sed -E 's,^/\*$,,;/^ \*/d' "$1" | tr -d '[:space:]'
}
sed -nE '/^ \*     #include <lockstep/,/^ \*     \}$/s/^ \*     ?//p' "$prefix/include/lockstep/lockstep.h" >header.c
ok "the header has a worked example" grep -q 'ls_train(' header.c
is "which is first.c" "$(statements header.c)" "$(statements "$SOURCE_DIR/examples/first.c")"
ok "which is installed with the other examples" test -f "$prefix/share/lockstep/examples/first.c"

# Compile lines say "cc": here that is the compiler of this build, with its sanitizer, and warnings are errors.
compiler=$(sed -nE 's/^CMAKE_C_COMPILER:[A-Z]+=//p' "$BUILD_DIR/CMakeCache.txt")
mkdir bin
printf '#!/bin/sh\nexec %s -Wall -Wextra -Werror %s "$@"\n' "$compiler" "${SANITIZER:+-fsanitize=$SANITIZER}" >bin/cc
chmod +x bin/cc
PATH=$PWD/bin:$PATH
like "lockstep.h says how to compile it" "$(cat "$prefix/include/lockstep/lockstep.h")" \
	'Compile with: cc first\.c \$\(pkg-config --cflags --libs lockstep\)$'

cp -r "$prefix/share/lockstep/examples" examples
cat >compile_all <<'S'
cd "$1" || exit 1
for source in *.c; do
	line=$(sed -nE 's/^ \*     (cc .*)/\1/p' "$source")
	[ -n "$line" ] || { echo "$source has no compile line" >&2; exit 1; }
	[ "$source" = first.c ] || line=${line%% && *} # the others train for longer
	bash -c "$line" || exit 1
done
S
libdir=$(pkg-config --variable=libdir lockstep)
run env LD_LIBRARY_PATH="$libdir" bash compile_all examples
is "every example compiles by its own line" "$status" 0
[ "$status" = 0 ] || test_note "$err"
like "first.c runs, and prints accuracy and fingerprint" "$out" '^accuracy (0\.[0-9]{4}|1\.0000), parameters [0-9a-f]{16}$'
ok "and keeps its run" test -f examples/runs/example/run.json

# The line of docs/library.md for a prefix of one's own, as it stands.
line=$(grep -E '^cc .*first\.c ' "$SOURCE_DIR/docs/library.md")
mkdir own && cp -r examples own/examples
run bash -c "cd own && ${line:-false}"
is "the compile line of docs/library.md works" "$status" 0
for source in examples/*.c; do
	name=$(basename "$source" .c)
	run bash -c "cd own && ${line//first/$name}"
	is "and compiles $name.c" "$status" 0
	[ "$status" = 0 ] || test_note "$err"
done
run ldd own/first
like "and the program finds its library" "$out" "liblockstep\.so\.[0-9]+ => /.*/prefix/"

# The tools, static libraries, and the CMake package.
cat >tool.c <<'C'
#include <lockstep/lockstep.h>
#include <stdio.h>

/* The last error belongs to both libraries. */
int main(void)
{
	ls_sweep_options options = LS_SWEEP_OPTIONS_INIT;
	ls_sweep_result points = { 0 };
	options.recipe = "nonesuch";
	if (ls_sweep_points(&options, &points) == LS_OK)
		return 1;
	printf("%s\n", ls_last_error());
	options.recipe = "oneflow-bert";
	if (ls_sweep_points(&options, &points) != LS_OK || points.row_count == 0)
		return 1;
	ls_sweep_result_release(&points);
	return 0;
}
C
tool_says="nonesuch"
# shellcheck disable=SC2046 # words
ok "a program of the tools compiles" cc tool.c $(pkg-config --cflags --libs lockstep-tools) -o tool
run env LD_LIBRARY_PATH="$libdir" ./tool
is "and runs" "$status" 0
like "and has the tools' messages" "$out" "$tool_says"

if [ -z "${SANITIZER:-}" ]; then
	cp -r "$prefix" static
	find static -name 'liblockstep*.so*' -delete
	(
		export PKG_CONFIG_PATH=$PWD/static${PKG_CONFIG_PATH#"$prefix"}
		# shellcheck disable=SC2046 # words
		cc examples/first.c $(pkg-config --static --cflags --libs lockstep) -o first_static &&
			cc tool.c $(pkg-config --static --cflags --libs lockstep-tools) -o tool_static
	) >static.log 2>&1
	is "pkg-config --static links programs with the static libraries" "$?" 0
	[ -x tool_static ] || test_note "$(tail -n 20 static.log)"
	run ldd first_static
	unlike "which then need no liblockstep" "$out" 'liblockstep'
	run ./tool_static
	like "the static tools run" "$status$out" "^0.*$tool_says"
	mkdir again
	run bash -c 'cd again && ../first_static'
	is "a program trains the same bits with the static library" "$(tail -n 1 <<<"$out")" \
		"$(cd own && rm -rf runs && ./first | tail -n 1)"
else
	skip "static libraries" "a sanitizer's run-time library is not in them"
fi

mkdir package
cp examples/first.c tool.c package/
cat >package/CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C)
find_package(lockstep ${WANTED} REQUIRED)
add_executable(first first.c)
target_link_libraries(first PRIVATE lockstep::lockstep)
add_executable(tool tool.c)
target_link_libraries(tool PRIVATE lockstep::tools)
if(STATIC)
  add_executable(static tool.c)
  target_link_libraries(static PRIVATE lockstep::tools_static)
endif()
C
package() { # OPTIONS...
	rm -rf package/build
	cmake -S package -B package/build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$PWD/bin/cc" "$@" >package.log 2>&1
}
export CCACHE_DISABLE=1
ok "find_package(lockstep) finds it" package -DSTATIC="$([ -z "${SANITIZER:-}" ] && echo ON)"
ok "and its programs are built" cmake --build package/build
run package/build/tool
like "with the tools" "$status$out" "^0.*$tool_says"
if [ -z "${SANITIZER:-}" ]; then
	run package/build/static
	like "and the static ones" "$status$out" "^0.*$tool_says"
	unlike "which need no liblockstep" "$(ldd package/build/static)" 'liblockstep'
fi
ok "this version is enough" package -DWANTED="$(pkg-config --modversion lockstep)"
package -DWANTED=99.0
is "a later one is not there" "$?" 1
like "and CMake says so" "$(cat package.log)" 'version: [0-9.]+$|requested version "99.0"'

# Where everybody looks, /usr/local, nothing needs to be set. In a namespace of its own, over copies.
if [ -x /usr/bin/cmake ] && unshare -m true 2>/dev/null; then
	mkdir local etc fresh
	cp -a /etc/. etc/
	cp examples/*.c fresh/
	cat >everywhere <<-S
		mount --bind local /usr/local && mount --bind etc /etc || exit 9
		unset PKG_CONFIG_PATH LD_LIBRARY_PATH
		/usr/bin/cmake --install "$BUILD_DIR" --prefix /usr/local >/dev/null && bash compile_all fresh
	S
	run unshare -m bash everywhere
	is "installed as root under /usr/local, the lines need nothing set" "$status" 0
	[ "$status" = 0 ] || test_note "$err"
else
	skip "installed as root under /usr/local" "it needs root, namespaces and Debian's cmake"
fi

test_end
