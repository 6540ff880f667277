#!/usr/bin/env bash
# Every built-in Benchmark has a baseline Program that plays it without a failure.
set -u
program=$EPG_BIN/evopolicygym
failed=0

evaluate() {
    "$program" evaluate "$EPG_SOURCE/programs/examples/$1" --benchmark "$1" --episodes "$2" --seed 42 --json \
        --execution process --allow-unsafe-process
}

names=$("$program" benchmark list | awk '/^[a-z]/ {print $1}')
[ "$(wc -w <<<"$names")" -ge 9 ] || { printf 'FAILED: only these are listed: %s\n' "$names"; failed=1; }
for name in $names; do
    evaluate "$name" 3 | python3 -c '
import json, sys
result = json.load(sys.stdin)
assert result["policy_failures"] == 0, result["episodes"]
assert len(result["episodes"]) == 3' || { printf 'FAILED: %s\n' "$name"; failed=1; }
done

# CartPole under a constant push falls after about nine steps: what an Agent has to start from.
evaluate cartpole 50 | python3 -c '
import json, sys
score = json.load(sys.stdin)["score"]
assert 8.0 < score < 11.0, score' || { printf 'FAILED: the score of the cartpole baseline\n'; failed=1; }
exit "$failed"
