#!/usr/bin/env bash
# Whole evaluations: every trusted fault aborts and says whose it is and which call; every Policy failure is data; the
# results are the same for any number of workers; nothing is left behind.
set -u
export EPG_TEST_BENCHMARKS=1
work=$(mktemp -d)
export TMPDIR="$work/tmp"
mkdir "$TMPDIR"
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
    printf 'FAILED: %s\n' "$*"
    failed=1
}
program() { # NAME SOURCE
    mkdir -p "$work/$1"
    printf '%s' "$2" >"$work/$1/policy.py"
}
evaluate() { # PROGRAM BENCHMARK OPTIONS...
    local name=$1 benchmark=$2
    shift 2
    "$EPG_BIN/evopolicygym" evaluate "$work/$name" -b "$benchmark" --execution process --allow-unsafe-process "$@" \
        >"$work/out" 2>"$work/err"
}

program good 'class P:
    def act(self, o):
        return 0
def make_policy(c):
    return P()
'
# --- trusted faults ---
fault() { # AT WORD-IN-THE-MESSAGE [OPTIONS...]
    local at=$1 word=$2
    shift 2
    evaluate good "test/faults?at=$at" -n 3 -j 2 "$@"
    local code=$?
    [ $code -eq 3 ] || fail "at=$at: exit code $code, not a Benchmark's fault: $(cat "$work/err")"
    grep -q -- "$word" "$work/err" || fail "at=$at: the message does not name $word: $(cat "$work/err")"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "at=$at: more than one line: $(cat "$work/err")"
    [ ! -s "$work/out" ] || fail "at=$at: something on standard output"
}
fault spec spec
fault episodes episodes
fault open make_environment
fault reset Environment.reset
fault step Environment.step
fault close Environment.close
fault feedback feedback
fault hang-reset Environment.reset --environment-timeout 1
fault hang-step Environment.step --environment-timeout 1
fault hang-close Environment.close --environment-timeout 1
fault hang-feedback feedback --environment-timeout 1
fault crash-step 'test/faults?at=crash-step: Environment.step failed: .* signal 9'
fault exit-step 'test/faults?at=exit-step: Environment.step failed: .*exit code'
fault observation-nan observation
fault observation-deep observation
fault observation-large observation
fault observation-junk observation
fault reset-observation-deep Environment.reset
fault reward-nan reward
fault reward-huge infinity
fault never-ends horizon
fault score-nan feedback
fault artifact-name feedback
# The longest limits that can be said are limits like others.
evaluate good 'test/idle?steps=3' -n 1 --environment-timeout 8.9e9 --episode-timeout 8.9e9 ||
    fail "long limits: $(cat "$work/err")"
grep -q '0 failed' "$work/out" || fail "long limits: $(cat "$work/out")"

# --- a worker and its monitor end together: told, at once ---
mkdir "$work/other"
TMPDIR="$work/other" timeout 60 python3 - "$EPG_BIN/evopolicygym" "$work/good" <<'P' || fail 'a monitor that is killed'
import os, signal, subprocess, sys, time
def of(pid, what):
    try:
        return open(f"/proc/{pid}/{what}").read()
    except OSError:
        return ""  # it has ended
def children(pid):
    return [int(word) for word in of(pid, f"task/{pid}/children").split()]
host = subprocess.Popen([sys.argv[1], "evaluate", sys.argv[2], "-b", "test/faults?at=hang-step", "-n", "1", "-j", "1",
                         "--execution", "process", "--allow-unsafe-process"], stderr=subprocess.PIPE, text=True)
def monitor_of_busy_worker():
    for monitor in children(host.pid):
        if "monitor" not in of(monitor, "cmdline").split("\0"):
            continue  # an interpreter that is looked at
        for worker in children(monitor):
            if children(worker):  # it has begun with Policies
                return monitor
while (monitor := monitor_of_busy_worker()) is None:
    time.sleep(0.01)
os.kill(monitor, signal.SIGKILL)
error = host.communicate()[1]
assert host.returncode == 4 and error.count("\n") == 1, (host.returncode, error)
assert "its monitor did not tell how" in error, error
P

# --- what is no conversation with a worker is a fault that it tells, and its end ---
for frame in '\5F\0\0\0\1' '\5C\0\0\0\1' '\5?\0\0\0\1' '\17F\0\0\0\1I\0\0\0\0\0\0\0\0010'; do
    # shellcheck disable=SC2059
    printf "\\0\\0\\0$frame" | timeout 60 "$EPG_BIN/evopolicygym" worker >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq 1 ] && grep -qa 'X.*code' "$work/out" || fail "a worker that is told '$frame': $code $(cat "$work/err")"
done

