#!/usr/bin/env bash
# Reading what Runs leave: log, show, diff, checkout, list, compare, export, and the same facts from plain git; of Runs
# that are complete, running, killed, and another Host's.
. "$EPG_SOURCE/tests/e2e/lib.sh"
epg="$EPG_BIN/evopolicygym"
sample="$EPG_SOURCE/tests/vectors/data/sample-run"
mkdir "$work/out"

# says FILE EXPRESSION: a Python expression over the JSON document in FILE (`d`).
says() {
    python3 - "$1" "$2" <<'P'
import json, sys
with open(sys.argv[1]) as file:
    d = json.load(file)
if not eval(sys.argv[2]):
    print("not so:", sys.argv[2], "in", json.dumps(d)[:2000])
    sys.exit(1)
P
}
refuses() { # PATTERN COMMAND...: exit code 2, one line on stderr with PATTERN, nothing on stdout
    local pattern=$1 out code
    shift
    out=$("$@" 2>"$work/refusal")
    code=$?
    [ $code -eq 2 ] && [ -z "$out" ] && [ "$(wc -l <"$work/refusal")" -eq 1 ] && grep -q -- "$pattern" "$work/refusal" && return 0
    echo "code $code, out '$out', err:"
    cat "$work/refusal"
    return 1
}

run out/first --seed 5 --max-submissions 5 --validation-episodes 4 --max-candidates 2 --assessment-episodes 3 -- '
evopolicygym-session submit program --episodes 0:3 || exit 3
sed -i "s/return 1/return 3/" program/policy.py
printf "# \033[31mred <script>\n" >>program/policy.py
evopolicygym-session submit program --episodes 1,9 || exit 4
printf "raise SystemExit\n" >program/policy.py
evopolicygym-session submit program --episodes 1 || exit 5
echo "the agent says this"
evopolicygym-session finish submission-000001 submission-000002'
check 'the Run to read' [ $code -eq 0 ]
first=$run

# --- log ---
"$epg" log "$first" >"$work/log" 2>"$work/err"
check 'log: nothing on stderr' [ ! -s "$work/err" ]
check 'log: a line a submission, marked' grep -qE '^\+ submission-000001= +1 +- +3 +0 ' "$work/log"
check 'log: best and selected' grep -qE '^\* submission-000002  +3 +\+2 +2 +0 .*selected' "$work/log"
check 'log: failed Episodes' grep -qE '^  submission-000003  .* 1 +1 ' "$work/log"
check 'log: no colour in a file' sh -c "! grep -q \$'\033' '$work/log'"
"$epg" log "$first" --json >"$work/log.json"
check 'log --json: submissions' says "$work/log.json" '[s["score"] for s in d["submissions"]][:2] == [1.0, 3.0] and [s["best"] for s in d["submissions"]] == [False, True, False]'
check 'log --json: indices' says "$work/log.json" '[s["episode_indices"] for s in d["submissions"]] == ["0:3", "1,9", "1"]'
check 'log --json: the Run' says "$work/log.json" 'd["run"]["state"] == "finished" and d["run"]["final_submission_id"] == "submission-000002" and d["run"]["episodes_used"] == 6 and d["run"]["assessment"]["score"] == 3.0 and d["run"]["benchmark"]["score_direction"] == "maximize"'
"$epg" log "$first" --last 1 --json >"$work/last.json"
check 'log --last: one' says "$work/last.json" '[s["submission_id"] for s in d["submissions"]] == ["submission-000003"]'

# --- show ---
"$epg" show "$first" best --patch >"$work/show"
check 'show: what was asked for' grep -q '^submission-000002  best of the Run  selected' "$work/show"
check 'show: the patch' grep -q '^+        return 3' "$work/show"
"$epg" show "$first" 2 --json -p >"$work/show.json"
check 'show --json: Feedback as published' python3 -c "
import json
shown = json.load(open('$work/show.json'))
assert shown['feedback'] == json.load(open('$first/submissions/submission-000002/feedback.json'))
assert '+        return 3' in shown['patch'] and shown['submission']['commit']"
for word in 2 submission-000002 best final; do
    check "show $word" sh -c "'$epg' show '$first' $word | grep -q '^submission-000002'"
