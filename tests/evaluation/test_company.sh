#!/usr/bin/env bash
# A worker, its Policy and its Benchmark share a core while turns are quick, and have all cores again once one is not.
set -u
work=$(mktemp -d)
export TMPDIR="$work/tmp"
mkdir "$TMPDIR"
trap 'rm -rf "$work"' EXIT
failed=0

cat >"$work/turns.py" <<'END'
"""An Episode ends with the first Action that is not 0. Its reward is 1 for the Action 1, if all is as expected here."""

import os
from evopolicygym.authoring import Benchmark, BenchmarkSpec, Environment, EpisodeSpec, Feedback, Step


class Turns(Environment):
    def __init__(self, expected):
        self.expected = 1 if expected == "together" else len(os.sched_getaffinity(0))
        self.steps = 0

    def reset(self):
        return 0

    def step(self, action):
        self.steps += 1
        right = action == 1 and len(os.sched_getaffinity(0)) == self.expected
        over = action != 0
        return Step(self.steps, 1.0 if right else 0.0, over, not over and self.steps >= 300000)


class TurnsBenchmark(Benchmark):
    spec = BenchmarkSpec(
        id="turns",
        description="Tell how many cores there are.",
        observation_space={"type": "int"},
        action_space={"type": "discrete", "values": [0, 1, 2]},
        max_episode_steps=300000,
        primary_metric="reward",
    )

    def __init__(self, expected):
        self.expected = expected

    def episodes(self, split, seed, count):
        return [EpisodeSpec(seed + index) for index in range(count)]

    def make_environment(self, episode):
        return Turns(self.expected)

    def feedback(self, records):
        return Feedback(sum(record.transitions[-1].step.reward for record in records) / len(records))


def make(expected: str):
    return TurnsBenchmark(expected)
END

program() { # NAME, with its source on stdin
    mkdir -p "$work/$1"
    cat >"$work/$1/policy.py"
}

program together <<'END'
import os

class P:
    def act(self, observation):
        return 1 if len(os.sched_getaffinity(0)) == 1 else 0

def make_policy(context):
    return P()
END

# Once it has one core, it takes its time; then it must have those that it had, and so must a thread made meanwhile.
program free <<'END'
import os
import threading
import time

class P:
    def __init__(self):
        self.whole = os.sched_getaffinity(0)
        self.waited = False
        self.thread_has = None

    def look(self):
        time.sleep(0.2)
        self.thread_has = os.sched_getaffinity(0)

    def act(self, observation):
        if self.waited:
            return 1 if os.sched_getaffinity(0) == self.thread_has == self.whole else 2
        if len(os.sched_getaffinity(0)) == 1:
            thread = threading.Thread(target=self.look)
            thread.start()
            thread.join()
            self.waited = True
        return 0

def make_policy(context):
    return P()
END

for name in together free; do
    PYTHONPATH=$work "$EPG_BIN/evopolicygym" evaluate "$work/$name" -b "python:turns:make?expected=$name" -n 2 -j 1 \
        --execution process --allow-unsafe-process --json >"$work/out" 2>"$work/err" </dev/null
    python3 -c 'import json, sys; assert json.load(sys.stdin)["score"] == 1.0' <"$work/out" || {
        printf 'FAILED: %s: %s %s\n' "$name" "$(head -c 2000 "$work/out")" "$(cat "$work/err")"
        failed=1
    }
done
exit $failed
