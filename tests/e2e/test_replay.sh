#!/usr/bin/env bash
# `replay`: the same Episodes again, told apart where they differ, and fresh Episodes for a whole history.
. "$(dirname -- "$0")/replay.sh"
pole() { # NAME PROGRAM SCRIPT: a CartPole Run in $run
    run="$work/$1"
    "$host" run "$run" -b cartpole -p "$2" --execution process --allow-unsafe-process --progress plain \
        --episode-budget 12 --validation-episodes 3 --max-candidates 2 --assessment-episodes 4 -- bash -c "$3" \
        >"$work/$1.out" 2>&1
}

# Nothing has changed: every Episode is equal, in training, Validation and Assessment.
pole same "$EPG_SOURCE/programs/examples/cartpole" 'evopolicygym-session submit program --episodes 0:4
echo "# another" >>program/policy.py
evopolicygym-session submit program --episodes 2:6
evopolicygym-session finish submission-000002 submission-000001'
replay "$run" --allow-unsafe-process --json
check 'equal Episodes end well' [ "$code" -eq 0 ]
check 'all that was recorded is replayed and equal' told '[(e["submission_id"][-1], e["phase"], e["episodes"], e["equal_episodes"]) for e in all if e["submission_id"] != None] in (
    [("1", "training", 4, 4), ("1", "validation", 3, 3), ("2", "training", 4, 4), ("2", "validation", 3, 3), ("2", "assessment", 4, 4)],
    [("1", "training", 4, 4), ("1", "validation", 3, 3), ("1", "assessment", 4, 4), ("2", "training", 4, 4), ("2", "validation", 3, 3)])'
check 'and so are the scores' told 'all[0]["score"] == all[0]["recorded_score"] and all[0]["first_difference"] is None'
cp "$work/out" "$work/first"
replay "$run" --allow-unsafe-process --json --jobs 1
check 'the same for any number of workers' cmp "$work/out" "$work/first"
replay "$run" --allow-unsafe-process --final --json
check 'the selected one alone' told 'sorted(e["phase"] for e in all) == ["assessment", "training", "validation"] and len({e["submission_id"] for e in all}) == 1'
replay "$run" --allow-unsafe-process --submission 2
check 'in words' grep -q 'submission-000002  training .* 4 of 4 Episodes equal' "$work/out"

# Fresh Episodes: as `evaluate` measures them, the initial Program too.
replay "$run" --allow-unsafe-process --on test:5:7 --json
check 'the history is measured' told '[e["submission_id"] for e in all] == ["initial", "submission-000001", "submission-000002"] and document["on"] == {"split": "test", "episodes": 5, "seed": 7}'
"$host" evaluate "$run:2" -b cartpole --split test -n 5 --seed 7 --execution process --allow-unsafe-process --json >"$work/evaluated" 2>/dev/null
check 'with the scores of evaluate' told "all[2]['score'] == json.load(open('$work/evaluated'))['score']"

# A Policy that is not the same twice: it does otherwise once a file is there.
mkdir "$work/moody-program"
cat >"$work/moody-program/policy.py" <<P
import os
class Policy:
    step = 0
    def act(self, observation):
        self.step += 1
        return 0 if self.step == 4 and os.path.exists("$work/mood") else 1
def make_policy(context):
    return Policy()
P
pole moody "$work/moody-program" 'evopolicygym-session submit program --episodes 3,5; evopolicygym-session finish submission-000001'
replay "$run" --allow-unsafe-process
check 'as long as it is the same' [ "$code" -eq 0 ]
: >"$work/mood"
replay "$run" --allow-unsafe-process --json
check 'a difference is the exit code' [ "$code" -eq 1 ]
check 'the first step that differs is told, and both values' told '[all[0]["first_difference"][k] for k in ("episode_index", "step", "what")] == [3, 3, "action"] and [all[0]["first_difference"][k]["value"] for k in ("recorded", "replayed")] == ["1", "0"]'
check 'nothing equals in it' told 'all[0]["equal_episodes"] == 0 and not all[0]["equal"]'
check 'in Validation too, by the digests that were kept' told '[(e["phase"], e["first_difference"]["step"], e["first_difference"]["what"], e["first_difference"]["replayed"]["value"]) for e in all[1:]] == [("validation", 3, "action", "0"), ("assessment", 3, "action", "0")]'
rm "$work/mood"
chmod u+w "$run" "$run/run.json" && rm "$run/run.json"
replay "$run" --allow-unsafe-process
check 'a Run without a record is replayed too' [ "$code" -eq 0 ]