done
check 'show last' sh -c "'$epg' show '$first' last | grep -q '^submission-000003'"
check 'show initial' sh -c "'$epg' show '$first' initial | grep -q '^initial'"
check 'a terminal gets no control bytes of a Program' python3 - "$epg" "$first" <<'P'
import os, pty, sys
out = b""
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "show", sys.argv[2], "2", "-p"])
try:
    while True:
        part = os.read(fd, 65536)
        if not part:
            break
        out += part
except OSError:
    pass
os.waitpid(pid, 0)
assert rb"\x1b[31mred <script>" in out, out
assert b"\x1b[31mred" not in out, out
assert b"\x1b[32m" in out, "no colour on a terminal"
P

# --- diff ---
"$epg" diff "$first" 1 2 >"$work/diff"
check 'diff: Program' grep -q '^-        return 1' "$work/diff"
check 'diff: score' grep -qE '^score +1 +3 +\+2$' "$work/diff"
check 'diff: matched Episodes' grep -q '^1 of 4 Episodes were played by both' "$work/diff"
check 'diff: a failure stands for a reward' sh -c "'$epg' diff '$first' 2 3 --feedback | grep -qE '^Episode 1 +3 +[a-z_]+'"
"$epg" diff "$first" 1 2 --json >"$work/diff.json"
check 'diff --json' says "$work/diff.json" '[e["name"] for e in d["episodes"]] == ["0", "1", "2", "9"] and d["a"]["score"] == 1.0 and "return 3" in d["patch"]'
"$epg" checkout "$first" 1 "$work/applied" >/dev/null
check 'diff --program is a patch' sh -c "cd '$work/applied' && '$epg' diff '$first' 1 2 --program | patch -p1 -s && cmp policy.py '$first/submissions/submission-000002/program/policy.py'"

# --- checkout ---
check 'checkout' "$epg" checkout "$first" final "$work/third"
check 'checkout: the very Program' diff -r "$work/third" "$first/submissions/submission-000002/program"
check 'checkout: writable' [ -w "$work/third/policy.py" ]
check 'checkout refuses what is there' refuses 'new directory' "$epg" checkout "$first" 1 "$work/third"
check 'checkout --json' sh -c "'$epg' checkout '$first' initial '$work/fourth' --json | python3 -m json.tool >/dev/null"

# --- the same with plain git ---
git="git -C $first/history.git"
check 'git: a commit a snapshot' [ "$($git log --format=%s | tr '\n' ' ')" = 'submission-000003 submission-000002 submission-000001 Initial Program ' ]
check 'git: trailers' [ "$($git log -1 --format='%(trailers:key=Submission,valueonly)' submission-000002 | head -1)" = submission-000002 ]
digest=$(python3 -c "import json; print(json.load(open('$work/log.json'))['submissions'][1]['program_digest'])")
check 'git: digest' sh -c "$git log -1 submission-000002 | grep -q 'Program-Digest: $digest'"
check 'git: score in the note' sh -c "$git notes show submission-000002 | grep -qx 'Score: 3.0'"
check 'git: the commit that log names' [ "$($git rev-parse submission-000002)" = "$(python3 -c "import json; print(json.load(open('$work/log.json'))['submissions'][1]['commit'])")" ]
check 'git: the same diff' sh -c "$git diff submission-000001 submission-000002 | grep '^[-+]' >'$work/git.diff'; '$epg' diff '$first' 1 2 --program | grep '^[-+]' | cmp - '$work/git.diff'"

# --- a submission where a Program is asked for ---
"$epg" evaluate "$first:submission-000002" -b test/one-step --execution process --allow-unsafe-process -n 3 --json >"$work/evaluation.json"
check 'evaluate RUN:SUBMISSION' says "$work/evaluation.json" 'd["score"] == 3.0 and d["program_digest"] == "'"$digest"'"'
check 'evaluate: an unknown one' refuses 'has no submission 9' "$epg" evaluate "$first:9" -b test/one-step --execution process --allow-unsafe-process
cp -r "$work/third" "$work/odd:best"
check 'a directory of that name goes before' sh -c "'$epg' evaluate '$work/odd:best' -b test/one-step --execution process --allow-unsafe-process -n 1 --json | grep -q '$digest'"
mv "$work/start" "$work/start.kept" # so that -p below is the one that counts
cat >"$work/second.sh" <<'S'
evopolicygym-session submit program --episodes 0:2 && evopolicygym-session finish submission-000001
S
"$epg" run "$work/out/second" -b test/one-step -p "$first:best" --execution process --allow-unsafe-process --progress none \
    --episode-budget 8 --seed 5 --assessment-episodes 3 -- bash "$work/second.sh" >"$work/second.out" 2>&1
