#!/bin/bash
# A module sees the headers of the modules that it lists in CMakeLists.txt and no others: asked of the compiler, with the
# flags the module is built with. Also: an outside library with a module of its own is seen there alone, no include
# climbs out of its folder, and no function is called that writes without knowing how much it may.
. "$(dirname "$0")/lib.sh"

source_dir=$SOURCE_DIR
commands=$BUILD_DIR/compile_commands.json

# The table as CMakeLists.txt has it: a line "MODULE: USED USED ...".
table=$(sed 's/#.*//' "$source_dir/CMakeLists.txt" | tr '\n' ' ' | grep -oE 'ls_module\([^)]*\)' |
	sed -E 's/ls_module\(//; s/\)//; s/ LIBS .*//; s/ USES / : /' | tr -s ' ' | sed -E 's/^([a-z]+) ?:? ?/\1: /; s/ +$//')
modules=$(cut -d: -f1 <<<"$table")
ok "CMakeLists.txt has a table of modules" test "$(wc -l <<<"$modules")" -gt 15

folder_of() { # MODULE: below src/
	if [ -d "$source_dir/src/$1" ]; then echo "$1"; else echo "tools/$1"; fi
}

# Every folder with sources is a module's, or the command's.
out=$(cd "$source_dir/src" && for folder in * tools/*; do
	case $folder in cli | tools) continue ;; esac
	grep -qx "${folder#tools/}" <<<"$modules" || echo "$folder"
done)
is "every folder of src is a module" "$out" ""

# Include paths and definitions that files below a folder are compiled with.
flags_of() { # FOLDER
	python3 - "$commands" "$source_dir/src/$1/" <<'PYTHON'
import json, shlex, sys
for entry in json.load(open(sys.argv[1])):
    if entry["file"].startswith(sys.argv[2]) and "fuzz" not in entry["command"].split(" -o ")[1].split()[0]:
        print(*[word for word in shlex.split(entry["command"]) if word.startswith(("-I", "-D"))])
        break
PYTHON
}

# sees FLAGS: print each module of which a header can be included.
sees() {
	local module folder header
	for module in $modules; do
		folder=$(folder_of "$module")
		header=$(cd "$source_dir/src" && printf '%s\n' "$folder"/*.h | head -n 1)
		printf '#if __has_include("%s")\nSEEN %s\n#endif\n' "$header" "$module"
	done | (cd "$TMPDIR" && ${CC:-cc} -E -P -x c "$@" - | sed -n 's/^SEEN //p' | sort)
}

for module in $modules; do
	read -ra flags <<<"$(flags_of "$(folder_of "$module")")"
	listed=$(sed -n "s/^$module: *//p" <<<"$table" | tr ' ' '\n' | cat - <(echo "$module") | sed '/^$/d' | sort -u)
	is "$module sees what it lists and nothing else" "$(sees "${flags[@]}")" "$listed"
done
read -ra flags <<<"$(flags_of cli)"
is "the command sees no module" "$(sees "${flags[@]}")" ""

# And so an include that the table does not allow does not compile.
compiles() { # MODULE TEXT
	local flags
	read -ra flags <<<"$(flags_of "$(folder_of "$1")")"
	printf '%s\nint nothing;\n' "$2" >try.c
	${CC:-cc} -std=c17 -fsyntax-only "${flags[@]}" try.c 2>/dev/null
}
not_ok() { ok "$1" eval '! '"$2"; }
ok "data may include the tokenizer" compiles data '#include "tokenizer/vocab.h"'
not_ok "the tokenizer may not include data" "compiles tokenizer '#include \"data/dataset.h\"'"
not_ok "base may include nothing above it" "compiles base '#include \"params/params.h\"'"
not_ok "the exchange may not include the trainer" "compiles exchange '#include \"trainer/trainer.h\"'"

# outside TREE: print each include of an outside library in another module than its own, and each that climbs.
outside() {
	(cd "$1" && find src -name '*.[ch]' -print0 | sort -z | xargs -0 awk '
	BEGIN {
		only["libxsmm.h"] = "kernels"
		only["mpi.h"] = "comm"
		only["utf8proc.h"] = "tokenizer"
		only["curl/curl.h"] = "fetch"
		only["png.h"] = "data"
		only["turbojpeg.h"] = "data"
		only["microhttpd.h"] = "tools"
	}
	/^[ \t]*#[ \t]*include/ {
		split(FILENAME, parts, "/")
		path = $0
		sub(/^[^<"]*[<"]/, "", path)
		sub(/[>"].*$/, "", path)
		if (path in only && only[path] != parts[2])
			print FILENAME ":" FNR ": only src/" only[path] " may include " path
		if (path ~ /\.\./)
			print FILENAME ":" FNR ": include " path " climbs out of its folder"
	}')
}

# banned TREE: print each call of a function that cannot know the size of what it writes.
banned() {
	(cd "$1" && find src include examples tests/fuzz tests/unit -name '*.[ch]' -print0 2>/dev/null |
		xargs -0 grep -nE '(^|[^a-zA-Z0-9_])(strcpy|strcat|sprintf|vsprintf|gets|stpcpy|alloca)[[:space:]]*\(' /dev/null)
}
is "outside libraries are seen by one module each" "$(outside "$source_dir")" ""
is "no banned function" "$(banned "$source_dir")" ""

# planted EXPECTED CHECK FILE TEXT: a tree of one file is refused or accepted.
planted() {
	local found
	rm -rf tree
	mkdir -p "tree/$(dirname "$3")"
	printf '%s\n' "$4" >"tree/$3"
	found=$($2 tree)
	is "$2: $1 '$4' in $3" "$([ -n "$found" ] && echo refuse || echo accept)" "$1"
}
planted refuse outside src/graph/a.c '#include <libxsmm.h>'
planted refuse outside src/run/a.c '#include <mpi.h>'
planted refuse outside src/data/a.c '#include <utf8proc.h>'
planted refuse outside src/run/a.c '#include <png.h>'
planted refuse outside src/base/a.c '#include "../params/params.h"'
planted accept outside src/kernels/simd/a.c '#include <libxsmm.h>'
planted accept outside src/data/a.c '#include <sys/stat.h>'
planted refuse banned src/base/a.c '	strcpy (a, b);'
planted refuse banned src/base/a.c 'n=sprintf(a, "%d", b);'
planted accept banned src/base/a.c 'n = snprintf(a, 3, "%d", b); fgets(a, 3, f);'
test_end
