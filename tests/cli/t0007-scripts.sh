#!/bin/bash
# Every script of the tree passes shellcheck, and the workflow of hosted CI runs what the tree has.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Files of the tree, without build directories: a release has no git.
scripts() {
	find "$SOURCE_DIR" -path "$SOURCE_DIR/build*" -prune -o -path "$SOURCE_DIR/.git" -prune -o -path "$SOURCE_DIR/runs" -prune -o \
		-type f -print0 | xargs -0 awk 'FNR == 1 { if (/^#!\/bin\/(ba)?sh/) print FILENAME; nextfile }' | sort
}
scripts >list
ok "there are scripts" test "$(wc -l <list)" -gt 50
is "shellcheck has nothing to say" "$(cd "$SOURCE_DIR" && xargs shellcheck -x -P SCRIPTDIR -S warning <"$test_directory/list" 2>&1 | head -n 40)" ""
# shellcheck disable=SC2016 # the script's own
printf '#!/bin/bash\ncd $1\nfor f in $(ls); do rm $f; done\n' >bad.sh
ok "which finds a planted fault" eval '! shellcheck -S warning bad.sh >bad.out' # cd may fail

workflow=$SOURCE_DIR/.github/workflows/ci.yml
# The values of a matrix of the job `test`, and the commands of all steps.
/usr/bin/python3 - "$workflow" >workflow.txt <<'PYTHON'
import sys, yaml

jobs = yaml.safe_load(open(sys.argv[1]))["jobs"]
for name, values in jobs["test"]["strategy"]["matrix"].items():
    print("matrix", name, *values)
for job in jobs.values():
    assert job["timeout-minutes"] > 0 and job["runs-on"]
    for step in job["steps"]:
        assert ("run" in step) != ("uses" in step), step
        for line in step.get("run", "").splitlines():
            print("run", line)
    for word in str(job.get("env", {}).get("TESTS", "")).split():
        if "{{" not in str(job["env"]["TESTS"]):
            print("tests", word)
PYTHON
is "the workflow is YAML with jobs and steps" $? 0
is "it tests every compiler, sanitizer and MPI" "$(sed -n 's/^matrix //p' workflow.txt)" "compiler gcc clang
sanitizer plain address undefined thread
mpi on off"
missing=$(sed -nE 's/^run make ([a-z-]+).*/\1/p' workflow.txt | sort -u | while read -r target; do
	grep -q "^$target:" "$SOURCE_DIR/Makefile" || echo "$target"
done)
is "the make targets that it calls exist" "$missing" ""
ok "and it calls some" test "$(grep -c '^run make ' workflow.txt)" -ge 5
missing=$(sed -n 's/^tests //p' workflow.txt | while read -r word; do
	"$SOURCE_DIR/tools/run-tests" "$BUILD_DIR" --list "$word" >/dev/null 2>&1 || echo "$word"
done)
is "the tests that it names exist" "$missing" ""
for template in bug feature config; do
	ok "the issue template $template is YAML" \
		/usr/bin/python3 -c 'import sys, yaml; yaml.safe_load(open(sys.argv[1]))' "$SOURCE_DIR/.github/ISSUE_TEMPLATE/$template.yml"
done

# The packages of the libraries that the command is linked with, but for those every Debian has.
packages=$(readelf -d "$LOCKSTEP" "$BUILD_DIR"/liblockstep.so | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' | grep -vE '^liblockstep|^ld-' |
	sort -u | while read -r library; do
	dpkg-query -S "*/$library" 2>/dev/null | grep -vE 'i386|cross' | head -n 1 | cut -d: -f1
done | sort -u | grep -vxE 'libc6|libgcc-s1|lib(a|l|t|ub)san[0-9]+')
ok "libraries belong to packages" test "$(wc -l <<<"$packages")" -ge 6
is "the Dockerfile installs them" "$(for package in $packages; do
	grep -qE "(^| )$package( |\$)" "$SOURCE_DIR/Dockerfile" || echo "$package"
done)" ""

test_end
