#!/bin/bash
# lockstep slurm: the script is sound shell, its words arrive as typed, it resumes and it stops in time.
# shellcheck disable=SC2016 # awk and the words to quote have dollars of their own
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# An srun that writes down its arguments, one a line.
mkdir bin
cat >bin/srun <<'END'
#!/bin/bash
printf '%s\n' "${@@Q}" >srun.words
exit "${SRUN_STATUS:-0}"
END
chmod +x bin/srun
PATH=$PWD/bin:$PATH

make_script() { # WORDS...: job.sh
	run "$LOCKSTEP" slurm "$@" -o job.sh --force -- "${behind[@]}"
}
trained_with() { # the words behind "train" in the last call of srun
	awk 'seen { print } $0 == "'\''train'\''" { seen = 1 }' srun.words
}
real_srun() {
	printf '#!/bin/bash\nwhile [ "$1" != train ]; do shift; done\nexec %q "$@"\n' "$LOCKSTEP" >bin/srun
}
quoted() { printf '%s\n' "${@@Q}"; }

# ---- the script ----

behind=(--model mlp --data glyphs --run runs/a)
run "$LOCKSTEP" slurm --nodes 4 --devices 8 --threads 2 --time 1:00:00 --partition fast --account me,too --mem 64G \
	--job-name night --grace 90 --mpi pmix -- "${behind[@]}"
is "a script" "$status" 0
is "and no word beside it" "$err" ""
is "that bash can run" "$(head -n 1 <<<"$out")" "#!/bin/bash"
for directive in nodes=4 ntasks-per-node=1 cpus-per-task=16 time=1:00:00 partition=fast account=me,too mem=64G \
	job-name=night signal=B:USR1@90 requeue open-mode=append; do
	ok "it asks for --$directive" grep -qx -- "#SBATCH --$directive" <<<"$out"
done
like "and says how cores are used" "$out" "one core per thread: 8 devices with 2 threads each\.$"
printf '%s\n' "$out" >plain.sh
is "directives come before the first command" \
	"$(awk '!/^#/ && NF { code = 1 } code && /^#SBATCH/ { print }' plain.sh)" ""
run "$LOCKSTEP" slurm -- "${behind[@]}"
like "in the singular, too" "$out" "one core per thread: 1 device with 1 thread\.$"
unlike "what is not said is left to the site" "$out" '^#SBATCH --(time|mem|account|partition)|--mpi'

# ---- words ----

odd=("it's" 'two words' '$HOME `id` $(id)' 'a"b' 'back\slash' '*' '#x' $'line\nbreak' $'tab\t\'quote\'' 'ümlaut' '-dash' '~' '!')
all_intact=0
for word in "${odd[@]}"; do
	behind=(--model mlp --data "$word" --run "r $word")
	make_script --devices 3 --setup 'export SETUP=yes' --program "./my $word"
	[ "$status" = 0 ] || { all_intact=1 && test_note "no script for $word" "$err"; }
	ok "sound shell with $(tr -d '#' <<<"${word@Q}")" bash -n job.sh
	bash job.sh --seed 'a b' >job.out 2>&1
	trained_with >got
	quoted --devices 3 --threads 1 --model mlp --data "$word" --run "r $word" --seed 'a b' >expected
	cmp -s got expected || { all_intact=1 && test_note "$(diff got expected)"; }
	grep -qxF -- "$(quoted "./my $word")" srun.words || { all_intact=1 && test_note "program: $(cat srun.words)"; }
	ok "shellcheck has nothing to say" shellcheck -e SC2016 job.sh
	is "no word became a line of its own" "$(grep -vcE '^[#!]|^$' job.sh)" "${lines:=$(grep -vcE '^[#!]|^$' job.sh)}"
done
is "all words arrive as typed" "$all_intact" 0

behind=(--mod mlp -dglyphs --lr=0.1 -q --lr 0.2)
make_script --devices 1
bash job.sh
is "what was typed short is written out" "$(trained_with)" \
	"$(quoted --devices 1 --threads 1 --model mlp --data glyphs --lr 0.2 --quiet)"