check "run from another's best" [ $? -eq 0 ]
check "its initial Program is the other's" diff -r "$work/out/second/initial/program" "$work/third"
mv "$work/start.kept" "$work/start"

# --- running, and killed ---
run_command out/killed -- 'evopolicygym-session submit program --episodes 0:2 || exit 3
printf "import time\nclass P:\n    def act(self, o):\n        time.sleep(25)\n        return 1\ndef make_policy(c):\n    return P()\n" >program/policy.py
: >analysis/ready; evopolicygym-session submit program --episodes 2:4; sleep 100'
"${command[@]}" >"$run.out" 2>"$run.err" &
pid=$!
wait_for "$run/workspace/analysis/ready"
for _ in $(seq 600); do
    [ "$(grep -c evaluation_started "$run/events.jsonl")" -eq 2 ] && break
    sleep 0.05
done
killed=$run
"$epg" log "$killed" --json >"$work/running.json"
check 'running: says so' says "$work/running.json" 'd["run"]["state"] == "running" and d["run"]["has_record"] is False and [s["state"] for s in d["submissions"]] == ["published", "running"] and d["submissions"][0]["best"]'
check 'running: the text too' sh -c "'$epg' log '$killed' | grep -q ': running (no run.json)'"
check 'running: verify says so' sh -c "'$epg' verify '$killed' --json | grep -q '\"state\": \"running\"'"
check 'running: diff' sh -c "'$epg' diff '$killed' 1 2 --program | grep -q '^+import time'"
kill -KILL $pid
wait $pid 2>/dev/null
check 'the killed Run leaves no process' none_living
"$epg" log "$killed" --json >"$work/killed.json"
check 'killed: says so' says "$work/killed.json" 'd["run"]["state"] == "killed" and [s["state"] for s in d["submissions"]] == ["published", "pending"]'
check 'killed: show' sh -c "'$epg' show '$killed' 1 --json | grep -q '\"episode_index\": 1'"
check 'killed: no Feedback is no fault' sh -c "'$epg' show '$killed' 2 | grep -q 'state      pending'"
check 'killed: export' sh -c "'$epg' export '$killed' | tail -1 | grep -q '\"state\":\"killed\"'"
check 'killed: checkout of what was charged' "$epg" checkout "$killed" 2 "$work/pending"
printf '{"completed":1,"episode_ind' >>"$killed/events.jsonl"
check 'killed: a torn last line' sh -c "'$epg' log '$killed' | grep -q killed"

# --- list ---
mkdir -p "$work/out/deep/er" "$work/out/broken"
cp -r "$sample" "$work/out/deep/er/foreign"
: >"$work/out/broken/events.jsonl"
"$epg" list "$work/out" --json >"$work/list.json"
check 'list' says "$work/list.json" '[(r["directory"].rsplit("/", 1)[1], r["run"] and r["run"]["state"]) for r in d["runs"]] == [("broken", None), ("foreign", "finished"), ("first", "finished"), ("killed", "killed"), ("second", "finished")]'
check 'list: an unreadable one is told, with why' says "$work/list.json" '"config.json" in d["runs"][0]["error"]'
check 'list: text' sh -c "COLUMNS=250 '$epg' list '$work/out' | grep -q '^killed .*out/killed'"
check 'list: nowhere' refuses 'nowhere' "$epg" list "$work/nowhere"
check 'list: none' sh -c "'$epg' list '$work/third' | grep -qx 'no Runs here'"