# --- Policy failures are data, and the plan goes on ---
policy() { # NAME FAILURE CAUSE SOURCE [OPTIONS...]
    local name=$1 failure=$2 cause=$3
    program "$name" "$4"
    shift 4
    evaluate "$name" 'test/idle?steps=3' -n 2 --json "$@" || fail "$name: exit code $?: $(cat "$work/err")"
    python3 - "$work/out" "$failure" "$cause" <<'P' || fail "$name: $(cat "$work/out")"
import json, sys
document = json.load(open(sys.argv[1]))
for episode in document["episodes"]:
    assert episode["status"] == "policy_failed" and episode["reward"] is None, episode
    assert episode["failure"] == sys.argv[2], episode
    assert episode["host"]["cause"] == sys.argv[3], episode
assert document["policy_failures"] == 2
P
}
act() { printf 'import os, sys, time, signal\nclass P:\n    def act(self, o):\n        %s\ndef make_policy(c):\n    return P()\n' "$1"; }
policy raises exception act "$(act 'raise ValueError(1)')"
policy recursion exception act "$(act 'return self.act(o)')"
policy no_make_policy exception load 'x = 1
'
policy bad_import exception load 'import no_such_module_here
'
policy make_raises exception make_policy 'def make_policy(c):
    raise RuntimeError("no")
'
policy sleeps timeout timeout_act "$(act 'time.sleep(100)')" --episode-timeout 0.7
policy exits protocol_error died "$(act 'os._exit(0)')"
policy killed protocol_error died "$(act 'os.kill(os.getpid(), signal.SIGKILL)')"
policy not_a_number protocol_error inadmissible_value "$(act 'return float("nan")')"
policy an_object protocol_error inadmissible_value "$(act 'return object()')"

# --- printing is no failure ---
program prints "$(act 'print("x" * 100000); sys.stderr.write("y" * 100000); return 0')"
evaluate prints 'test/idle?steps=3' -n 2 --json || fail "prints: $(cat "$work/err")"
grep -q '"policy_failures": 0' "$work/out" || fail "a Policy that prints failed"

# --- the same for any number of workers ---
for jobs in 1 2 5; do
    evaluate good cartpole -n 12 --seed 18446744073709551615 -j $jobs --json || fail "jobs $jobs: $(cat "$work/err")"
    grep -v -e _seconds -e '"jobs"' "$work/out" >"$work/jobs-$jobs"
done
cmp "$work/jobs-1" "$work/jobs-2" && cmp "$work/jobs-1" "$work/jobs-5" || fail "results differ with the number of workers"

# --- mistakes cost one line, exit code 2, and nothing else ---
mistake() { # WORD ARGUMENTS...
    local word=$1
    shift
    "$EPG_BIN/evopolicygym" "$@" >"$work/out" 2>"$work/err"
    local code=$?
    [ $code -eq 2 ] || fail "'$*': exit code $code"
    [ "$(wc -l <"$work/err")" -eq 1 ] && grep -q -- "$word" "$work/err" || fail "'$*': $(cat "$work/err")"
    [ ! -s "$work/out" ] || fail "'$*': something on standard output"
}
unsafe=(--execution process --allow-unsafe-process)
mkdir "$work/empty"
mistake 'did you mean "evaluate"' evalute
mistake 'name one Program' evaluate -b cartpole "${unsafe[@]}"
mistake 'cartpole' evaluate "$work/good" "${unsafe[@]}"
mistake 'cartpole' evaluate "$work/good" -b cartpol "${unsafe[@]}"
mistake 'policy.py' evaluate "$work/empty" -b cartpole "${unsafe[@]}"
mistake 'missing' evaluate "$work/missing" -b cartpole "${unsafe[@]}"
mistake 'allow-unsafe-process' evaluate "$work/good" -b cartpole --execution process
mistake 'execution' evaluate "$work/good" -b cartpole --execution microvm
mistake 'episodes' evaluate "$work/good" -b cartpole -n 0 "${unsafe[@]}"
mistake 'python' evaluate "$work/good" -b cartpole --python "$work/nothing" "${unsafe[@]}"

# --- a Policy's memory ---
program hungry 'class P:
    def act(self, o):
        self.hoard = bytearray(b"x") * (300 << 20)
        return 0
def make_policy(c):
    return P()
'
evaluate hungry cartpole -n 1 --policy-memory 200M || fail "hungry: $(cat "$work/err")"
grep -q '1 failed' "$work/out" || fail "a Policy has more than its memory: $(cat "$work/out")"
evaluate hungry cartpole -n 1 --policy-memory 1G || fail "hungry: $(cat "$work/err")"
grep -q '0 failed' "$work/out" || fail "a Policy has less than its memory: $(cat "$work/out")"
mistake 'policy-memory takes a size such as' evaluate "$work/good" -b cartpole --policy-memory 20 "${unsafe[@]}"

left=$(ls -A "$TMPDIR" | wc -l)
[ "$left" -eq 0 ] || fail "$left things are left in the temporary directory"
[ $failed -eq 0 ] && echo 'all evaluations behaved'
exit $failed