like "without --run it warns" "$err" "without --run nothing is saved"
like "srun is told the cores" "$(cat srun.words)" "^'--cpus-per-task=1'$"
SLURM_CPUS_PER_TASK=7 bash job.sh
like "or takes what sbatch was told" "$(cat srun.words)" "^'--cpus-per-task=7'$"
SRUN_STATUS=9 bash job.sh
is "the script ends as srun did" "$?" 9

# ---- starting again ----

behind=(--model mlp --data glyphs --run "runs/one two" --init "w 1.safetensors")
make_script
bash job.sh
is "the first start has the initial weights" "$(trained_with | tail -n 2)" "$(quoted --init 'w 1.safetensors')"
mkdir -p "runs/one two/ckpt"
bash job.sh
unlike "a directory without a run is no run" "$(trained_with)" "resume"
mkdir "runs/one two/ckpt/step-000000010"
bash job.sh
is "a checkpoint is resumed, without them" "$(trained_with | tail -n 3)" "$(quoted --run 'runs/one two' --resume)"
rm -r "runs/one two/ckpt"
touch "runs/one two/run.json"
bash job.sh
is "and so is a run without one yet" "$(trained_with | tail -n 1)" "$(quoted --resume)"

# The command itself, started twice: the second time goes on.
real_srun
behind=(--model mlp --data glyphs --samples 320 --test-samples 32 --batch-per-device 32 --schedule constant --eval-every 0 --run real)
make_script --devices 1
run bash job.sh --steps 5
is "a real run" "$status" 0
run bash job.sh --steps 9
is "starts again" "$status" 0
like "where it stopped" "$out$err" "resuming real/ckpt/step-000000005"

# ---- stopping ----

# Nodes that srun started are asked to stop through scancel: srun itself answers SIGTERM by killing them.
behind=(--model mlp --data glyphs --run stopped)
make_script
cat >bin/srun <<'END'
#!/bin/bash
trap 'echo TERM >>srun.signals; sleep 0.5; echo whole >srun.checkpoint; exit 143' TERM
echo $$ >srun.ready
for _ in $(seq 400); do sleep 0.05; done
END
printf '#!/bin/bash\necho "$@" >>scancel.words\nexec kill -TERM "$(cat srun.ready)"\n' >bin/scancel
printf '#!/bin/bash\necho "$@" >>scontrol.words\n' >bin/scontrol
chmod +x bin/scancel bin/scontrol
export SLURM_JOB_ID=77
stop_job() { # SIGNAL: how it ended is in $status
	rm -f srun.ready srun.signals srun.checkpoint scancel.words scontrol.words
	bash job.sh &
	local job=$!
	ok "a job starts" wait_for 30 test -s srun.ready
	[ "$1" = USR1 ] || kill -TERM "$(cat srun.ready)" # Slurm asks everybody
	kill -"$1" "$job"
	ok "$1: the nodes are asked to stop" wait_for 15 test -s srun.signals
	kill -"$1" "$job" 2>/dev/null
	wait "$job"
	status=$?
}
stop_job USR1
is "the job ends with the status of a stopped run" "$status" 143
ok "not before the checkpoint is written" test -e srun.checkpoint
is "and a second signal is not passed on" "$(cat srun.signals)" TERM
is "scancel is given the steps of the job" "$(cat scancel.words)" "--signal=TERM 77"
is "it is requeued" "$(cat scontrol.words)" "requeue 77"
SLURM_RESTART_COUNT=100 stop_job USR1
ok "a hundred times at most" test ! -e scontrol.words
make_script --requeue 0
stop_job USR1
ok "or never" test ! -e scontrol.words
make_script
stop_job TERM
is "a job that is cancelled ends with the same status" "$status" 143
is "asks nobody again" "$(cat srun.signals scancel.words 2>/dev/null)" TERM
ok "and is not requeued" test ! -e scontrol.words
behind=(--model mlp --data glyphs)
make_script
stop_job USR1
ok "nor is one that saves nothing" test ! -e scontrol.words

