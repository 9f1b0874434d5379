# shellcheck shell=bash
# lib.sh - what the scripts about training in the lab share; source it first, then call lab_up.
#
#   lab_needed                end it all as skipped, with the reason, where there can be no lab
#   lab_up HOSTS [OPTION]...  make the lab of this script, or end it all as skipped, with the reason
#   train_on HOSTS OPTION...  `lockstep train --hosts` from host a, like run: $status, $out, $err
#   lab_memory NUMBER [HOST]...  snapshots in memory of the run with that number, "HOST NAME", on these hosts, else on all
#   result TEXT               what must not depend on the layout: fingerprint and accuracies
#
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"

lab=$SOURCE_DIR/tools/lab
LOCKSTEP_LAB=$(basename "$0" .sh)-$$
export LOCKSTEP_LAB
export LSAN_OPTIONS=detect_leaks=0 # of MPI, and of nodes that are ended in the middle

lab_needed() {
	local reason
	if ! reason=$("$lab" check 2>&1); then
		echo "1..0 # SKIP $reason"
		exit 0
	fi
	if PATH=/nowhere "$LOCKSTEP" train --hosts localhost,localhost 2>&1 | grep -q 'has no MPI'; then
		echo "1..0 # SKIP this build has no MPI"
		exit 0
	fi
}

lab_up() { # HOSTS [OPTION]...
	lab_needed
	trap '"$lab" down 2>/dev/null; test_clean' EXIT
	"$lab" up "$@" >/dev/null || exit 1
}

# A job that takes longer than this hangs. A sanitizer makes steps ten times as long.
train_limit=$([ -n "${SANITIZER:-}" ] && echo 400 || echo 60)

train_on() { # HOSTS OPTION...
	local hosts=$1
	shift
	run timeout "$train_limit" "$lab" run "$LOCKSTEP" train --hosts "$hosts" "$@"
}

result() { # TEXT
	fingerprint "$1"
	sed -nE 's/.*((test|next-sentence) accuracy: [0-9.]+)$/\1/p' <<<"$1"
}

lab_hosts() { "$lab" status --name "$LOCKSTEP_LAB" | awk 'NR > 2 { print $1 }'; }
lab_processes() { # ids of what runs on the lab's hosts
	local host
	for host in $(lab_hosts); do
		"$lab" ps "$host"
	done
}
lab_is_empty() { [ -z "$(lab_processes)" ]; }

lab_memory() { # NUMBER [HOST]...
	local number=$1 host
	shift
	local chosen=("$@")
	[ $# -gt 0 ] || mapfile -t chosen < <(lab_hosts)
	for host in "${chosen[@]}"; do
		find "$("$lab" shm "$host")" -maxdepth 1 -name "lockstep-*-$number-*" -printf "$host %f\n"
	done
}

# What comes to bg.err once the job trains.
begin_errors() {
	notes=$(wc -l <bg.err)
}
errors() { tail -n +$((notes + 1)) bg.err; }

# Wait for a job of this shell, at most a minute and a half: then the lab is emptied.
wait_bounded() { # PID: its status
	if ! wait_for 90 sh -c "! kill -0 $1"; then
		echo "# job $1 did not end"
		# shellcheck disable=SC2046 # ids
		kill -9 $(lab_processes)
	fi
	wait "$1"
}

lockstep_on() { # HOST: ids of the command there, oldest first; guards (src/cluster/node.c) lead a session of their own
	local pid
	for pid in $("$lab" ps "$1" | sort -n); do
		[ "$(ps -o sid= -p "$pid" | tr -d ' ')" != "$pid" ] || continue
		if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q "^$LOCKSTEP train"; then
			echo "$pid"
		fi
	done
}
node_on() { lockstep_on "$1" | tail -n 1; } # HOST
launcher() { lockstep_on a | head -n 1; }   # what a user would send a signal to
