# shellcheck shell=bash disable=SC2154,SC2034 # lib.sh sets lab and train_limit, the scripts read job
# lib-slurm.sh - a Slurm cluster on the hosts of a lab; source it behind lib.sh, call lab_up first.
#
#   slurm_up HOST...          a controller on the first host, slurmd on each; all of it in ./slurm, and ended by `lab down`
#   on_login COMMAND...       a command where a user would type it: on the first host
#   submit SCRIPT [WORD]...   hand a script to sbatch; its number is in $job
#   ended JOB                 it has left the queue
#   job_ends JOB              wait for that, at most a minute
#   slurm_leftovers           what runs on the hosts beside the daemons
#
# Debian's packages, not their configuration: Slurm reads $SLURM_CONF and munge has a key and a socket of its own, so neither
# meets a Slurm that is installed on the machine. No cgroups, no accounting, no plugin that the test does not need.

slurm_daemons='^(munged|slurmctld|slurmd|slurmscriptd)$'

write_slurm_conf() { # HOST...
	local names
	names=$(printf '%s,' "$@")
	cat <<CONF
ClusterName=lab
SlurmctldHost=$1
SlurmUser=root
SlurmdUser=root
# A job that was requeued may start again when credentials of its last start have expired: after two minutes, unless set.
AuthInfo=socket=$PWD/slurm/munge.socket,cred_expire=5
StateSaveLocation=$PWD/slurm/state
SlurmdSpoolDir=$PWD/slurm/spool.%n
SlurmctldPidFile=$PWD/slurm/slurmctld.pid
SlurmdPidFile=$PWD/slurm/slurmd.%n.pid
SlurmctldLogFile=$PWD/slurm/slurmctld.log
SlurmdLogFile=$PWD/slurm/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TmpFS=$PWD/slurm/tmp.%n
MpiDefault=pmix
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=permit_job_expansion,batch_sched_delay=0,sched_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=15
MailProg=/bin/true
NodeName=${names%,} CPUs=8 RealMemory=100 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
}

on_login() { # COMMAND...
	"$lab" run "$@"
}

slurm_nodes() { # STATE: how many nodes are in it
	on_login sinfo -h -N -o '%n %T' | grep -c " $1\$"
}
slurm_is_up() { # COUNT
	[ "$(slurm_nodes idle)" = "$1" ]
}

start_slurmd() { # HOST
	"$lab" run --on "$1" slurmd -D >"slurm/slurmd.$1.out" 2>&1 &
	disown
}

slurm_up() { # HOST...
	local host limit=$train_limit
	mkdir -p slurm/state "${@/#/slurm/tmp.}"
	chmod 700 slurm
	head -c 1024 /dev/urandom >slurm/munge.key
	chmod 400 slurm/munge.key
	write_slurm_conf "$@" >slurm/slurm.conf
	export SLURM_CONF=$PWD/slurm/slurm.conf
	# --force: the directory of the socket is closed to other users, which is a warning only
	"$lab" run munged --foreground --force --key-file "$PWD/slurm/munge.key" --socket "$PWD/slurm/munge.socket" \
		--pid-file "$PWD/slurm/munged.pid" --log-file "$PWD/slurm/munged.log" --seed-file "$PWD/slurm/munged.seed" \
		>slurm/munged.out 2>&1 &
	disown # `lab down` ends it
	ok "munge answers" wait_for 30 munge -n -S "$PWD/slurm/munge.socket"
	"$lab" run slurmctld -D >slurm/slurmctld.out 2>&1 &
	disown
	for host in "$@"; do
		start_slurmd "$host"
	done
	if ! ok "a Slurm cluster of $# nodes" wait_for "$limit" slurm_is_up $#; then
		test_note "$(tail -n 20 slurm/*.log slurm/*.out)"
		test_end
	fi
}

# The lab makes mpirun use its own replacement of ssh; in a job Open MPI finds out by itself that it can use srun.
submit() { # SCRIPT [WORD]...
	job=$(on_login env -u OMPI_MCA_plm -u OMPI_MCA_plm_rsh_agent sbatch --parsable "$@") || test_note "sbatch failed: $*"
}

job_state() { # JOB
	on_login scontrol -o show job "$1" | grep -oE 'JobState=[A-Z_]+' | cut -d = -f 2
}
is_in_state() { [ "$(job_state "$1")" = "$2" ]; } # JOB STATE
ended() { # JOB
	sleep 0.3 # a question costs more time than that on a busy machine
	case $(job_state "$1") in COMPLETED | FAILED | CANCELLED | TIMEOUT | NODE_FAIL) true ;; *) false ;; esac
}
job_ends() { # JOB
	wait_for "$train_limit" ended "$1" || {
		test_note "$(on_login scontrol show job "$1")"
		on_login scancel --full "$1"
		false
	}
}

slurm_leftovers() {
	local pid
	for pid in $(lab_processes); do
		grep -qE "$slurm_daemons" "/proc/$pid/comm" 2>/dev/null || tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null
	done
}
nothing_is_left() { [ -z "$(slurm_leftovers)" ]; }