# The same with the command: it checkpoints and can be resumed.
printf '#!/bin/bash\nwhile [ "$1" != train ]; do shift; done\necho $$ >srun.ready\nexec %q "$@"\n' "$LOCKSTEP" >bin/srun
behind=(--model mlp --data glyphs --samples 1000 --batch-per-device 32 --schedule constant --eval-every 0 --steps 1000000 --log-every 10 --run long)
make_script
bash job.sh >long.out 2>long.err &
job=$!
ok "a long run starts" wait_for 60 grep -q '^Step' long.out
kill -USR1 "$job"
wait "$job"
is "it is stopped" "$?" 143
like "and writes a checkpoint" "$(ls long/ckpt)" "^step-[0-9]+$"

# ---- elastic ----

behind=(--model mlp --data glyphs --samples 1000 --batch 32 --schedule constant --eval-every 0 --steps 1000000 --run elastic --elastic --min-nodes 2)
make_script --program ./program
ok "an elastic job keeps going without a node" grep -qx -- '#SBATCH --no-kill' job.sh
unlike "its nodes are not started by srun" "$(grep -v '^#' job.sh)" srun
ok "shellcheck has nothing to say of it" shellcheck job.sh
printf '#!/bin/bash\ntrap "echo TERM >>srun.signals; exit 143" TERM\necho $$ >srun.ready\nprintf "%%s\\n" "${@@Q}" >srun.words\nfor _ in $(seq 400); do sleep 0.05; done\n' >program
chmod +x program
stop_job USR1
is "it is stopped by a signal to the command" "$status $(cat srun.signals) $(ls scancel.words 2>&1 >/dev/null | wc -l)" "143 TERM 1"
like "with all options" "$(trained_with | tr '\n' ' ')" "'--elastic' '--min-nodes' '2'"

# ---- mistakes ----

bad() { # NAME PATTERN WORDS...
	local name=$1 pattern=$2
	shift 2
	fails_with "$name" 2 "$pattern" "$LOCKSTEP" slurm "$@"
}
bad "nothing to train" "what to train is missing" --nodes 2
bad "a typo behind the --" "lockstep train: unknown option '--epohs'; did you mean '--epochs'" -- --epohs 2
bad "a value out of range behind the --" "--lr must be at least 0, not -1" -- --lr -1
bad "no number behind the --" "--batch: 'x' is not a whole number" -- --batch x
bad "a value missing behind the --" "--run needs a value" -- --run
bad "an empty value behind the --" "--run needs a value" -- --run=
bad "an operand behind the --" "'more' is one argument too many" -- more
bad "a model misspelt" "unknown model 'resnet19'; did you mean 'resnet18'" -- --model resnet19
bad "devices behind the --" "--devices goes before the --" -- --devices 2
bad "threads behind the --" "--threads goes before the --" -- -t 2
bad "help behind the --" "lockstep train --help" -- --help
bad "hosts behind the --" "--hosts: Slurm chooses the hosts" -- --hosts a,b
bad "elastic without a run" "--elastic needs --run" -- --elastic
bad "a command for hosts" "those that Slurm gives the job" -- --elastic --run r --discover ./hosts
bad "elastic by srun" "--mpi: with --elastic Open MPI's mpirun starts the nodes" --mpi pmix -- --elastic --run r
bad "resume without a run" "--resume needs --run" -- --resume
bad "no nodes" "--nodes must be between 1 and" --nodes 0 --
bad "no devices" "--devices must be between 1 and" --devices 0 --
bad "no threads" "--threads must be between 1 and" --threads -1 --
for time in 1h 1:2:3:4 : 1: 0 0:00:00 -5 1-2-3 1-1:1:1:1 1:00:00x 1- 99999999; do
	bad "time $time" "--time: '$time' is not a time" "--time=$time" --
