#!/usr/bin/env bash
# An installed distribution (its own interpreter, metadata, package data, src layout) runs as it is: a Run comes to the
# scores, steps, digest and artifact hashes that the package comes to alone, whatever the Policy does.
. "$EPG_SOURCE/tests/e2e/lib.sh"
export PYTHONDONTWRITEBYTECODE=1
packages="$EPG_SOURCE/tests/benchmark/packages"
python=$(python3 -c 'import sys; print(sys.executable)') # past shims
"$python" -m venv --without-pip "$work/venv" || fail 'a venv'
site=$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp -r "$packages/ferry/src/evopolicygym_ferry" "$site/"
mkdir "$site/evopolicygym_ferry-1.2.0.dist-info"
printf 'Metadata-Version: 2.1\nName: evopolicygym-ferry\nVersion: 1.2.0\nRequires-Dist: evopolicygym>=0.3,<0.4\n' \
    >"$site/evopolicygym_ferry-1.2.0.dist-info/METADATA"
printf '[evopolicygym.benchmarks]\nferry = evopolicygym_ferry:make_benchmark\n' \
    >"$site/evopolicygym_ferry-1.2.0.dist-info/entry_points.txt"
ferry=python:evopolicygym_ferry:make_benchmark
host() { # COMMAND ARGUMENTS...
    local -a command
    read -ra command <<<"$1"
    shift
    "$EPG_BIN/evopolicygym" "${command[@]}" --benchmark-python "$work/venv/bin/python" "$@"
}

check 'the package checks itself' env PYTHONPATH="$EPG_SOURCE/harness/benchmark/python" "$work/venv/bin/python" -c \
    'from evopolicygym_ferry import _fixture; report = _fixture.self_check(); assert report.ok, report'
host 'benchmark check' "$ferry?river=wide&fog=0.25" >"$work/out" 2>&1
check 'checked without a fault' [ $? -eq 0 ] || cat "$work/out"
host 'benchmark show' "$ferry" --json >"$work/spec"
check 'distributions are found by their names' grep -q '"package": "1.2.0"' "$work/spec"
check 'ours too' grep -q '"host": "0.3.0"' "$work/spec"
host 'benchmark baseline' "$ferry" --to "$work/baseline" >/dev/null || fail 'a baseline'
check 'the baseline is the package data' cmp "$work/baseline/policy.py" \
    "$packages/ferry/src/evopolicygym_ferry/data/baseline/policy.py"

mkdir "$work/raising" "$work/refused"
printf 'def make_policy(context):\n    return 1 // 0\n' >"$work/raising/policy.py"
sed 's/"row": 1/"row": 1 if observation["turn"] < 2 else 5/' "$work/baseline/policy.py" >"$work/refused/policy.py"
same() { # PROGRAM SPEC-PARAMETERS JSON-PARAMETERS
    local run="$work/run-$1-$2"
    printf 'evopolicygym-session submit program --episodes 0:5\nevopolicygym-session finish submission-000001\n' >"$work/agent"
    host run "$run" -b "$ferry?$2" -p "$work/$1" --execution process --allow-unsafe-process --seed 7 --episode-budget 5 \
        --jobs 2 -- sh "$work/agent" >"$work/out" 2>"$work/err" || fail "$1 $2: $(cat "$work/err")"
    (cd / && PYTHONPATH="$EPG_SOURCE/harness/benchmark/python" "$work/venv/bin/python" "$packages/alone.py" \
        evopolicygym_ferry make_benchmark "$3" "$work/$1" train 7 5) >"$work/alone" || fail "$1 $2: alone"
    "$python" - "$run" >"$work/hosted" <<'PYTHON' || fail "$1 $2: no result"
import hashlib, json, pathlib, sys
run = pathlib.Path(sys.argv[1])
told = json.loads((run / "submissions/submission-000001/feedback.json").read_text())
record = json.loads((run / "run.json").read_text())
files = run / "submissions/submission-000001/artifacts"
print(json.dumps({
    "score": told["score"],
    "steps": [episode["steps"] for episode in told["episodes"]],
    "failures": [episode["failure"] for episode in told["episodes"]],
    "artifacts": {str(path.relative_to(files)): hashlib.sha256(path.read_bytes()).hexdigest()
                  for path in files.rglob("*") if path.is_file()},
    "digest": record["benchmark"]["environment"]["digest"],
}, sort_keys=True))
PYTHON
    check "$1 $2: as alone" diff "$work/alone" "$work/hosted"
}
same baseline 'river=wide&fog=0.25&note=5' '{"river": "wide", "fog": 0.25, "note": "5"}'
same baseline 'river=narrow&fog=1&note=None' '{"river": "narrow", "fog": 1.0}'
same refused 'fog=0.5' '{"fog": 0.5}'
same raising 'fog=0.5' '{"fog": 0.5}'

# The example that the documentation names.
example='python:my_benchmark:make_benchmark?size=30'
cd "$EPG_SOURCE/examples/benchmark-python" || fail 'no example'
export PYTHONDONTWRITEBYTECODE=1
host 'benchmark check' "$example" >"$work/out" 2>&1
check 'the example has no fault' grep -q ' 0 faults' "$work/out" || cat "$work/out"
host 'benchmark baseline' "$example" --to "$work/guesser" >/dev/null || fail 'its baseline'
check 'its baseline is beside it' cmp "$work/guesser/policy.py" baseline/policy.py
host evaluate "$work/guesser" -b "$example" -n 5 --execution process --allow-unsafe-process --json >"$work/out" 2>"$work/err"
check 'its baseline plays' grep -q '"policy_failures": 0' "$work/out" || cat "$work/err"
check 'nothing lives' none_living
