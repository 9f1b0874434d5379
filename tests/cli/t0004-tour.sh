#!/bin/bash
# docs/tour.md has the walk of one sample as a table: step, file, function. Every file is there, defines its function, and
# the count of folder changes is right and at most 30.
. "$(dirname "$0")/lib.sh"

# rows FILE: "NUMBER CHANGES PATH FUNCTION" of each row of the table under "The walk of one sample".
rows() {
	awk -F'|' '/^## /{ walk = /The walk of one sample/ }
	walk && $2 ~ /^ *[0-9]+ *$/ {
		gsub(/[ `]/, "", $2); gsub(/[ `]/, "", $3); gsub(/[ `]/, "", $4); gsub(/[ `()]/, "", $5)
		print $2, $3, $4, $5
	}' "$1"
}

# wrong FILE: print what is not true in the table.
wrong() {
	local number changes path function row=0 count=0 folder last=
	while read -r number changes path function; do
		row=$((row + 1))
		[ "$number" -eq "$row" ] || echo "row $row has number $number"
		folder=${path%/*}
		if [ -n "$last" ] && [ "$folder" != "$last" ]; then count=$((count + 1)); fi
		last=$folder
		[ "$changes" -eq "$count" ] || echo "row $number: $changes folder changes, not $count"
		if [ ! -f "$SOURCE_DIR/src/$path" ]; then
			echo "row $number: no file src/$path"
		elif ! grep -E "^[a-z_].*[ *]${function}\(" "$SOURCE_DIR/src/$path" | grep -qv ';$'; then
			echo "row $number: src/$path does not define $function()"
		fi
	done < <(rows "$1")
	[ "$count" -le 30 ] || echo "$count folder changes, more than 30"
}

tour=$SOURCE_DIR/docs/tour.md
ok "the tour has a walk of one sample" test "$(rows "$tour" | wc -l)" -ge 30
is "all files and functions of it are there" "$(wrong "$tour")" ""

# The checks can fail.
planted() { # NAME SED-PROGRAM PATTERN
	sed "$2" "$tour" >tour.md
	like "$1" "$(wrong tour.md)" "$3"
}
planted "a function that is gone is found" 's/ls_node_trainer_step()/ls_node_trainer_stride()/' 'does not define ls_node_trainer_stride'
planted "a file that is gone is found" 's#trainer/step\.c#trainer/stride.c#' 'no file src/trainer/stride.c'
planted "a wrong count is found" 's/^| 3 | [0-9]* |/| 3 | 9 |/' 'row 3: 9 folder changes'
test_end