done
for time in 5 5:30 1:30:00 1-0 2-12:00 2-12:00:00 30000:00:00; do
	ok "time $time is one" "$LOCKSTEP" slurm --time $time --
done
bad "a time within the grace" "--time 1:00 is not longer than the --grace of 60" --time 1:00 --
bad "a day as minutes" "not longer than" --time 2:0 --grace 120 --
ok "just longer" "$LOCKSTEP" slurm --time 1:01 --
for size in G 64X 64GB -1 1.5G; do
	bad "memory $size" "--mem: '$size' is not a size" "--mem=$size" --
done
bad "a partition with a space" "--partition: 'a b' has a character" --partition 'a b' --
bad "a name with a line break" "--job-name: 'a" --job-name $'a\nrm -rf x' --

behind=(--run r)
echo precious >mine.sh
fails_with "a file is not replaced" 2 "mine.sh exists; add --force" "$LOCKSTEP" slurm -o mine.sh -- --run r
is "it is as it was" "$(cat mine.sh)" precious
run "$LOCKSTEP" slurm -o mine.sh --force -- --run r
is "unless asked to" "$(head -n 1 mine.sh)" "#!/bin/bash"
like "it says what to do with it" "$out" "^wrote mine.sh; submit it with: sbatch mine.sh$"
inode=$(stat -c %i mine.sh)
ln mine.sh second-name
run "$LOCKSTEP" slurm -o mine.sh --force -- --run another
like "a file that is replaced" "$(cat mine.sh)" 'another'
unlike "is not written in place: who reads the old one gets all of it" "$(cat second-name)" another
is "nothing is left beside it" "$(echo mine.sh*) $(test "$(stat -c %i mine.sh)" != "$inode" && echo another)" "mine.sh another"
(ulimit -f 1 && run "$LOCKSTEP" slurm -o mine.sh --force --job-name "$(printf 'x%.0s' {1..200})" -- --run "$(printf 'y%.0s' {1..3000})" && cp .err limited.err && echo "$status" >limited)
is "a file that does not fit fails" "$(cat limited)" 1
like "by name" "$(cat limited.err)" "cannot write mine.sh"
like "and the old one is whole" "$(cat mine.sh)" 'another'
fails_with "a setup with an open quote" 2 "setup takes a whole shell command: <'x> ends inside single quotes" "$LOCKSTEP" slurm --setup "'x" -- --run r
fails_with "with an open double quote" 2 "ends inside double quotes" "$LOCKSTEP" slurm --setup 'echo "it'\''s' -- --run r
fails_with "with a backslash at the end" 2 "ends with a backslash" "$LOCKSTEP" slurm --setup "module load x\\" -- --run r
for setup in "echo \$'it\\'s' # don't" 'echo "a \" b" \"' "module load x; echo 'a b'"; do
	run "$LOCKSTEP" slurm --setup "$setup" -- --run r
	ok "whole: $setup" bash -n .out
done
mkfifo pipe
cat pipe >from-pipe &
run "$LOCKSTEP" slurm -o pipe --force -- --run r
wait $!
is "a pipe is written to" "$status $(head -n 1 from-pipe)" "0 #!/bin/bash"
ok "and stays one" test -p pipe
fails_with "a directory" 2 "cannot write \.: it is a directory" "$LOCKSTEP" slurm -o . --force -- --run r
fails_with "a directory that is not there" 1 "cannot create no/job.sh: No such file" "$LOCKSTEP" slurm -o no/job.sh -- --run r
ln -s /dev/full disk # through a link of ours: a command that removes what it failed to write must not get at the device
fails_with "a full disk" 1 "cannot write .*: No space" "$LOCKSTEP" slurm -o disk --force -- --run r
ok "what was there before is not removed" test -L disk
run bash -c '"$0" slurm -- --run r >/dev/full' "$LOCKSTEP"
is "output that does not arrive is a failure" "$status" 1

test_end
