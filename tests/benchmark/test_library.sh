#!/usr/bin/env bash
# A Benchmark in a shared library runs in the worker itself. What it does wrong there, its death too, is its own fault, in
# one line that names it and the call; nothing hangs, nothing is charged to a Policy, no process is left.
set -u
program=$EPG_BIN/evopolicygym
work=$(mktemp -d)
export TMPDIR="$work/tmp"
mkdir "$TMPDIR"
trap 'rm -rf -- "$work"' EXIT
failed=0
fail() {
    printf 'FAILED: %s\n' "$*"
    failed=1
}
"${EPG_CC:-cc}" -shared -fPIC -I "$EPG_SOURCE/include" "$EPG_SOURCE/tests/benchmark/bad_library.c" -o "$work/bad.so" ||
    fail 'it did not build'
mkdir "$work/good"
printf 'class P:\n    def act(self, o):\n        return 3\ndef make_policy(c):\n    return P()\n' >"$work/good/policy.py"
evaluate() { # WRONG
    local limit=60
    [[ $1 == hang-* || $1 == halt-* ]] && limit=1
    timeout -k 5 120 "$program" evaluate "$work/good" -b "lib:$work/bad.so?$1" -n 3 -j 2 --execution process --allow-unsafe-process \
        --environment-timeout $limit --json >"$work/out" 2>"$work/err"
}
for wrong in none stop-open stop-step stop-feedback print-open print-spec print-step print-close print-feedback spawn-step spawn-close; do
    evaluate $wrong || fail "$wrong: $(cat "$work/err")"
    grep -q '"score": 1.0' "$work/out" || fail "$wrong: another score"
done
while read -r wrong pattern; do
    evaluate "$wrong"
    code=$?
    [ $code -eq 3 ] || fail "$wrong: exit code $code: $(cat "$work/err")"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$wrong: not one line: $(cat "$work/err")"
    grep -qE -- "$pattern" "$work/err" || fail "$wrong: no \"$pattern\" in: $(cat "$work/err")"
    [ ! -s "$work/out" ] || fail "$wrong: something on standard output"
done <<'FAULTS'
open bad.so: open failed: told to fail
close bad.so: close failed: told to fail
silent bad.so: step failed: it did not say why
score bad.so: feedback gave no score
number Environment.reset gave an observation .*not finite
deep Environment.reset gave an observation .*over 32 levels
short Environment.reset gave an observation .*fewer items
utf8 Environment.reset gave an observation .*UTF-8
nothing Environment.reset gave an observation .*cut short
crash-open bad.so.crash-open: open failed: .*ended by signal 6
crash-spec bad.so.crash-spec: spec failed: .*ended by signal 6
crash-make bad.so.crash-make: make_environment failed: .*ended by signal 6
crash-reset bad.so.crash-reset: Environment.reset failed: .*ended by signal 6
crash-step bad.so.crash-step: Environment.step failed: .*ended by signal 6
crash-close bad.so.crash-close: Environment.close failed: .*ended by signal 6
crash-feedback bad.so.crash-feedback: feedback failed: .*ended by signal 6
exit-step bad.so.exit-step: Environment.step failed: .*exit code 0
exit-feedback bad.so.exit-feedback: feedback failed: .*exit code 0
kill-reset bad.so.kill-reset: Environment.reset failed: .*ended by signal 9
hang-open bad.so.hang-open: open did not return within its time limit
hang-spec bad.so.hang-spec: spec did not return within its time limit
hang-make bad.so.hang-make: make_environment did not return within
hang-reset bad.so.hang-reset: Environment.reset did not return within
hang-step bad.so.hang-step: Environment.step did not return within
hang-close bad.so.hang-close: Environment.close did not return within
hang-feedback bad.so.hang-feedback: feedback did not return within
halt-open bad.so.halt-open: open did not return within
halt-step bad.so.halt-step: Environment.step did not return within
halt-feedback bad.so.halt-feedback: feedback did not return within
FAULTS
# Nothing of it runs in the command's own process.
while read -r wrong code pattern; do
    "$program" benchmark show "lib:$work/bad.so?$wrong" --json >"$work/out" 2>"$work/err"
    got=$?
    [ $got -eq "$code" ] || fail "show $wrong: exit code $got: $(cat "$work/err")"
    grep -qE -- "$pattern" "$work/out" "$work/err" || fail "show $wrong: no \"$pattern\" in: $(cat "$work/err")"
    [ $got -ne 0 ] || python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/out" || fail "show $wrong: no JSON"
done <<'SHOWN'
none 0 "id": "test/bad-library"
print-spec 0 "id": "test/bad-library"
open 3 bad.so: open failed: told to fail
crash-open 3 bad.so.crash-open: open failed: .*ended by signal 6
crash-spec 3 bad.so.crash-spec: spec failed: .*ended by signal 6
exit-spec 3 bad.so.exit-spec: spec failed: .*exit code 0
SHOWN
"$program" benchmark baseline "lib:$work/bad.so?crash-open" --to "$work/none" >"$work/out" 2>&1
[ $? -eq 6 ] && grep -q 'has no baseline Program; begin with' "$work/out" || fail "baseline: $(cat "$work/out")"
# A Run names its Benchmark from where it was started; elsewhere the refusal says that.
(cd "$work" && timeout -k 5 120 "$program" run run -b 'lib:./bad.so?none' -p good --episode-budget 2 --validation-episodes 1 \
    --assessment-episodes 1 --execution process --allow-unsafe-process -- sh -c 'evopolicygym-session submit program --episodes 0 &&
        evopolicygym-session finish submission-000001') >"$work/out" 2>&1 ||
    fail "a Run: $(cat "$work/out")"
(cd / && timeout -k 5 60 "$program" replay "$work/run" --allow-unsafe-process) >"$work/out" 2>"$work/err"
[ $? -eq 2 ] || fail 'replay from elsewhere: another exit code'
grep -q 'bad.so.*the directory where the Run was started: do this there' "$work/err" ||
    fail "replay from elsewhere: $(cat "$work/err")"
(cd "$work" && timeout -k 5 60 "$program" replay run --allow-unsafe-process) >"$work/out" 2>&1 || fail "replay: $(cat "$work/out")"
[ -z "$(ls -A "$TMPDIR")" ] || fail "left behind: $(ls -A "$TMPDIR")"
pgrep -f "$work|sleep 31574" >/dev/null && fail 'a process was left running'
exit "$failed"
