#!/bin/bash
# What `make install` puts on a machine is complete: a program outside the tree builds and runs with what pkg-config says.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
failed=0
check() { # check NAME COMMAND...
	local name=$1
	shift
	n=$((n + 1))
	if "$@" >"$work/output" 2>&1; then
		echo "ok $n - $name"
	else
		failed=1
		echo "not ok $n - $name"
		sed 's/^/# /' "$work/output"
	fi
}

prefix=$work/prefix
check "cmake --install" cmake --install "$BUILD_DIR" --prefix "$prefix"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name lockstep.pc)")
export PKG_CONFIG_PATH
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$BUILD_DIR/CMakeCache.txt")
libdir=$(pkg-config --variable=libdir lockstep)

cat >"$work/user.c" <<'C'
#include <lockstep/lockstep.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
	ls_graph *graph = NULL;
	ls_model_options options = LS_MODEL_OPTIONS_INIT;
	options.name = "no-such-model";
	if (ls_model_build(&graph, &options) == LS_OK || !strstr(ls_last_error(), "no-such-model"))
		return 1;
	puts(ls_version());
	return 0;
}
C
build_user() {
	local flags=()
	read -ra flags <<<"$(pkg-config --cflags --libs lockstep)"
	"$compiler" -std=c11 -Wall -Wextra -Werror ${SANITIZER:+"-fsanitize=$SANITIZER"} "$work/user.c" "${flags[@]}" -o "$work/user"
}
run_user() {
	[ "$(LD_LIBRARY_PATH=$libdir "$work/user")" = "$(pkg-config --modversion lockstep)" ]
}
check "a user's program builds with pkg-config's flags" build_user
check "it runs, and has the version pkg-config says" run_user
check "the installed command finds its library" "$prefix/bin/lockstep" models
mv "$prefix" "$work/moved"
check "also after the tree was moved" "$work/moved/bin/lockstep" models
check "there is a man page" test -f "$work/moved/share/man/man1/lockstep.1"
echo "1..$n"
exit $failed
