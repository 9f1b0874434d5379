#!/bin/bash
# lockstep k8s: the file is YAML with the fields that a Job and an MPIJob must have, and no others; its scripts are sound,
# train, resume, and stop with a checkpoint. No cluster is asked.
# shellcheck disable=SC2016 # words to quote have dollars of their own
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >k8s.py <<'PYTHON'
"""k8s.py check FILE: compare with the documented fields.  k8s.py get FILE EXPRESSION: of o, the document."""
import re, sys, yaml

# A dict lists allowed fields, "!" marks those that are required; a list is a list of its member; a type or pattern is a value.
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
QUANTITY = re.compile(r"[0-9]+(k|M|G|T|Ki|Mi|Gi|Ti)?")
RESOURCES = {"!requests": {"!cpu": QUANTITY, "memory": QUANTITY}, "!limits": {"!cpu": QUANTITY, "memory": QUANTITY}}
CONTAINER = {"!name": NAME, "!image": str, "command": [str], "args": [str], "workingDir": re.compile("/.*"), "!resources": RESOURCES,
             "env": [{"!name": str, "!value": str}], "securityContext": {"runAsUser": int},
             "volumeMounts": [{"!name": NAME, "!mountPath": re.compile("/.*")}]}
POD = {"!containers": [CONTAINER], "terminationGracePeriodSeconds": int, "volumes": [{"!name": NAME, "!persistentVolumeClaim": {"!claimName": NAME}}]}
META = {"!name": NAME, "namespace": NAME}
REPLICA = {"!replicas": int, "restartPolicy": re.compile("Never|OnFailure"), "!template": {"!spec": POD}}
KINDS = {
    "Job": {"!apiVersion": re.compile("batch/v1"), "!kind": str, "!metadata": META,
            "!spec": {"backoffLimit": int, "!template": {"!spec": {**POD, "!restartPolicy": re.compile("Never|OnFailure")}}}},
    "MPIJob": {"!apiVersion": re.compile("kubeflow.org/v2beta1"), "!kind": str, "!metadata": META,
               "!spec": {"slotsPerWorker": int, "mpiImplementation": re.compile("OpenMPI|Intel|MPICH"),
                         "runPolicy": {"cleanPodPolicy": re.compile("All|Running|None"), "backoffLimit": int},
                         "!mpiReplicaSpecs": {"!Launcher": REPLICA, "!Worker": REPLICA}}},
}

def check(value, schema, where):
    if isinstance(schema, dict):
        assert isinstance(value, dict), f"{where} is no mapping"
        fields = {field.lstrip("!"): rule for field, rule in schema.items()}
        for field in schema:
            assert not field.startswith("!") or field[1:] in value, f"{where}.{field[1:]} is missing"
        for field, inner in value.items():
            assert field in fields, f"{where}.{field} is not a field"
            check(inner, fields[field], f"{where}.{field}")
    elif isinstance(schema, list):
        assert isinstance(value, list) and value, f"{where} is no list"
        for inner in value:
            check(inner, schema[0], where + "[]")
    elif isinstance(schema, type):
        assert type(value) is schema, f"{where}: {value!r} is no {schema.__name__}"
    else:
        assert isinstance(value, str) and schema.fullmatch(value), f"{where}: {value!r}"

def check_references(pod):
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    for container in pod["containers"]:
        for mount in container.get("volumeMounts", []):
            assert mount["name"] in volumes, f"no volume {mount['name']}"

o = yaml.safe_load(open(sys.argv[2]))
if sys.argv[1] == "check":
    check(o, KINDS[o["kind"]], o["kind"])
    specs = [o["spec"]] if o["kind"] == "Job" else o["spec"]["mpiReplicaSpecs"].values()
    for spec in specs:
        check_references(spec["template"]["spec"])
else:
    print(eval(sys.argv[3]), end="")
PYTHON
make_job() { # WORDS...: job.yaml
	run "$LOCKSTEP" k8s "$@" -o job.yaml --force -- "${behind[@]}"
}
pod='o["spec"]["template"]["spec"]'
launcher='o["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]'
worker='o["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]'
get() { python3 k8s.py get job.yaml "$1"; } # EXPRESSION

# ---- one node --------------------------------------------------------------------------------------------------------
behind=(--model mlp --data glyphs --run runs/a)
make_job --devices 4 --threads 2 --mem 8Gi --claim work --namespace team --job-name night --grace 90 --retries 3 --image reg.example.org/ls:1
is "a job" "$status$err" 0
is "it says how to submit it" "$out" "wrote job.yaml; submit it with: kubectl apply -f job.yaml"
ok "it has the fields of a Job" python3 k8s.py check job.yaml
is "names" "$(get 'o["kind"], o["metadata"]["name"], o["metadata"]["namespace"]')" "('Job', 'night', 'team')"
is "cores and memory" "$(get "$pod"'["containers"][0]["resources"]["limits"]')" "{'cpu': '8', 'memory': '8Gi'}"
is "requests are limits" "$(get "$pod"'["containers"][0]["resources"]["requests"] == '"$pod"'["containers"][0]["resources"]["limits"]')" True
is "time to stop, and retries" "$(get "$pod"'["terminationGracePeriodSeconds"], o["spec"]["backoffLimit"]')" "(90, 3)"
is "the claim" "$(get "$pod"'["volumes"][0]["persistentVolumeClaim"]["claimName"], '"$pod"'["containers"][0]["volumeMounts"][0]["mountPath"]')" "('work', '/work')"
is "the image" "$(get "$pod"'["containers"][0]["image"]')" "reg.example.org/ls:1"
like "it says that it was never run on a cluster" "$(cat job.yaml)" 'never run on a cluster'
make_job
like "without a claim it warns" "$err" 'without --claim the run is lost'
ok "and is a Job as well" python3 k8s.py check job.yaml
sed -i 's/backoffLimit/backofLimit/' job.yaml
ok "a misspelt field would be found" sh -c '! python3 k8s.py check job.yaml'

