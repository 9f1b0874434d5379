#!/bin/bash
# bench --fault-every: what it refuses, and that it leaves nothing behind then. What it measures: tests/lab/t7310-faults.sh.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir tmp
export TMPDIR=$PWD/tmp
refuses() { # NAME STATUS PATTERN OPTION...
	local name=$1 code=$2 pattern=$3
	shift 3
	fails_with "$name" "$code" "$pattern" timeout 60 "$LOCKSTEP" bench --model mlp "$@"
}

refuses "no nodes" 2 '--fault-every needs several nodes.*--nodes 3, or --hosts' --fault-every 30s
refuses "one node" 2 '--nodes 1 with --fault-every: two or more' --fault-every 30s --nodes 1
refuses "one host" 2 '--hosts: .* two nodes or more, not on 1' --fault-every 30s --hosts a:1
refuses "emulated and real nodes" 2 '--hosts names real nodes, --nodes is about emulated ones' --fault-every 30s --hosts a:1,b:1 --nodes 2
refuses "a rate of real links" 2 '--hosts names real nodes, --rate is about emulated ones' --fault-every 30s --hosts a:1,b:1 --rate 1gbit
refuses "too many nodes" 2 '--nodes: at most 200 nodes are emulated, not 201' --fault-every 30s --nodes 201
for nodes in 2,3 x 0 -1 2.5; do
	refuses "--nodes $nodes" 2 '--nodes' --fault-every 30s --nodes=$nodes
done
for time in 0 0.5 0.01m -1 30x x '' nan; do
	refuses "--fault-every '$time'" 2 '--fault-every' --fault-every="$time" --nodes 3
done
refuses "a list of models" 2 "measures one job, and --model lists several: 'mlp,cnn'" --fault-every 30s --nodes 3 --model mlp,cnn
refuses "a list of rates" 2 '--rate lists several' --fault-every 30s --nodes 3 --rate 1gbit,100mbit
refuses "a list of strategies" 2 '--strategy lists several' --fault-every 30s --nodes 3 --strategy allreduce,ps
refuses "a recipe" 2 "'distml-strategies' is a recipe" --fault-every 30s distml-strategies
refuses "a batch that follows the devices" 2 '--batch-per-device with --fault-every: .* give --batch' --fault-every 30s --nodes 3 --batch-per-device 8
refuses "steps" 2 '--steps with --fault-every: .* --repeat is the number of faults' --fault-every 30s --nodes 3 --steps 8
for option in --image-size=8 --channels=3 --classes=5; do
	refuses "$option" 2 'choose it with --data' --fault-every 30s --nodes 3 $option
done
for option in --launches=2 --to-accuracy=0.9 --seeds=2 --epochs=2 --out=o --quick --full --again --list --epoch=data; do
	refuses "$option" 2 "${option%%=*} with --fault-every: it is for a sweep" --fault-every 30s --nodes 3 $option
done
refuses "--profile" 2 '--profile with --fault-every' --fault-every 30s --nodes 3 --profile
for option in --replay=p --profile-out=p --replay-speed=2; do
	refuses "$option" 2 'training cannot be simulated' --fault-every 30s --nodes 3 $option
done
fails_with "under a launcher" 2 'leave out mpirun or srun' env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 \
	"$LOCKSTEP" bench --model mlp --fault-every 30s --nodes 3
is "none of them leaves anything" "$(ls -A tmp; ls)" "tmp"

fails_with "LOCKSTEP_FAULTS that means nothing" 2 "LOCKSTEP_FAULTS='often': it must be SECONDS:SEED:COUNT" \
	env LOCKSTEP_FAULTS=often "$LOCKSTEP" train --model mlp --data glyphs --elastic --hosts a:1,b:1 --run r

# Where no nodes can be emulated, the reason is said.
fails_with "no lab" 1 'cannot emulate nodes: .*nowhere' env LOCKSTEP_LAB_TOOL=/nowhere/lab "$LOCKSTEP" bench --model mlp \
	--fault-every 30s --nodes 2
is "and nothing is left" "$(ls -A tmp)" ""

test_end
