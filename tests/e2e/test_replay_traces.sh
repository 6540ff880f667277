#!/usr/bin/env bash
# Whole traces (`run --record-traces full`): what they hold, their budget, and what a replay tells by them; and a replay
# that was cut off goes on (`replay --state`).
. "$(dirname -- "$0")/replay.sh"
pole() { # NAME OPTIONS... -- SCRIPT: a CartPole Run of the Program in $work/moody in $run
    run="$work/$1"
    local name=$1 options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    "$host" run "$run" -b cartpole -p "$work/moody" --execution process --allow-unsafe-process --progress plain \
        --episode-budget 12 --validation-episodes 3 --max-candidates 2 --assessment-episodes 4 "${options[@]}" -- \
        bash -c "$2" >"$work/$name.out" 2>&1
}
# A Policy that counts how often it was made, and does otherwise once a file is there.
mkdir "$work/moody"
cat >"$work/moody/policy.py" <<P
import os, time
class Policy:
    step = 0
    def act(self, observation):
        self.step += 1
        while os.path.exists("$work/stop"):
            time.sleep(0.01)
        return 0 if self.step == 4 and os.path.exists("$work/mood") else 1
def make_policy(context):
    with open("$work/made", "a") as file:
        file.write(".")
    return Policy()
P
submits='evopolicygym-session submit program --episodes 3,5
echo "# another" >>program/policy.py
evopolicygym-session submit program --episodes 0:2
evopolicygym-session finish submission-000001 submission-000002'

# --- what a trace holds ---
pole full --record-traces full -- "$submits"
check 'a Run with whole traces' [ -f "$run/traces/submission-000001.jsonl.gz" ]
check 'its request says so' grep -q '"record": "full"' "$run/config.json"
check 'traces hold what the Feedback of the same Episodes says' python3 - "$run" <<'P'
import gzip, json, sys
run = sys.argv[1]
for name, count in (("submission-000001", 2), ("submission-000002", 2), ("validation-submission-000001", 3), ("validation-submission-000002", 3)):
    with gzip.open(f"{run}/traces/{name}.jsonl.gz", "rt") as file:
        lines = [json.loads(line) for line in file]
    assert lines[0] == {"type": "about", "schema": "evopolicygym/traces/v1", "episodes": count}, lines[0]
    heads = [l for l in lines if l["type"] == "episode"]
    ends = [l for l in lines if l["type"] == "end"]
    assert [l["episode"] for l in heads] == [l["episode"] for l in ends] == list(range(count))
    for end in ends:
        steps = [l for l in lines if l["type"] == "step" and l["episode"] == end["episode"]]
        assert [l["step"] for l in steps] == list(range(end["steps"]))
        assert sum(l["reward"] for l in steps) == end["reward"] and end["failure"] is None and end["terminated"]
    if name.startswith("submission"):
        feedback = json.load(open(f"{run}/submissions/{name}/feedback.json"))
        assert [l["episode_index"] for l in heads] == [e["episode_index"] for e in feedback["episodes"]]
        assert [l["steps"] for l in ends] == [e["steps"] for e in feedback["episodes"]]
        keys = ("action", "episode", "observation", "reward", "step")
        theirs = [json.loads(line) for line in open(f"{run}/submissions/{name}/artifacts/trace.jsonl")]
        theirs = [[l[k] for k in keys] for l in theirs if l["type"] == "step"]
        assert theirs == [[l[k] for k in keys] for l in lines if l["type"] == "step"] and len(theirs) > 10
P

# --- a replay writes the same ones ---
replay "$run" --allow-unsafe-process --json --record-traces full --traces-to "$work/again"
check 'the replay is equal' told 'document["evaluations"] and {e["equal"] for e in all} == {True} and {e["traces_kept"] for e in all} == {True} and {e["recorded_traces"] for e in all} == {"full"}'
for file in "$run"/traces/*.jsonl.gz; do
    check 'its traces are the same' cmp "$file" "$work/again/${file##*/}"
done
check 'as many' [ "$(ls "$work/again" | wc -l)" -eq "$(ls "$run"/traces/*.gz | wc -l)" ]
check 'they are in no Run unasked' sh -c "! '$host' replay '$run' --allow-unsafe-process --record-traces full 2>'$work/err' && grep -q -- --traces-to '$work/err'"

