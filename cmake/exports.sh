#!/bin/bash
# exports.sh DIRECTORY VERSION READELF: write what each library exports, from the objects that core.objects and
# tools.objects in DIRECTORY list; cmake/libraries.cmake says what for. Without tools nothing private is exported. Files that
# would not change are left alone.
set -euo pipefail
export LC_ALL=C
directory=$1 version=$2 readelf=$3
cd "$directory"

# symbols OBJECTS: "KIND NAME" of the global symbols; KIND is UND, or the visibility of what is defined.
symbols() {
	(cd .. && xargs -r "$readelf" -sW) <"$1" | awk '
		$5 == "GLOBAL" || $5 == "WEAK" { print ($7 == "UND" ? "UND" : $6), $8 }' | sort -u
}
update() { # FILE: from stdin, if it is new
	cat >"$1.new"
	if cmp -s "$1.new" "$1"; then rm "$1.new"; else mv "$1.new" "$1"; fi
}
named() { awk -v kind="$1" '$1 == kind { print $2 }' "$2" | sort -u; }
globals() { echo "global:" && sed 's/.*/\t&;/'; }

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
symbols core.objects >"$temporary/core"
symbols tools.objects >"$temporary/tools"
named DEFAULT "$temporary/core" | sed -n '/^ls_/p' >"$temporary/public"
named DEFAULT "$temporary/tools" | sed -n '/^ls_/p' >"$temporary/tools.public"
named PROTECTED "$temporary/core" >"$temporary/internal"
named UND "$temporary/tools" | comm -12 - "$temporary/internal" >"$temporary/private"

{
	echo "LOCKSTEP_${version%%.*} {" && globals <"$temporary/public"
	if [ -s "$temporary/private" ]; then
		echo "};" && echo "LOCKSTEP_PRIVATE_$version {" && globals <"$temporary/private"
	fi
	printf 'local:\n\t*;\n};\n'
} | update core.map
{
	echo "LOCKSTEP_TOOLS_${version%%.*} {" && globals <"$temporary/tools.public" && printf 'local:\n\t*;\n};\n'
} | update tools.map
sort "$temporary/public" "$temporary/private" | update core.keep
update tools.keep <"$temporary/tools.public"
sed 's/.*/& lockstep_private_&/' "$temporary/private" | update private.names
