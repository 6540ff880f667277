#!/usr/bin/env bash
# evopolicygym benchmark list, show and check, and Benchmarks in shared libraries.
set -u
export EPG_TEST_BENCHMARKS=1
program=$EPG_BIN/evopolicygym
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
failed=0

fail() {
    printf 'FAILED: %s\n' "$1"
    failed=1
}

# expect CODE PATTERN ARGUMENTS...: the exit code, and a line that matches on stdout or stderr.
expect() {
    local code=$1 pattern=$2 output status
    shift 2
    output=$("$program" "$@" 2>&1 </dev/null)
    status=$?
    [ "$status" -eq "$code" ] || fail "$*: exit $status, not $code: $output"
    grep -qE -- "$pattern" <<<"$output" || fail "$*: no \"$pattern\" in: $output"
}

# Users' mistakes are one line, exit 2.
expect 2 'did you mean cartpole\?' benchmark check cartpol
expect 2 'no split "nowhere"' benchmark check cartpole --split nowhere
expect 2 'needs one Benchmark' benchmark check
expect 2 'did you mean --benchmark-python' benchmark show cartpole --python python3
expect 2 'did you mean "check"?' benchmark chekc
expect 2 'needs a command' benchmark
expect 2 'no operand' benchmark list cartpole
expect 0 'list .*built-in' benchmark --help
expect 0 '^frozen-lake ' benchmark list
expect 0 'slippery' benchmark show frozen-lake
expect 0 '"environment_digest": "sha256:1c0a08fe4efbabf4786657bde3e0ff70f856e3042625c00ed487c1139bea36ae"' \
    benchmark show cartpole --json
"$program" benchmark list --json | python3 -c '
import json, sys
names = [entry["name"] for entry in json.load(sys.stdin)["benchmarks"]]
assert "taxi" in names and not any(name.startswith("test/") for name in names), names' || fail 'list --json'

# The built-in ones have no fault.
for name in $("$program" benchmark list | awk '/^[a-z]/ {print $1}') 'taxi?rainy=true&fickle=true' \
    'frozen-lake?map=8x8' 'cliff-walking?slippery=true' 'blackjack?natural=true&sab=false' test/one-step \
    'test/idle?steps=20'; do
    [ "$name" = test/one-step ] || expect 0 '0 faults' benchmark check "$name" --episodes 3
done

# Each fault is found, named, and an answer of "no".
while read -r fault pattern; do
    expect 1 "$pattern" benchmark check "test/faults?at=$fault" --environment-timeout 0.5
done <<'FAULTS'
spec spec was told to fail
episodes episodes was told to fail
open no Environment could be made
reset Environment.reset failed
step Episode 0, step 0: Environment.step failed
close cleanup: Environment.close failed
feedback feedback was told to fail
hang-spec spec did not return
hang-episodes episodes did not return
hang-open making an Environment did not return
hang-reset Environment.reset did not return
hang-step Environment.step did not return
hang-close Environment.close did not return
hang-feedback feedback did not return
crash-step killed by signal 9 .*in Environment.step
exit-reset ended itself with status 3 in Environment.reset
observation-nan not finite
observation-deep 32 levels
observation-large over 4194304
observation-junk the observation
reset-observation-deep Environment.reset: the observation
reward-nan reward is not finite
reward-huge sum to infinity
metrics-junk metrics
never-ends did not end within its horizon of 3 steps
score-nan score is not finite
content-junk content
artifact-name outside
artifact-large larger than 16 MiB
FAULTS

# Actions from a file are replayed; what is no sequence of Actions is told.
printf '[[1,1,1],[0]]' >"$scratch/actions.json"
expect 0 '4 Episodes, 8 steps' benchmark check cartpole --actions "$scratch/actions.json"
printf '[[5]]' >"$scratch/wrong.json"
expect 1 'was refused: the Action must be an int from 0 to 1' benchmark check cartpole --actions "$scratch/wrong.json"
printf '{"a":1}' >"$scratch/wrong.json"
expect 2 'a list of Episodes' benchmark check cartpole --actions "$scratch/wrong.json"
expect 2 'actions' benchmark check cartpole --actions "$scratch/missing.json"
expect 2 "can't be drawn.*--actions" benchmark check test/one-step