# ---- words -----------------------------------------------------------------------------------------------------------
mkdir bin
printf '#!/bin/bash\nprintf "%%s\\n" "${@@Q}" >words\n' >bin/lockstep
chmod +x bin/lockstep
script() { get "${1:-$pod}"'["containers"][0]["args"][0]' >script.sh; } # [POD]
quoted() { printf '%s\n' "${@@Q}"; }
odd=("it's" 'two words' '$HOME `id` $(id)' 'a"b' 'back\slash' '*' '#x' $'line\nbreak' $'tab\t\'quote\'' 'ümlaut' '-dash' ': - {' '%' '!')
intact=0
for word in "${odd[@]}"; do
	behind=(--model mlp --data "$word" --run "r $word")
	make_job --devices 3
	python3 k8s.py check job.yaml >check.out 2>&1 || { intact=1 && test_note "$(tail -n 1 check.out)"; }
	script
	PATH=$PWD/bin:$PATH bash script.sh
	quoted train --devices 3 --threads 1 --model mlp --data "$word" --run "r $word" >expected
	cmp -s words expected || { intact=1 && test_note "$(diff words expected)"; }
	shellcheck -s bash -e SC2016 script.sh >check.out 2>&1 || { intact=1 && test_note "$(cat check.out)"; }
done
is "all words arrive as typed" "$intact" 0

# ---- its script, with the command ------------------------------------------------------------------------------------
job=(--model mlp --data glyphs --samples 320 --batch 32 --micro-batch 8 --schedule constant --eval-every 0 --ckpt-every 5)
run "$LOCKSTEP" train "${job[@]}" --devices 1 --steps 20
whole=$(fingerprint "$out")
behind=("${job[@]}" --steps 20 --run one)
make_job --program "$LOCKSTEP"
script
run bash script.sh
is "it trains" "$status $(fingerprint "$out")" "0 $whole"
behind=("${job[@]}" --steps 1000000 --log-every 1 --run long)
make_job --program "$LOCKSTEP"
script
stop_it() { # NAME STATUS: as Kubernetes does with a pod, by SIGTERM to its first process
	bash script.sh >long.out 2>long.err &
	local pid=$!
	ok "$1: it trains" wait_for 60 has_checkpoint long
	kill -TERM $pid
	wait $pid
	is "$1: it is stopped with a checkpoint" "$? $(grep -c 'stopped after step' long.out long.err | cut -d : -f 2 | paste -sd +)" "$2 0+1"
}
stop_it "one node" 143
run timeout 20 bash script.sh
like "and resumes when it starts again" "$out$err" 'resuming long/ckpt/step-'

# ---- several nodes ---------------------------------------------------------------------------------------------------
behind=("${job[@]}" --steps 20 --run two)
make_job --nodes 2 --devices 2 --mem 1Gi --claim work --program "$LOCKSTEP"
ok "several nodes are an MPIJob" python3 k8s.py check job.yaml
is "workers" "$(get 'o["kind"], o["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"], '"$worker"'["containers"][0]["resources"]["limits"]["cpu"]')" "('MPIJob', 2, '2')"
is "workers run sshd" "$(get "$worker"'["containers"][0]["command"]')" "['/usr/sbin/sshd', '-De']"
if "$LOCKSTEP" train --hosts localhost,localhost --steps 1 2>&1 | grep -q 'has no MPI'; then
	skip "the launcher's script" "this build has no MPI"
else
	# What the operator sets, here for two nodes on this machine.
	echo "localhost slots=2" >hostfile
	export OMPI_MCA_orte_default_hostfile=$PWD/hostfile LOCKSTEP_DATA
	script "$launcher"
	ok "the launcher's script is sound" shellcheck -s bash script.sh
	run timeout 60 bash script.sh
	is "the launcher trains on two nodes" "$status $(fingerprint "$out")" "0 $whole"
	rm -rf long
	behind=("${job[@]}" --steps 1000000 --log-every 1 --run long)
	make_job --nodes 2 --program "$LOCKSTEP"
	script "$launcher"
	stop_it "two nodes" 138 # of SIGUSR1, which mpirun passes on
fi

# ---- mistakes --------------------------------------------------------------------------------------------------------
bad() { # NAME PATTERN WORDS...
	fails_with "$1" 2 "$2" "$LOCKSTEP" k8s "${@:3}"
}
bad "nothing to train" "what to train is missing" --nodes 2
bad "a typo behind the --" "lockstep train: unknown option '--epohs'" -- --epohs 2
bad "devices behind the --" "--devices goes before the --" -- --devices 2
bad "hosts" "--hosts: Kubernetes chooses the hosts" -- --hosts a,b
bad "elastic" "--elastic: Kubernetes starts a job that lost a node again" -- --elastic --run r
for name in Night a_b -a a- "a b" "$(printf 'a%.0s' {1..41})"; do
	bad "a name like $name" "--job-name: '$name' is not a name" "--job-name=$name" --
done
bad "a claim" "--claim: 'A' is not a name" --claim A --
bad "a namespace" "--namespace: 'A' is not a name" --namespace A --
for size in G 64X 64GB -1 1.5G; do
	bad "memory $size" "--mem: '$size' is not a size" "--mem=$size" --
done
bad "an image" "--image: 'a b' is not the name of an image" --image "a b" --
bad "a mount" "--mount: 'work' must begin with /" --mount work --
bad "a file that is there" "job.yaml exists; add --force" -o job.yaml -- --run r

test_end
