# Shared by the end-to-end tests: whole Runs with agents that are shell scripts. Sourced.
set -u
export EPG_TEST_BENCHMARKS=1
work=$(mktemp -d "${TMPDIR:-/tmp}/epg-e2e-XXXXXX")
export TMPDIR="$work/tmp"
mkdir "$TMPDIR"
failed=0
checks=0
finish_test() {
    local code=$?
    chmod -R u+w "$work" 2>/dev/null
    rm -rf "$work"
    [ $code -ne 0 ] || [ $failed -ne 0 ] || [ $checks -gt 0 ] || { echo 'no check was made'; exit 1; }
    exit $((code != 0 ? code : failed))
}
trap finish_test EXIT
fail() {
    printf 'FAILED: %s\n' "$*"
    failed=1
}
check() { # WHAT COMMAND...
    local what=$1
    shift
    checks=$((checks + 1))
    "$@" || fail "$what"
}
mkdir "$work/start"
printf 'class P:\n    def act(self, o):\n        return 1\ndef make_policy(c):\n    return P()\n' >"$work/start/policy.py"

# A Run of the one-step test Benchmark with a shell script as its Agent. Options before --, then the script's text.
run_command() { # NAME OPTIONS... -- SCRIPT: sets $run and the array $command
    run="$work/$1"
    shift
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    printf '%s\n' "$2" >"$run.sh"
    command=("$EPG_BIN/evopolicygym" run "$run" -b test/one-step -p "$work/start" --execution process
        --allow-unsafe-process --progress plain --episode-budget 20 --agent-grace "${grace:-5}" "${options[@]}" -- bash "$run.sh")
}
run() { # as run_command; sets $code; output in $run.out and $run.err
    run_command "$@"
    "${command[@]}" >"$run.out" 2>"$run.err"
    code=$?
}
# A Python expression over the Run's record: `record`, `events` (a list), `names` (of events), `text(path)`.
holds() { # EXPRESSION
    python3 - "$run" "$1" <<'P'
import json, os, stat, sys
run, expression = sys.argv[1:]
def text(path):
    with open(os.path.join(run, path), encoding="utf-8", errors="replace") as file:
        return file.read()
def mode(path):
    return stat.S_IMODE(os.lstat(os.path.join(run, path)).st_mode)
def exists(path):
    return os.path.lexists(os.path.join(run, path))
record = json.loads(text("run.json")) if exists("run.json") else None
events = [json.loads(line) for line in text("events.jsonl").splitlines()]
names = [event["event"] for event in events]
host = (record or {}).get("host", {})
def find(name):
    return [event for event in events if event["event"] == name]
if not eval(expression):
    print("not so:", expression)
    print("terminal_reason:", record and record["terminal_reason"], "events:", names[-12:])
    sys.exit(1)
P
}
# Every process that carries this test's directory in its command line or environment.
living() {
    SOUGHT="$work" MARKER="epg-test-marker-$$" python3 - <<'P'
import os
work, marker = os.environ["SOUGHT"], os.environ["MARKER"]
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read().decode(errors="replace")
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode(errors="replace").replace("\0", " ")
    except OSError:
        continue
    if f"EVOPOLICYGYM_WORKSPACE={work}/" in environment or f"evopolicygym run {work}/" in words or marker in words:
        print(pid)
P
}
none_living() { # within a second, generously polled
    local i
    for i in 1 2 3 4 5 6 7 8 9 10; do
        [ -z "$(living)" ] && return 0
        sleep 0.1
    done
    ps -fp "$(living | tr "\n" "," | sed "s/,$//")" | sed 's/^/  left: /'
    return 1
}
wait_for() { # a file, within a generous limit
    local i
    for i in $(seq 600); do
        [ -e "$1" ] && return 0
        sleep 0.05
    done
    fail "$1 never came"
    return 1
}