# --- both values, in every phase ---
: >"$work/mood"
replay "$run" --allow-unsafe-process --json
check 'a difference is told with both values, in each phase' told '[code["evidence"] for code in differences] == ["traces"] * len(all) and {(d["step"], d["what"], d["recorded"]["value"], d["replayed"]["value"]) for d in differences} == {(3, "action", "1", "0")}'
check 'in every phase' told '{e["phase"] for e in all} == {"training", "validation", "assessment"}'
replay "$run" --allow-unsafe-process --submission 1
check 'in words' grep -qE '^  first difference: Episode 3, step 3, action$' "$work/out"
check 'the recorded one' grep -qE '^    recorded  1$' "$work/out"
cp -r "$run" "$work/bare"
chmod -R u+w "$work/bare"
rm "$work/bare"/traces/*.gz
printf 'no gzip' >"$work/bare/traces/validation-submission-000001.jsonl.gz"
replay "$work/bare" --allow-unsafe-process --json
check 'without them digests tell, and say that the recorded value is not known' told '[d["evidence"] for d in differences if d["recorded"]["value"] is None] == ["digests"] * 3 and all[0]["recorded_traces"] == "digests"'
replay "$work/bare" --allow-unsafe-process --submission 1
check 'in words too' grep -q 'recorded  not known: of this Episode the Run kept digests only' "$work/out"
rm "$work/mood"

# --- the budget ---
size=$(stat -c %s "$run/traces/submission-000001.jsonl.gz")
pole bounded --record-traces full --trace-bytes $((size + 100)) -- "$submits"
check 'what fits is kept' [ -f "$run/traces/submission-000001.jsonl.gz" ]
check 'what does not fit is not' [ ! -e "$run/traces/submission-000002.jsonl.gz" ]
check 'digests are' [ -f "$run/traces/submission-000002.digests" ]
check 'nothing half is left' [ "$(ls -A "$run/traces" | grep -cv '^[a-z].*\(digests\|jsonl.gz\)$')" -eq 0 ]
check 'the record says so' grep -q '"kept":"digests","kind":"traces".*"subject":"submission-000002"' "$run/evidence.jsonl"
check 'the user is told, once' [ "$(grep -c 'do not fit into --trace-bytes' "$work/bounded.out")" -eq 1 ]
replay "$run" --allow-unsafe-process --json
check 'and the replay too' told '[e["recorded_traces"] for e in all if e["phase"] == "training"] == ["full", "digests"]'
pole none -- "$submits"
check 'unasked there are none' [ -z "$(ls "$run/traces" | grep gz)" ]
check 'verify has nothing against traces' "$host" verify "$work/full"
refused() { # PATTERN ARGUMENTS...
    local pattern=$1
    shift
    replay "$@"
    [ "$code" -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] && grep -q -- "$pattern" "$work/err" || { cat "$work/err"; return 1; }
}
check 'a kind that there is not' refused 'full or digests' "$run" --record-traces some
check 'a budget of nothing' refused 'goes with --record-traces full' "$run" --trace-bytes 5

# --- cut off, and on ---
run="$work/full"
replay "$run" --allow-unsafe-process --on test:3:9
cp "$work/out" "$work/whole"
: >"$work/made"
"$host" replay "$run" --allow-unsafe-process --on test:3:9 --state "$work/state" -j 1 >"$work/out" 2>&1 &
pid=$!
for _ in $(seq 2000); do
    [ -e "$work/state" ] && [ "$(wc -l <"$work/state")" -ge 2 ] && break
    sleep 0.01
done
kill -KILL $pid 2>/dev/null
wait $pid 2>/dev/null
check 'something was done before' [ "$(wc -l <"$work/state")" -ge 2 ]
head -2 "$work/state" >"$work/part"
printf '{"program_dig' >>"$work/part" # the third was cut off
: >"$work/made"
replay "$run" --allow-unsafe-process --on test:3:9 --state "$work/part"
check 'it goes on and ends' [ "$code" -eq 0 ]
check 'with the same numbers' cmp "$work/out" "$work/whole"
check 'each line stands whole' python3 -c "import json; print([json.loads(l) for l in open('$work/part')][-1])"
made=$(wc -c <"$work/made")
check 'what was done is not done again' [ "$made" -lt 12 ] # two Programs of three Episodes, and spare processes
: >"$work/made"
replay "$run" --allow-unsafe-process --on test:3:9 --state "$work/part" --json
check 'all done: nothing is played' told '[e["submission_id"] for e in all] == ["initial", "submission-000001", "submission-000002"]'
# A signal while a Policy thinks.
: >"$work/stop"
"$host" replay "$run" --allow-unsafe-process --on test:1:1 --state "$work/signalled" >"$work/out" 2>"$work/err" &
pid=$!
for _ in $(seq 6000); do
    [ -s "$work/signalled" ] && break
    sleep 0.01
done
kill -INT $pid
wait $pid
check 'a signal ends it' [ $? -eq 130 ]
check 'and it says how to go on' grep -q 'the same command goes on' "$work/err"
rm "$work/stop"
replay "$run" --allow-unsafe-process --on test:1:1 --state "$work/signalled"
check 'it does' [ "$code" -eq 0 ]
replay "$run" --allow-unsafe-process --state "$work/exact"
cp "$work/out" "$work/exact.out"
replay "$run" --allow-unsafe-process --state "$work/exact"
check 'recorded Episodes alike' cmp "$work/out" "$work/exact.out"
: >"$work/mood"
replay "$run" --allow-unsafe-process --state "$work/different"
check 'what differed' [ "$code" -eq 1 ]
cp "$work/out" "$work/different.out"
replay "$run" --allow-unsafe-process --state "$work/different"
check 'differs when it is told from the file' [ "$code" -eq 1 ]
check 'in the same words' cmp "$work/out" "$work/different.out"

# Side by side: Programs of one Episode each keep two workers busy. Each Policy waits until two are there.
mkdir "$work/pair" "$work/there"
cat >"$work/pair/policy.py" <<P
import os, time
class Policy:
    def __init__(self):
        self.first = os.path.exists("$work/together")
    def act(self, observation):
        if self.first:
            self.first = False
            open("$work/there/%d" % os.getpid(), "w").close()
            end = time.monotonic() + 20
            while len(os.listdir("$work/there")) < 2:
                if time.monotonic() > end:
                    raise SystemExit("alone")
                time.sleep(0.01)
        return 1
def make_policy(context):
    return Policy()
P
"$host" run "$work/pairs" -b cartpole -p "$work/pair" --execution process --allow-unsafe-process --progress none \
    --episode-budget 12 -- bash -c 'for i in 1 2 3 4; do echo "# $i" >>program/policy.py; evopolicygym-session submit program --episodes $i; done
evopolicygym-session submit program --episodes 0:6
evopolicygym-session finish submission-000001' >/dev/null 2>&1
: >"$work/together"
replay "$work/pairs" --allow-unsafe-process -j 2
check 'two at a time' [ "$code" -eq 0 ]
check 'told in order' [ "$(grep -o '^submission-[0-9]*' "$work/out" | tr '\n' ' ')" = 'submission-000001 submission-000002 submission-000003 submission-000004 submission-000005 ' ]
rm "$work/together"
cp "$work/out" "$work/pairs.out"
replay "$work/pairs" --allow-unsafe-process -j 5
check 'the same for any number' cmp "$work/out" "$work/pairs.out"
check 'other Episodes' refused 'something else than this replay' "$run" --allow-unsafe-process --on test:3:10 --state "$work/part"
check 'another Run' refused 'something else than this replay' "$work/none" --allow-unsafe-process --on test:3:9 --state "$work/part"
printf 'my notes\n' >"$work/notes"
check 'a file of something else' refused 'something else than this replay' "$run" --allow-unsafe-process --state "$work/notes"
check 'stays as it was' grep -qx 'my notes' "$work/notes"
check 'never in the record' refused "lies in a Run's record" "$run" --allow-unsafe-process --state "$run/traces/state"
check 'nowhere' refused 'there is no directory' "$run" --allow-unsafe-process --state "$work/nowhere/state"
sed 's/sha256:[0-9a-f]*\(","recorded\)/sha256:0\1/' "$work/part" >"$work/other"
check 'another Program' refused 'another Program of' "$run" --allow-unsafe-process --on test:3:9 --state "$work/other"
exec 9>>"$work/part"
flock 9
check 'in use' refused 'another replay works on' "$run" --allow-unsafe-process --on test:3:9 --state "$work/part"
exec 9>&-
check 'no process is left' none_living
check 'the Run is as it was' "$host" verify "$run"
chmod u+w "$run"/traces/submission-000002.jsonl.gz
printf x >>"$run/traces/submission-000002.jsonl.gz"
check 'verify tells an altered trace' sh -c "'$host' verify '$run' >'$work/out' 2>&1; [ \$? -eq 1 ] && grep -q submission-000002.jsonl.gz '$work/out'"
