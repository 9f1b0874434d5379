#!/bin/bash
# The Debian packages: what is in them, what they depend on, and that they can be installed, used and removed. They are
# installed with dpkg into a root directory of their own, so that nothing of the system changes, also when a test fails.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

reason=
for program in cpack dpkg dpkg-deb dpkg-shlibdeps; do
	command -v "$program" >/dev/null || reason="it needs $program"
done
[ -z "${SANITIZER:-}" ] || reason="packages are made without a sanitizer"
[ "$(id -u)" = 0 ] || reason="dpkg wants to be root"
if [ -n "$reason" ]; then
	skip "Debian packages" "$reason"
	test_end
	exit
fi

ok "cpack makes the packages" cpack -G DEB --config "$BUILD_DIR/CPackConfig.cmake" -B "$PWD/made"
version=$("$LOCKSTEP" --version | awk '{ print $2 }')
architecture=$(dpkg --print-architecture)
is "there are three" "$(cd made && echo *.deb)" \
	"liblockstep-dev_${version}_$architecture.deb liblockstep0_${version}_$architecture.deb lockstep_${version}_$architecture.deb"
deb() { # PACKAGE
	echo "made/$1_${version}_$architecture.deb"
}
field() { # PACKAGE FIELD
	dpkg-deb -f "$(deb "$1")" "$2"
}
contents() { # PACKAGE
	dpkg-deb -c "$(deb "$1")" | awk '{ print $6 }'
}

is "the libraries are in section libs" "$(field liblockstep0 Section)" libs
is "headers in libdevel" "$(field liblockstep-dev Section)" libdevel
is "the command in science" "$(field lockstep Section)" science
for package in liblockstep0 liblockstep-dev lockstep; do
	is "$package has the version" "$(field $package Version)" "$version"
	like "$package has a maintainer" "$(field $package Maintainer)" '^[^<>]+ <[^<>@ ]+@[^<>@ ]+>$'
	description=$(field $package Description)
	like "$package is described in a line" "$(head -n 1 <<<"$description")" '^data-parallel deep-learning trainer.{0,30}$'
	ok "and in a paragraph" test "$(wc -l <<<"$description")" -gt 3
	like "$package has its licence" "$(contents $package)" "/usr/share/doc/$package/copyright$"
done
maintainer() { # VARIABLE=VALUE...: whose name packages get
	env -u DEBFULLNAME -u DEBEMAIL GIT_CONFIG_GLOBAL="$PWD/gitconfig" GIT_CONFIG_NOSYSTEM=1 "$@" cmake -P who.cmake 2>&1
}
printf '[user]\n\tname = Git User\n\temail = git@example.org\n' >gitconfig
# shellcheck disable=SC2016 # CMake's variables
printf 'include(%s)\nls_find_maintainer(m)\nmessage("${m}")\n' "$SOURCE_DIR/cmake/maintainer.cmake" >who.cmake
is "the maintainer is that of Debian's variables" "$(maintainer DEBFULLNAME='Ada L' DEBEMAIL=ada@example.org)" "Ada L <ada@example.org>"
is "else git's" "$(maintainer)" "Git User <git@example.org>"
: >gitconfig
like "else the user here" "$(maintainer USER=someone)" '^someone <someone@[^ <>@]+>$'
like "the libraries depend on what they are linked with" "$(field liblockstep0 Depends)" 'libc6 .*libjansson4'
like "the command on the libraries" "$(field lockstep Depends)" "liblockstep0 \(= $version\)"
like "the headers, too" "$(field liblockstep-dev Depends)" "liblockstep0 \(= $version\)"
is "the libraries come without links for the linker" "$(contents liblockstep0 | grep -cE '\.so$|\.a$|\.h$')" 0
is "which the headers bring" "$(contents liblockstep-dev | grep -cE 'liblockstep(-tools)?\.(so|a)$')" 4
is "every header is there" "$(contents liblockstep-dev | grep -c '/usr/include/lockstep/.*\.h$')" \
	"$(find "$SOURCE_DIR/include/lockstep" -name '*.h' | wc -l)"
is "and every manual page" "$(contents lockstep | grep -c '/man1/.*\.1\.gz$')" \
	"$(find "$SOURCE_DIR/docs/man" -name '*.1' | wc -l)"
like "and completions" "$(contents lockstep)" '/bash-completion/completions/lockstep$'
is "no file is in two packages" "$(for p in liblockstep0 liblockstep-dev lockstep; do contents $p; done | grep -v '/$' | sort | uniq -d)" ""
mkdir control
dpkg-deb -e "$(deb liblockstep0)" control
like "others' packages learn what to depend on" "$(cat control/shlibs)" "^liblockstep 0 liblockstep0 \(>= $version\)"
if command -v lintian >/dev/null; then
	ok "lintian finds no error" lintian --no-cfg --fail-on error --suppress-tags bogus-mail-host made/*.deb
fi
ok "what they depend on is here" dpkg --no-act -i made/*.deb

# Scripts of the packages call ldconfig, which is not to touch the system's cache.
mkdir -p bin root/var/lib/dpkg/{info,updates,triggers}
touch root/var/lib/dpkg/status
printf '#!/bin/sh\necho ldconfig >>"%s"\n' "$PWD/called" >bin/ldconfig
chmod +x bin/ldconfig
dpkg_here() {
	PATH=$PWD/bin:$PATH dpkg --root="$PWD/root" --force-depends --force-script-chrootless --log="$PWD/log" "$@"
}
ok "dpkg installs them" dpkg_here -i made/*.deb
like "and tells the loader" "$(cat called 2>&1)" ldconfig
is "they are installed" "$(dpkg-query --admindir="$PWD/root/var/lib/dpkg" -W -f '${Package} ${db:Status-Status}\n' | sort | xargs)" \
	"liblockstep-dev installed liblockstep0 installed lockstep installed"

libdir=$(dirname "$(find "$PWD/root" -name 'liblockstep.so.0')")
ok "no library path is left in them" bash -c "! readelf -d root/usr/bin/lockstep '$libdir'/liblockstep*.so.0 | grep -E 'R(UN)?PATH'"
export LD_LIBRARY_PATH=$libdir PKG_CONFIG_PATH=$libdir/pkgconfig
run root/usr/bin/lockstep --version
is "the installed command runs" "$out" "lockstep $version"
ok "its manual pages are whole" gzip -t root/usr/share/man/man1/*.gz
cp root/usr/share/lockstep/examples/first.c .
# shellcheck disable=SC2046 # words
ok "an example compiles against the packages" cc -Wall -Wextra -Werror first.c $(pkg-config --cflags --libs lockstep) -o first
like "with their headers and library" "$(pkg-config --cflags --libs lockstep)" "root/usr/(lib/[^ ]*\.\./)?"
run ./first
like "and runs" "$(tail -n 1 <<<"$out")" '^accuracy (0\.[0-9]{4}|1\.0000), parameters [0-9a-f]{16}$'
like "with the library of the package" "$(ldd ./first)" "liblockstep\.so\.0 => $libdir/"

ok "dpkg removes them" dpkg_here --purge lockstep liblockstep-dev liblockstep0
is "and leaves nothing behind" "$(find root -path root/var -prune -o -type f -print -o -type l -print)" ""

test_end
