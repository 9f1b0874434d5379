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
export OMPI_CC=$PWD/bin/cc MPICH_CC=$PWD/bin/cc # of mpicc
like "lockstep.h says how to compile it" "$(cat "$prefix/include/lockstep/lockstep.h")" \
	'Compile with: cc first\.c \$\(pkg-config --cflags --libs lockstep\)$'

cp -r "$prefix/share/lockstep/examples" examples
cat >compile_all <<'S'
cd "$1" || exit 1
for source in *.c; do
	line=$(sed -nE 's/^ \*     ((mpi)?cc .*)/\1/p' "$source")
	[ "${line%% *}" != mpicc ] || command -v mpicc >/dev/null || continue
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
	if grep -q '<mpi.h>' "$source"; then
		continue # compiled with mpicc, above
	fi
	run bash -c "cd own && ${line//first/$name}"
	is "and compiles $name.c" "$status" 0
	[ "$status" = 0 ] || test_note "$err"
done
run ldd own/first
like "and the program finds its library" "$out" "liblockstep\.so\.[0-9]+ => /.*/prefix/"

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