# --- Shared libraries ---
build() {
    "${EPG_CC:-cc}" -shared -fPIC -I "$EPG_SOURCE/include" "$@" || fail "$* did not build"
}
build "$EPG_SOURCE/examples/benchmark-c/guess.c" -o "$scratch/guess.so"
build "$EPG_SOURCE/tests/benchmark/bad_library.c" -o "$scratch/bad.so"
build -DABI=2 "$EPG_SOURCE/tests/benchmark/bad_library.c" -o "$scratch/abi.so"
printf 'int nothing;\n' >"$scratch/other.c"
build "$scratch/other.c" -o "$scratch/other.so"

expect 0 '0 faults' benchmark check "lib:$scratch/guess.so"
expect 0 'Guess a secret int' benchmark show "lib:$scratch/guess.so"
(cd "$scratch" && "$program" benchmark check lib:guess.so >/dev/null) || fail 'a relative path'
expect 2 'takes no parameters' benchmark check "lib:$scratch/guess.so?secret=1"
expect 2 'built for Benchmark ABI 2, this Host speaks 1' benchmark check "lib:$scratch/abi.so"
expect 2 'is no Benchmark' benchmark check "lib:$scratch/other.so"
expect 2 "can't be loaded" benchmark check "lib:$scratch/other.c"
expect 2 'no library' benchmark check "lib:$scratch/missing.so"
expect 2 'no library \./missing.so' benchmark check lib:./missing.so
expect 2 'no library \./missing.so' benchmark check lib:missing.so
expect 2 'needs the path' benchmark check lib:

expect 0 '0 faults' benchmark check "lib:$scratch/bad.so?none"
# Rewards whose sum and spread no double holds have a mean all the same.
build -DHUGE_REWARDS "$EPG_SOURCE/tests/benchmark/bad_library.c" -o "$scratch/huge.so"
expect 0 '0 faults' benchmark check "lib:$scratch/huge.so?none"
mkdir "$scratch/one"
printf 'class P:\n    def act(self, o):\n        return 1\ndef make_policy(c):\n    return P()\n' >"$scratch/one/policy.py"
expect 0 '"score": 1.7e\+?308' evaluate "$scratch/one" -b "lib:$scratch/huge.so?none" -n 3 --execution process \
    --allow-unsafe-process --json
[ "$(wc -l <"$EPG_SOURCE/examples/benchmark-c/guess.c")" -le 60 ] || fail 'the example in C is no longer short'
while read -r fault pattern; do
    expect 1 "$pattern" benchmark check "lib:$scratch/bad.so?$fault"
done <<'FAULTS'
open open failed: told to fail
id id is empty
number observation: float is not finite
silent step failed: it did not say why
strict fails on null instead of refusing it
chance determinism: Episode [0-9], .*second time|determinism: Episode [0-9]: reset gives another
seed leaks: an observation of Episode 0 holds the Environment's seed
content leaks: Feedback's content holds the Policy's seed
path leaks: Feedback's artifact log.txt holds a path
score feedback gave no score
descriptor cleanup: descriptors are left open
process cleanup: 1 process was left running
FAULTS
expect 2 "can't be drawn" benchmark check "lib:$scratch/bad.so?space"
# What it prints is not our document.
"$program" benchmark check "lib:$scratch/bad.so?print" --json 2>/dev/null |
    python3 -c 'import json, sys; assert json.load(sys.stdin)["ok"] is True' || fail 'a Benchmark that prints'
pgrep -f "$scratch" >/dev/null && fail 'a process was left running'

exit "$failed"
