#!/bin/bash
# Includes point one way: a room sees the rooms below it, the command sees the public headers, and each outside library
# with a room of its own is seen there alone. Also: no function that writes without knowing how much room there is.
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
failed=0

# arrows TREE: print each include under TREE/src that points the wrong way.
arrows() {
	(cd "$1" && find src -name '*.[ch]' -print0 | sort -z | xargs -0 awk '
	BEGIN {
		middle = "kernels data optim ckpt exchange metrics"
		allow("base", "")
		allow("json", "base")
		allow("tensor", "base")
		allow("text", "base")
		split(middle, rooms, " ")
		for (i in rooms)
			allow(rooms[i], "base tensor")
		allow("data", "base tensor text")
		allow("ckpt", "base json tensor")
		allow("graph", "base tensor " middle)
		allow("models", "base tensor graph " middle)
		allow("train", "base json tensor text graph models " middle)
		allow("launch", "base exchange")
		allow("probe", "base tensor kernels exchange metrics")
		allow("results", "base json")
		allow("sweep", "base json results launch metrics")
		allow("plan", "base json tensor optim exchange train")
		allow("report", "base json metrics results plan")
		only["libxsmm.h"] = "kernels"
		only["mpi.h"] = "exchange"
		only["utf8proc.h"] = "text"
	}
	function allow(room, below,    names, i) {
		known[room] = 1
		allowed[room, room] = 1
		split(below, names, " ")
		for (i in names)
			allowed[room, names[i]] = 1
	}
	function wrong(why) { print FILENAME ":" FNR ": " why }
	/^[ \t]*#[ \t]*include/ {
		split(FILENAME, parts, "/")
		room = parts[2]
		path = $0
		sub(/^[^<"]*[<"]/, "", path)
		sub(/[>"].*$/, "", path)
		if (path in only && only[path] != room)
			wrong("only src/" only[path] " may include " path)
		if (path ~ /\.\./)
			wrong("include " path " climbs out of its folder")
		top = path
		if (!sub(/\/.*$/, "", top))
			next
		if (room == "cli") {
			if (top in known)
				wrong("the command may include <lockstep/...> only, not " path)
		} else if (!(room in known))
			wrong("room " room " is not in the table of this test")
		else if ((top in known || top == "cli") && !((room, top) in allowed))
			wrong(room " may not include " path)
	}')
}

# banned TREE: print each call of a function that cannot know the size of what it writes.
banned() {
	(cd "$1" && find src include examples tests/fuzz tests/unit -name '*.[ch]' -print0 2>/dev/null |
		xargs -0 grep -nE '(^|[^a-zA-Z0-9_])(strcpy|strcat|sprintf|vsprintf|gets|stpcpy|alloca)[[:space:]]*\(' /dev/null)
}

result() { # result STATUS NAME OUTPUT
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		failed=1
		echo "not ok $n - $2"
	fi
	[ -z "$3" ] || sed 's/^/# /' <<<"$3"
}

# plant FILE TEXT: a tree with one file must be refused (or, with `fine`, accepted).
plant() {
	local expect=$1 check=$2 file=$3 text=$4 found
	rm -rf "$work/tree"
	mkdir -p "$work/tree/$(dirname "$file")"
	printf '%s\n' "$text" >"$work/tree/$file"
	found=$($check "$work/tree")
	if [ "$expect" = refuse ]; then
		[ -n "$found" ]
	else
		[ -z "$found" ]
	fi
	result $? "$check: $expect '$text' in $file" ""
}

out=$(arrows "$source")
[ -z "$out" ]
result $? "includes point one way" "$out"
out=$(banned "$source")
[ -z "$out" ]
result $? "no banned function" "$out"

plant refuse arrows src/base/a.c '#include "tensor/params.h"'
plant refuse arrows src/tensor/a.h '#include <kernels/gemm.h>'
plant refuse arrows src/data/a.c '#  include "optim/optimizer.h"'
plant refuse arrows src/kernels/simd/a.c '#include "graph/graph.h"'
plant refuse arrows src/graph/a.c '#include "train/train.h"'
plant refuse arrows src/train/a.c '#include "cli/command.h"'
plant refuse arrows src/cli/a.c '#include "base/log.h"'
plant refuse arrows src/graph/a.c '#include <libxsmm.h>'
plant refuse arrows src/train/a.c '#include <mpi.h>'
plant refuse arrows src/data/a.c '#include <utf8proc.h>'
plant refuse arrows src/text/a.c '#include "data/idx.h"'
plant refuse arrows src/base/a.c '#include "../tensor/params.h"'
plant refuse arrows src/attic/a.c '#include "base/log.h"'
plant accept arrows src/kernels/simd/a.c '#include <libxsmm.h>'
plant accept arrows src/data/a.c '#include "text/vocab.h"'
plant accept arrows src/train/a.c '#include "base/log.h"'
plant accept arrows src/cli/a.c '#include <lockstep/lockstep.h>'
plant accept arrows src/data/a.c '#include <sys/stat.h>'
plant refuse banned src/base/a.c '	strcpy (a, b);'
plant refuse banned src/base/a.c 'n=sprintf(a, "%d", b);'
plant accept banned src/base/a.c 'n = snprintf(a, 3, "%d", b); fgets(a, 3, f);'
echo "1..$n"
exit $failed