# --- compare ---
"$epg" compare "$killed" "$work/out/second" "$first" --at 3 --at 5 --json >"$work/compare.json"
check 'compare: ranked, the unmeasured last' says "$work/compare.json" '[r["held_out"] and r["held_out"]["score"] for r in d["runs"]] == [3.0, 3.0, None]'
check 'compare: the interval of equal Episodes is a point' says "$work/compare.json" 'd["runs"][0]["held_out"]["interval"] == [3.0, 3.0]'
check 'compare: best within budgets' says "$work/compare.json" '[[b["score"] for b in r["best_at"]] for r in d["runs"] if r["directory"].endswith("first")] == [[1.0, 3.0]]'
check 'compare: one group' says "$work/compare.json" '[(g["provider"], g["runs"], g["runs_measured"]) for g in d["groups"]] == [("command", 3, 2)]'
check 'compare: the text' sh -c "'$epg' compare '$first' '$killed' | grep -qE '^ +1  command +3 +\[3, 3\]'"
check 'compare refuses other Benchmarks' refuses 'different Benchmarks' "$epg" compare "$first" "$sample"
cp -r "$sample" "$work/other"
sed -i 's/sha256:9902c8cf/sha256:0002c8cf/' "$work/other/run.json"
check 'compare refuses other Environments' refuses 'environment digests differ' "$epg" compare "$sample" "$work/other"

# --- export ---
"$epg" export "$first" --format jsonl >"$work/export.jsonl"
"$epg" export "$first" --format atif >"$work/export.json"
check 'export: what each holds, in order' python3 - "$work/export.jsonl" "$work/export.json" "$first" <<'P'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert lines[0]["type"] == "run" and lines[0]["schema"] == "evopolicygym/trajectory/v1", lines[0]
assert lines[0]["task"] == open(sys.argv[3] + "/agent/instructions.md").read()
assert lines[-1]["type"] == "outcome" and lines[-1]["outcome"]["assessment"]["score"] == 3.0
kept = [json.loads(line) for line in open(sys.argv[3] + "/agent/transcript.jsonl")]
assert [l["agent"] for l in lines if l["type"] == "agent"] == kept
submitted = [l for l in lines if l["type"] == "submission"]
for number, line in enumerate(submitted, 1):
    assert line["feedback"] == json.load(open(f"{sys.argv[3]}/submissions/submission-{number:06}/feedback.json"))
assert len(submitted) == 3
said = next(i for i, l in enumerate(lines) if l.get("agent", {}).get("text") == "the agent says this")
assert lines.index(submitted[2]) < said
document = json.load(open(sys.argv[2]))
steps = document["steps"]
assert document["schema_version"].startswith("ATIF-v1.") and document["session_id"] and set(document["agent"]) >= {"name", "version"}
assert [s["step_id"] for s in steps] == list(range(1, len(steps) + 1))
assert steps[0]["source"] == "user" and steps[0]["message"] == lines[0]["task"]
assert all(s["source"] in ("user", "system", "agent") and isinstance(s["message"], str) for s in steps)
assert any(s["source"] == "agent" and "the agent says this" in s["message"] for s in steps)
assert [s["extra"]["feedback"]["score"] for s in steps if "submission_id" in s.get("extra", {})][:2] == [1.0, 3.0]
P
check 'export: a form that there is not' refuses 'atif or jsonl' "$epg" export "$first" --format xml

# --- another Host's Run ---
"$epg" log "$sample" --json >"$work/foreign.json"
check 'foreign: log' says "$work/foreign.json" '[round(s["score"], 3) for s in d["submissions"]] == [2051.984, 3105.654, 1000000.0] and [s["best"] for s in d["submissions"]] == [True, False, False] and d["run"]["state"] == "finished" and d["run"]["agent"]["model"] == "scripted" and d["run"]["candidate_submission_ids"] == ["submission-000002", "submission-000001"]'
check 'foreign: show' sh -c "'$epg' show '$sample' 2 | grep -q '3472.97'"
check 'foreign: Feedback compares' sh -c "'$epg' diff '$sample' 1 2 --feedback | grep -q '^1 of 5 Episodes'"
check 'foreign: no snapshots are left' refuses 'no snapshot of submission-000001' "$epg" diff "$sample" 1 2
cp -r "$sample" "$work/copies"
for number in 1 2; do
    mkdir "$work/copies/submissions/submission-00000$number/program"
    printf '%s\n' "a = $number" >"$work/copies/submissions/submission-00000$number/program/policy.py"
    digest=$("$epg" program digest "$work/copies/submissions/submission-00000$number/program")
    old=$(python3 -c "import json; print(json.load(open('$sample/run.json'))['submissions'][$number - 1]['program_digest'])")
    sed -i "s/$old/$digest/g" "$work/copies/events.jsonl"
