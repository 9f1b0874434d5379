#!/bin/bash
# The manual pages and the command agree: each option is in both, with the same default.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

man=$SOURCE_DIR/docs/man

help_options() { # COMMAND...: names its help shows
	{
		"$LOCKSTEP" "$@" --help all | sed -nE 's/^  (-[a-z], )?(--[a-z][a-z0-9-]*).*/\2/p'
		echo --help
	} | tr -d ' -' | sort -u
}

page_options() { # PAGE: names its lists describe
	sed -nE 's/^\.It (Fl [a-z] , )?Fl -([a-z0-9-]+).*/\2/p' "$1" | tr -d '-' | sort -u
}

for command in train eval predict serve export models bench plan probe report slurm k8s; do
	is "lockstep-$command.1 describes the options of lockstep $command" \
		"$(page_options "$man/lockstep-$command.1")" "$(help_options "$command")"
done
is "lockstep-data.1 describes the options of lockstep data" "$(page_options "$man/lockstep-data.1")" \
	"$(for c in list get make "make vocab" info show check; do
		# shellcheck disable=SC2086 # words
		help_options data $c
	done | sort -u)"

# "(default 0.001)" in help, at the end of an option or on the line below, and "Default: 0.001." in the page
wrong_defaults() { # COMMAND
	"$LOCKSTEP" "$1" --help all | awk '
		/^  (-[a-z], )?--/ { match($0, /--[a-z0-9-]+/); option = substr($0, RSTART, RLENGTH) }
		match($0, /\(default [^ )]*\)$/) { print option, substr($0, RSTART + 9, RLENGTH - 10) }' | while read -r option default; do
		awk -v name="${option#--}" -v value="Default: $default" '
			/^\.It / { inside = $0 ~ "Fl -" name "( |$)" }
			inside && index($0, value) == 1 { found = 1 }
			END { if (!found) print name, value }' "$man/lockstep-$1.1"
	done
}
for command in train eval predict serve export models bench plan probe report slurm k8s; do
	is "lockstep-$command.1 tells the defaults that help shows" "$(wrong_defaults "$command")" ""
done

# Values that have names are those of the library's tables (train --help --optimizer): the page has them all.
missing_values() { # OPTION
	"$LOCKSTEP" train --help "--$1" | sed -nE 's/^    ([^ ]+) .*/\1/p' | while read -r value; do
		awk -v name="$1" -v value="$value" '
			/^\.It Fl/ { inside = $0 ~ "Fl -" name "( |$)" }
			inside && $0 ~ "^\\.(It )?Cm (.* )?" value "( |$)" { found = 1 }
			END { if (!found) print value }' "$man/lockstep-train.1"
	done
}
for option in optimizer schedule strategy wire pin share; do
	is "lockstep-train.1 has every value of --$option" "$(missing_values $option)" ""
done

for command in train eval predict serve export data models bench plan probe report slurm k8s; do
	ok "lockstep.1 refers to lockstep-$command.1" grep -q "^\.Xr lockstep-$command 1" "$man/lockstep.1"
done

is "mandoc has nothing to warn of" "$(mandoc -Tlint -W warning "$man"/*.1 2>&1)" ""

# Every example that keeps a run has a directory of its own: a reader may follow them all in one place.
run_directories() {
	{
		cat "$SOURCE_DIR/README.md" "$man"/*.1 "$SOURCE_DIR"/src/cli/*.c | grep -v -- --resume | grep -oE -- '--run runs/[a-z0-9-]+'
		sed -nE 's/.*options\.run = "(.*)";/--run \1/p' "$SOURCE_DIR"/examples/*.c
	} | sort
}
ok "there are such examples" test "$(run_directories | wc -l)" -ge 8
is "no example's run directory is another's" "$(run_directories | uniq -d)" ""

# A reader refuses fields it does not know, so the page has them all.
run "$LOCKSTEP" bench --model mlp --batch-per-device 8 --warmup 0 --steps 1 --repeat 1 --profile-out profile.json
is "lockstep-bench.1 has every field of a profile" "$(python3 -c '
import json, re, sys
page = open(sys.argv[1]).read()
words = set(w for line in re.findall(r"^\.(?:It )?Li (.*)$", page, re.M) for w in line.split())
print(*[k for k in json.load(open("profile.json")) if k not in words])' "$man/lockstep-bench.1")" ""
like "kinds of a recipe's points" "$(mandoc -T ascii "$man/lockstep-bench.1" | sed 's/.\x08//g' | tr -s ' \n' ' ')" 'kind \("bench" or "train"\)'

test_end
