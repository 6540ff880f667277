#!/usr/bin/env bash
# The demo agent in a real Run of CartPole, as ./quickstart starts it: from a Policy that falls over after nine steps to
# one that scores over 400 on held-out Episodes, within its budget.
set -u
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf -- "$work"' EXIT
mkdir "$work/a place" && cd "$work/a place" || exit 1

for seed in 0 1; do
    "$EPG_BIN/evopolicygym" run "run $seed" --benchmark cartpole --program "$EPG_SOURCE/programs/examples/cartpole" \
        --episode-budget 60 --validation-episodes 20 --max-candidates 3 --assessment-episodes 50 --seed $seed \
        --execution process --allow-unsafe-process --progress plain --json \
        -- python3 "$EPG_SOURCE/agents/demo/demo_agent.py" >outcome.json 2>said || { cat said; exit 1; }
    cp said "said-$seed"
    python3 - "run $seed" <<'P' || exit 1
import json, sys
from pathlib import Path
run = Path(sys.argv[1])
outcome = json.loads(Path("outcome.json").read_text())
record = json.loads((run / "run.json").read_text())
report = json.loads((run / "assessment/report.json").read_text())
first, last = record["submissions"][0], record["submissions"][-1]
checks = {
    "the Run finished": record["terminal_reason"] == "finished",
    "it began with the Program it was given": first["program_digest"] == record["initial_program"]["digest"],
    "which is a weak one": first["score"] < 15,
    "it stayed within its budget": last["episodes_used"] <= 60 and last["episodes_remaining"] >= 0,
    "it named three candidates": len(record["candidate_submission_ids"]) == 3,
    "held-out Episodes were measured": report["episodes"] == 50 or len(report["episodes"]) == 50,
    f"and they score over 400, not {outcome['assessment_score']}": outcome["assessment_score"] > 400,
}
wrong = [what for what, holds in checks.items() if not holds]
sys.exit("\n".join(["not so:"] + wrong) if wrong else 0)
P
done

# The session that the README shows is this one, but for the times.
python3 - <<'P' || exit 1
import os, re, sys
from pathlib import Path
clock = re.compile(r"^ *[0-9.]+ (ms|s)  ")
shown = re.search(r"\$ build/release/evopolicygym run out/first.*?\nRun out/first", Path(os.environ["EPG_SOURCE"], "README.md").read_text(), re.S)
lines = [clock.sub("", line) for line in shown.group().splitlines() if clock.match(line) or line.startswith(" " * 12)]
said = [clock.sub("", line) for line in Path("said-0").read_text().splitlines()]
at = 0
for line in lines:
    if line not in said[at:]:
        sys.exit("not so: the README's session is real: %r was not told" % line)
    at = said.index(line, at) + 1
sys.exit(0 if len(lines) >= 8 else "the README shows no session")
P

# A Benchmark that it can't play: it says so, submits nothing, and the Run tells the truth.
"$EPG_BIN/evopolicygym" run taxi --benchmark taxi --program "$EPG_SOURCE/programs/examples/cartpole" \
    --episode-budget 5 --execution process --allow-unsafe-process --progress none \
    -- python3 "$EPG_SOURCE/agents/demo/demo_agent.py" >/dev/null 2>&1
[ $? -eq 1 ] || { echo "a Run without a Program selected ends with 1"; exit 1; }
grep -q 'only plays' taxi/agent/stderr.log || { echo "the demo agent does not say why it gave up"; exit 1; }
