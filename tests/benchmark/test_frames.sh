#!/usr/bin/env bash
# What an executable may say in frames, and every way to say it wrong: a trusted fault that names the call.
set -u
program=$EPG_BIN/evopolicygym
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
python=$(python3 -c 'import sys; print(sys.executable)') # past shims, which are slow
raw="cmd:'$python' -I -S '$EPG_SOURCE/tests/benchmark/packages/raw.py'"
failed=0
fail() {
    printf 'FAILED: %s\n' "$*"
    failed=1
}
mkdir "$work/good"
printf 'class P:\n    def act(self, o):\n        return 0\ndef make_policy(c):\n    return P()\n' >"$work/good/policy.py"
evaluate() { # WHAT
    local limit=60
    [[ $1 == hang-* ]] && limit=5
    "$program" evaluate "$work/good" -b "$raw $1" -n 1 -j 1 --python "$python" --execution process \
        --allow-unsafe-process --environment-timeout $limit --json >"$work/out" 2>"$work/err"
}

for what in nothing print-spec print-step print-close spawn-step spawn-close; do
    evaluate $what || fail "$what: $(cat "$work/err")"
    grep -q '"steps": 2' "$work/out" || fail "$what: not two steps"
done
while read -r what pattern; do
    evaluate "$what"
    code=$?
    [ $code -eq 3 ] || fail "$what: exit code $code: $(cat "$work/err")"
    tail -n 1 "$work/err" | grep -qE -- "(raw.py|Environment of raw).*$pattern|the Environment of raw $pattern" || fail "$what: no \"$pattern\" in: $(cat "$work/err")"
    [ ! -s "$work/out" ] || fail "$what: something on standard output"
done <<'FAULTS'
spec-missing spec failed: .*nine members
spec-extra spec failed: .*nine members
spec-type spec failed: .*max_episode_steps
spec-zero spec failed: .*max_episode_steps must be positive
spec-direction spec failed: .*maximize or minimize
spec-map spec failed: .*metadata must be a map
spec-id spec failed: .*id is empty
nospec spec failed: .*map
emptyspec spec failed
seed episodes failed: .*environment_seed
flood episodes failed: it planned more than 1
list episodes failed: .*no list
item episodes failed: .*no map
other episodes failed: .*no list
end episodes failed: .*unexpected frame
refused-open make_environment failed: .*unexpected frame
nan-reset reset failed: .*finite
deep-reset reset failed: .*32 levels
large-reset reset failed: .*over 4194304
junk-reset reset failed: .*no canonical value
plus-reset reset failed: .*no canonical value
keys-reset reset failed: .*no canonical value
tail-reset reset failed: .*no canonical value
utf8-reset reset failed: .*no canonical value
empty-reset reset failed: there is no observation
nan-step step failed: .*finite
deep-step step failed: .*32 levels
large-step step failed: .*over 4194304
junk-step step failed: .*no canonical value
early step failed: .*sequence number
partial step failed: .*ended with exit code 4|partial.*ended inside a frame
reward step failed: a Step must be a map
nanreward step failed: .*finite
truncated step failed: a Step must be a map
metrics step failed: a Step must be a map
letter step failed: .*unexpected frame of type 122
steps-first feedback failed: .*outside of a record
steps-none feedback failed: .*positive number
artifact-name feedback failed: .*\.\./up
artifact-content feedback failed: an artifact must be
artifact-retention feedback failed: an artifact must be
many feedback failed: .*1,024 artifacts
twice feedback failed: .*two artifacts named a
score feedback failed: its result must be
nanscore feedback failed: .*finite
result feedback failed: its result must be
raise-spec spec failed: its process ended with exit code 1
raise-reset reset failed: its process ended with exit code 1
raise-step step failed: its process ended with exit code 1
raise-close close failed: its process ended with exit code 1
raise-feedback feedback failed: its process ended with exit code 1
kill-open make_environment failed: its process was killed by signal 9
kill-reset reset failed: its process was killed by signal 9
kill-step step failed: its process was killed by signal 9
hang-spec spec failed: it did not answer within its time limit of 5.0 s
hang-reset reset failed: it did not answer within its time limit of 5.0 s
hang-step step failed: it did not answer within
hang-close close failed: it did not answer within
never did not end within its horizon of 2 steps
FAULTS
evaluate raise-step
grep -q '^  | RuntimeError: told to raise$' "$work/err" || fail "what it printed is not shown: $(cat "$work/err")"

"$program" benchmark baseline "$raw" --to "$work/baseline" >/dev/null || fail 'a baseline'
[ "$(cat "$work/baseline/policy.py" "$work/baseline/z/y.py")" = 21 ] || fail 'another baseline'
for what in outside empty file; do
    "$program" benchmark baseline "$raw baseline-$what" --to "$work/none" 2>"$work/err"
    [ $? -eq 3 ] || fail "baseline-$what: $(cat "$work/err")"
    grep -q 'baseline failed' "$work/err" || fail "baseline-$what: $(cat "$work/err")"
    [ ! -e "$work/none" ] || fail "baseline-$what: a directory was made"
done
pgrep -f "$EPG_SOURCE/tests/benchmark/packages/raw.py|sleep 31573" >/dev/null && fail 'a process was left running'
exit "$failed"