done
check 'foreign: diff of the copies, without git' sh -c "'$epg' diff '$work/copies' 1 2 --program | grep -qx '+a = 2'"
check 'foreign: export' sh -c "'$epg' export '$sample' --format atif | python3 -m json.tool >/dev/null"
check 'the temporary directory is empty' [ -z "$(ls -A "$TMPDIR" | grep -v '^epg-[0-9a-f]*$')" ]

cp -r "$sample" "$work/unended"
rm "$work/unended/run.json"
sed -i '/run_finished/d; /assessment/d' "$work/unended/events.jsonl"
"$epg" log "$work/unended" --json >"$work/unended.json"
check 'foreign, killed: what its events tell' says "$work/unended.json" 'd["run"]["state"] == "killed" and d["run"]["episode_budget"] == 10 and d["run"]["episodes_used"] == 7 and d["run"]["benchmark"]["id"].startswith("codechef/") and d["run"]["final_submission_id"] == "submission-000002" and len(d["submissions"]) == 3'
check 'foreign, killed: show' sh -c "'$epg' show '$work/unended' 2 | grep -q '3472.97'"

# --- what an Agent did, step by step ---
cp -r "$sample" "$work/steps"
chmod u+w "$work/steps/agent"
python3 - "$work/steps/agent/transcript.jsonl" <<'P'
import json, sys
events = [
    {"event": "transcript", "schema": "evopolicygym/agent-transcript/v1"},
    {"event": "thinking", "text": "first I think"},
    {"event": "message", "text": "I run it"},
    {"event": "tool_call", "id": "c1", "name": "shell", "input": {"command": "ls"}},
    {"event": "tool_call", "id": "c2", "name": "shell", "input": "plain"},
    {"event": "tool_result", "id": "c1", "output": "policy.py", "failed": False, "exit_code": 0},
    {"event": "tool_result", "id": "c9", "output": "of no call", "failed": False, "exit_code": None},
    {"event": "usage", "cost": 0.5, "tokens": {"input": 100, "output": 10, "cached_input": 40}},
    {"event": "tool_call", "id": "c3", "name": "edit", "input": None},
    {"event": "usage", "cost": 0.75, "tokens": {"input": 130, "output": 15, "cached_input": 40}},
    {"event": "error", "message": "overloaded", "fault": "overload", "final": False, "status": 529},
    {"event": "message", "text": "done </script>"},
]
with open(sys.argv[1], "w") as file:
    for number, event in enumerate(events):
        event.update(time_unix_ns=1795999410973984814 + number, monotonic_ns=number)
        file.write(json.dumps(event) + "\n")
    file.write('{"event": "torn')
