#!/usr/bin/env bash
# A whole Run over a Python package: its artifacts are published, its own Feedback selects, no path or variable of it
# reaches a Policy.
. "$EPG_SOURCE/tests/e2e/lib.sh"
export PYTHONPATH="$EPG_SOURCE/tests/benchmark/packages" PYTHONDONTWRITEBYTECODE=1
run="$work/corridor"
"$EPG_BIN/evopolicygym" benchmark baseline python:evopolicygym_corridor:make_benchmark --to "$work/baseline" >/dev/null ||
    fail 'a baseline'
cat >"$work/agent" <<'AGENT'
set -e
evopolicygym-session submit program --episodes 0:3
cat >program/policy.py <<'POLICY'
import os
import sys


class Policy:
    def act(self, observation):
        seen = [name for name in os.environ if name == "PYTHONPATH"] + [p for p in sys.path if "benchmark/packages" in p]
        return 2 if seen else 0


def make_policy(context):
    return Policy()
POLICY
evopolicygym-session submit program --episodes 0:3
evopolicygym-session finish submission-000002 submission-000001
AGENT
"$EPG_BIN/evopolicygym" run "$run" -b 'python:evopolicygym_corridor:make_benchmark?slip=0.1' -p "$work/baseline" \
    --execution process --allow-unsafe-process --episode-budget 8 --validation-episodes 3 --assessment-episodes 2 \
    --max-candidates 2 --jobs 2 -- sh "$work/agent" >"$work/out" 2>"$work/err"
check 'exit code 0' [ $? -eq 0 ]
check 'the one that walks to the exit is selected' holds 'record["final_submission_id"] == "submission-000001"'
check 'no Policy saw the package: none refused' holds 'all(e["failure"] is None for e in json.loads(text("submissions/submission-000002/feedback.json"))["episodes"])'
check 'its artifact is published' grep -q '"metrics": {"slipped": ' "$run/submissions/submission-000001/artifacts/trace/steps.jsonl"
check 'the same for the Agent' cmp "$run/submissions/submission-000001/artifacts/trace/steps.jsonl" \
    "$run/workspace/feedback/submissions/submission-000001/artifacts/trace/steps.jsonl"
check 'the digest is that of its parameters' holds 'record["benchmark"]["environment"]["parameters"] == {"length": 5, "slip": 0.1}'
check 'nothing lives' none_living
