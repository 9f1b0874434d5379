#!/bin/bash
# --hosts through a real ssh: the nodes of other hosts are started by sshd there, and have the environment of a login. Keys,
# configuration and known hosts are the test's own; the lab's replacement of ssh is not used.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

job=(--model mlp --data glyphs --samples 330 --test-samples 100 --batch 64 --micro-batch 8 --schedule constant --eval-every 0 --steps 30)
lab_up 3 --rate 1gbit

# ---- sshd on b and c, ssh on a ---------------------------------------------------------------------------------------
mkdir -m 700 ssh bin
for key in user stranger host.b host.c; do
	ssh-keygen -q -t ed25519 -N '' -C test -f "ssh/$key"
done
cp ssh/user.pub ssh/authorized.b
cp ssh/user.pub ssh/authorized.c
known() { # HOST...: the keys that a knows
	local host
	for host; do echo "$host $(cut -d ' ' -f 1,2 "ssh/host.$host.pub")"; done >ssh/known_hosts
}
known b c
cat >ssh/config <<CONFIG
Host *
	User $(id -un)
	IdentityFile $PWD/ssh/user
	IdentityAgent none
	IdentitiesOnly yes
	UserKnownHostsFile $PWD/ssh/known_hosts
	GlobalKnownHostsFile /dev/null
	StrictHostKeyChecking yes
	UpdateHostKeys no
CONFIG
printf '#!/bin/sh\nexec /usr/bin/ssh -F %q "$@"\n' "$PWD/ssh/config" >bin/ssh # what mpirun finds first in PATH
chmod +x bin/ssh

start_sshd() { # HOST: in a /run of its own, where it wants a directory
	cat >"ssh/sshd.$1" <<CONFIG
HostKey $PWD/ssh/host.$1
AuthorizedKeysFile $PWD/ssh/authorized.$1
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PidFile none
CONFIG
	# shellcheck disable=SC2016 # for the shell on the host
	"$lab" run --on "$1" sh -c 'mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec env -i PATH="$PATH" /usr/sbin/sshd -D -e -f "$1"' \
		sh "$PWD/ssh/sshd.$1" >"ssh/$1.log" 2>&1 &
	disown # `lab down` ends it
	ok "sshd answers on $1" wait_for 20 "$lab" run "$PWD/bin/ssh" -o BatchMode=yes "$1" true
}
start_sshd b
start_sshd c

# As a user would on a host without the lab: mpirun is to find ssh by itself.
by_ssh() { # COMMAND...: in $limit seconds at most, or $train_limit
	local name unset=()
	for name in OMPI_MCA_plm OMPI_MCA_plm_rsh_agent OMPI_MCA_pml OMPI_MCA_btl OMPI_MCA_btl_tcp_if_include OMPI_MCA_oob_tcp_if_include; do
		unset+=(-u "$name")
	done
	timeout "${limit:-$train_limit}" "$lab" run env "${unset[@]}" PATH="$PWD/bin:$PATH" "$@"
}
is "a command goes through it" "$(by_ssh ssh -o BatchMode=yes b hostname)" b

# ---- training --------------------------------------------------------------------------------------------------------
run "$LOCKSTEP" train "${job[@]}" --devices 1
whole=$(fingerprint "$out")
like "a run on one host" "$status $whole" '^0 [0-9a-f]{16}$'
run by_ssh "$LOCKSTEP" train --hosts a:1,b:1,c:1 "${job[@]}"
is "three hosts, by ssh" "$status $(fingerprint "$out")" "0 $whole"
only_sshd() { # without sessions
	[ "$(lab_processes | wc -l)" = 2 ] && [ "$(lab_processes | xargs ps -o comm= -p | sort -u)" = sshd ]
}
ok "sessions have ended on all hosts" wait_for 20 only_sshd

# ---- an alias ----
# A name that only ssh knows: it does not resolve, so nobody can ask whether the host answers, and it takes part all the same.
cat >>ssh/config <<CONFIG
Host far
	HostName b
	HostKeyAlias b
CONFIG
limit=$((3 * train_limit)) # of three starts, with the silence of one host
by_ssh "$LOCKSTEP" train --elastic --hosts a:1,far:1,c:1 "${job[@]}" --steps 1500 --ckpt-every 50 --timeout 5 --run alias >bg.out 2>bg.err &
job_id=$!
said() { grep -qE "^Elastic: $1" bg.out; }
ok "an alias: a checkpoint is written" wait_for 40 has_checkpoint alias
sleep 1.5 # the other hosts are asked once
kill -9 "$(node_on c)"
ok "an alias: when another node is lost, all go on" wait_for 40 said 'continuing on 3 nodes: a:1,far:1,c:1$'
ok "an alias: and train" wait_for 40 said 'training from step'
kill -STOP "$(node_on b)"
ok "an alias: a host that is lost in silence is left out for a while" wait_for 60 said 'host far stopped responding; excluded for 60 s$'
ok "an alias: and the others go on" wait_for 40 said 'continuing on 2 nodes: a:1,c:1$'
wait_bounded $job_id
is "an alias: to the end" "$?" 0
unset limit
ok "an alias: sessions have ended on all hosts" wait_for 20 only_sshd

# ---- hosts that let nobody in ----------------------------------------------------------------------------------------
fails() { # NAME PATTERN
	fails_with "$1" 1 "$2" by_ssh "$LOCKSTEP" train --hosts a:1,b:1,c:1 "${job[@]}"
	ok "$1: and nothing is left" wait_for 20 only_sshd
}
known b
fails "a host whose key is unknown" 'cannot start nodes on b, c: No ED25519 host key is known for c '
sed -i 's/StrictHostKeyChecking yes/StrictHostKeyChecking ask/' ssh/config # the default: ssh would ask, and prints no name
fails "a host whose key would be asked about" "cannot start nodes on b, c: Host key verification failed\. \(try 'ssh HOST true' for each of them\)"
echo "c $(cut -d ' ' -f 1,2 ssh/stranger.pub)" >>ssh/known_hosts
fails "a host whose key has changed" 'cannot start nodes on b, c: .*Host key for c has changed'
is "... in one line, without the usual warning" "$(wc -l <<<"$err") $(grep -c $'[@\r]' <<<"$err")" "1 0"
known b c
cp ssh/stranger.pub ssh/authorized.c
fails "a login that is refused" "cannot start nodes on b, c: $(id -un)@c: Permission denied"
cp ssh/user.pub ssh/authorized.c

# ---- a host without sshd ---------------------------------------------------------------------------------------------
# shellcheck disable=SC2046 # ids
kill $("$lab" ps c)
ok "sshd of c ends" wait_for 20 sh -c "[ -z \"\$('$lab' ps c)\" ]"
fails_with "a host without sshd" 1 'cannot start nodes on b, c: ssh: connect to host c port 22: Connection refused' \
	by_ssh "$LOCKSTEP" train --hosts a:1,b:1,c:1 "${job[@]}"

test_end