P
"$epg" export "$work/steps" -f atif >"$work/steps.json"
check 'export: steps' python3 - "$work/steps.json" <<'P'
import json, sys
steps = json.load(open(sys.argv[1]))["steps"]
mine = [s for s in steps if s["source"] == "agent"]
assert [s["message"] for s in mine] == ["I run it", "", "done </script>"], mine
assert mine[0]["reasoning_content"] == "first I think" and mine[0]["timestamp"].endswith("Z") and mine[0]["model_name"] == "scripted"
assert [(c["tool_call_id"], c["function_name"], c["arguments"]) for c in mine[0]["tool_calls"]] == [("c1", "shell", {"command": "ls"}), ("c2", "shell", {"input": "plain"})]
assert mine[0]["observation"]["results"] == [{"content": "policy.py", "source_call_id": "c1"}, {"content": "of no call"}]
assert mine[0]["metrics"] == {"cached_tokens": 40, "completion_tokens": 10, "cost_usd": 0.5, "prompt_tokens": 100}, mine[0]
assert mine[1]["metrics"] == {"cached_tokens": 0, "completion_tokens": 5, "cost_usd": 0.25, "prompt_tokens": 30}, mine[1]
assert mine[1]["tool_calls"][0]["arguments"] == {} and "metrics" not in mine[2]
failed = [s for s in steps if s["message"] == "overloaded"]
assert len(failed) == 1 and failed[0]["source"] == "system" and failed[0]["extra"]["status"] == 529
assert [s["step_id"] for s in steps] == list(range(1, len(steps) + 1))
assert sum("submission_id" in s.get("extra", {}) for s in steps) == 3
P
check 'export: as the format has it' python3 - "$work/steps.json" "$work/export.json" <<'P'
import json, re, sys
# The members of ATIF-v1.4 (its RFC), and what only a step of the agent may have.
agents = {"model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics"}
everyones = {"step_id", "timestamp", "source", "message", "observation", "extra"}
for path in sys.argv[1:]:
    document = json.load(open(path))
    assert set(document) <= {"schema_version", "session_id", "agent", "steps", "notes", "final_metrics", "extra"}, set(document)
    assert set(document["agent"]) <= {"name", "version", "model_name", "tool_definitions", "extra"}
    assert set(document["final_metrics"]) <= {"total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_cost_usd", "total_steps", "extra"}
    for step in document["steps"]:
        assert set(step) <= everyones | (agents if step["source"] == "agent" else set()), step
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", step.get("timestamp", "2026-01-01T00:00:00Z"))
        calls = [c["tool_call_id"] for c in step.get("tool_calls", [])]
        assert len(calls) == len(set(calls)) and all(isinstance(c["arguments"], dict) and c["function_name"] for c in step.get("tool_calls", []))
        for result in step.get("observation", {}).get("results", []):
            assert set(result) <= {"source_call_id", "content", "subagent_trajectory_ref"} and result.get("source_call_id", calls[:1] and calls[0]) in calls + [[]], step
        assert set(step.get("metrics", {})) <= {"prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "prompt_token_ids", "completion_token_ids", "logprobs", "extra"}
P
mv "$work/steps/agent/transcript.jsonl" "$work/steps/agent/elsewhere"
ln -s elsewhere "$work/steps/agent/transcript.jsonl"
check 'export: a transcript that is a link is not read' sh -c "! '$epg' export '$work/steps' >/dev/null 2>'$work/link.err' && grep -q 'transcript.jsonl can.t be read' '$work/link.err'"

# --- numbers and depths that no sum and no document of ours holds: as far as they can be told ---
cp -r "$first" "$work/absurd"
chmod -R u+w "$work/absurd"
sed -i -e 's/"score":1\.0/"score":1.7e308/' -e 's/"score":3\.0/"score":-1.7e308/' -e 's/"agent_cost_usd":null/"agent_cost_usd":1.7e308/' "$work/absurd/events.jsonl"
python3 -c 'print("{\"event\":\"error\",\"message\":" + "[" * 700 + "]" * 700 + "}")' >>"$work/absurd/agent/transcript.jsonl"
for reads in "log $work/absurd" "show $work/absurd submission-000002" "list $work/absurd" "compare $work/absurd $work/absurd"; do
    # shellcheck disable=SC2086 # words
    "$epg" $reads --json >"$work/absurd.json"
    check "absurd: $reads" says "$work/absurd.json" 'd["schema"]'
done
check 'absurd: export' sh -c "'$epg' export '$work/absurd' >'$work/absurd.json'"
check 'absurd: export as ATIF' sh -c "'$epg' export --format atif '$work/absurd' >'$work/absurd.json'"
check 'absurd: that is a document' says "$work/absurd.json" 'd["steps"]'

# --- what was altered, and what is no Run ---
chmod u+w "$first/submissions/submission-000002" "$first/submissions/submission-000002/feedback.json"
sed -i 's/"score": 3.0/"score": 9.0/' "$first/submissions/submission-000002/feedback.json"
"$epg" show "$first" 2 >"$work/altered" 2>&1
check 'altered Feedback is not shown' sh -c "[ $? -ne 0 ] && grep -q altered '$work/altered'"
git -C "$first/history.git" update-ref refs/tags/submission-000002 "$(git -C "$first/history.git" rev-parse submission-000001)"
check 'a moved tag is seen' sh -c "! '$epg' checkout '$first' 2 '$work/moved' 2>'$work/moved.err' && grep -q 'not the Program that was recorded' '$work/moved.err' && [ ! -e '$work/moved' ]"
check 'no Run' refuses 'no events.jsonl' "$epg" log "$work/third"
check 'nothing there' refuses "can't open the Run" "$epg" show "$work/nothing" 1
check 'no such submission' refuses 'has no submission 77' "$epg" show "$killed" 77
check 'no such word' refuses 'no submission is called "fine"' "$epg" show "$killed" fine
check 'nothing selected' refuses 'was selected' "$epg" show "$killed" final
for command in log show diff checkout list compare export; do
    check "$command --help teaches with examples" sh -c "'$epg' $command --help | grep -q '^Examples:'"
done