# A submission none of whose Episodes was finished is passed over.
cp -r "$run" "$work/cut"
chmod -R u+w "$work/cut"
python3 - "$run/events.jsonl" "$work/cut/events.jsonl" <<'P'
import json, sys
lines = [line for line in open(sys.argv[1]) if json.loads(line)["event"] not in ("episode_completed", "submission_published")]
open(sys.argv[2], "w").writelines(lines)
P
replay "$work/cut" --allow-unsafe-process
check 'a submission that never ended' [ "$code" -eq 0 ]
check 'what is left of its Run is replayed' grep -q '^7 of 7 Episodes of 2 evaluations are equal' "$work/out"
sed -i '/validation\|assessment\|run_finished/d' "$work/cut/events.jsonl"
replay "$work/cut" --allow-unsafe-process
check 'nothing else' [ "$code" -eq 0 ]
check 'is no fault' grep -qx '0 of 0 Episodes of 0 evaluations are equal' "$work/out"

# Where there is no trace, the outcome is told.
mkdir "$work/plain"
sed "s/return 0 if .*/return 2 if os.path.exists(\"$(printf %s "$work/mood" | sed 's/[/]/\\\//g')\") else 1/" "$work/moody-program/policy.py" >"$work/plain/policy.py"
"$host" run "$work/step" -b test/one-step -p "$work/plain" --execution process --allow-unsafe-process --progress plain \
    --episode-budget 4 -- bash -c 'evopolicygym-session submit program --episodes 0:2' >/dev/null 2>&1
: >"$work/mood"
replay "$work/step" --allow-unsafe-process --json
check 'rewards that differ, and the Action of the only step' told 'all[0]["first_difference"]["step"] == 0 and all[0]["first_difference"]["what"] == "action" and all[0]["first_difference"]["recorded"] != all[0]["first_difference"]["replayed"]'

chmod -R u+w "$work/step/traces" && rm -r "$work/step/traces"
replay "$work/step" --allow-unsafe-process --json
check 'no digests, no step' told 'all[0]["first_difference"]["step"] is None and not all[0]["equal"]'

refused() { # EXPECTED ARGUMENTS...
    local expected=$1
    shift
    replay "$@"
    [ "$code" -eq "${refusal:-2}" ] && [ "$(wc -l <"$work/err")" -eq 1 ] && grep -q -- "$expected" "$work/err"
}
run="$work/same"
check 'Policies get all rights again only when allowed' refused 'add --allow-unsafe-process' "$run"
check 'one choice' refused 'give one of' "$run" --all --final --allow-unsafe-process
check 'the initial Program was not evaluated' refused 'initial Program' "$run" --submission initial --allow-unsafe-process
check 'Episodes in a wrong form' refused 'SPLIT:EPISODES' "$run" --on test --allow-unsafe-process
check 'an unknown split, as evaluate tells it' refused 'no split' "$run" --on nowhere:3 --allow-unsafe-process
check 'no Run' refused 'start' "$work/start" --allow-unsafe-process
chmod u+w "$run" "$run/config.json"
sed -i 's/"spec": "cartpole"/"spec": "acrobot"/' "$run/config.json"
check 'another Benchmark' refused 'is not what it was' "$run" --allow-unsafe-process
rm "$run/config.json"
check 'a Run that does not tell how' refused 'no config.json' "$run" --allow-unsafe-process
