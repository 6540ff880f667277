#!/usr/bin/env bash
# The main job: submit, Feedback, finish, Validation, Assessment, and the record that is left.
. "$EPG_SOURCE/tests/e2e/lib.sh"

run main --max-submissions 5 --validation-episodes 4 --max-candidates 2 --assessment-episodes 3 -- '
evopolicygym-session status >/dev/null || exit 3
evopolicygym-session submit program --episodes 0:3 || exit 4
sed -i "s/return 1/return 3/" program/policy.py
mkdir analysis/deep; cd analysis/deep
evopolicygym-session submit ../../program --episodes 1,9 || exit 5
cd ../..
cat feedback/latest.json >analysis/latest-seen.json
evopolicygym-session submit program --episodes 99 && exit 6
evopolicygym-session submit program --episodes 0:19 && exit 7
evopolicygym-session finish submission-000009 && exit 8
evopolicygym-session finish submission-000001 submission-000002 || exit 9
evopolicygym-session submit program --episodes 0 && exit 10
exit 0'
check 'exit code 0' [ $code -eq 0 ]
check 'finished' holds 'record["terminal_reason"] == "finished" and record["agent"]["returncode"] == 0'
check 'the better one is selected' holds 'record["final_submission_id"] == "submission-000002"'
check 'budget' holds '[s["episodes_remaining"] for s in record["submissions"]] == [17, 15]'
check 'scores' holds '[s["score"] for s in record["submissions"]] == [1.0, 3.0]'
check 'what its numbers refuse costs nothing and leaves no event' holds 'find("submission_rejected") == []'
check 'a refused finish is an event' holds 'find("finish_rejected")[0]["reason"] == "unknown_submission"'
check 'the order of events' holds 'names[0] == "run_created" and names.index("agent_started") < names.index("evaluation_started") and names[-1] == "run_finished" and names.index("finish_requested") < names.index("agent_exited") < names.index("validation_started") < names.index("final_submission_selected") < names.index("assessment_started") < names.index("assessment_completed")'
check 'the agent saw its Feedback' holds '"submission-000002" in text("workspace/analysis/latest-seen.json")'
check 'both copies are equal' cmp "$run/submissions/submission-000002/feedback.json" "$run/workspace/feedback/submissions/submission-000002/feedback.json"
check 'published Program' grep -q 'return 3' "$run/submissions/submission-000002/program/policy.py"
check 'modes' holds 'mode("submissions/submission-000001") == 0o555 and mode("submissions/submission-000001/feedback.json") == 0o444 and mode("run.json") == 0o400 and mode("validation/report.json") == 0o400 and mode("assessment") == 0o500 and mode("agent/instructions.md") == 0o400 and mode("workspace") == 0o700 and mode("initial/program/policy.py") == 0o400'
check 'no seed or path is told to the agent' sh -c "! grep -rn -e '$run/submissions' -e environment_seed '$run/workspace/feedback' '$run/agent/instructions.md'"
check 'git log reads the history' sh -c "git -C '$run/history.git' log -p --format=%s | grep -q '^+        return 3'"
check 'tags' [ "$(git -C "$run/history.git" tag | tr '\n' ' ')" = 'initial submission-000001 submission-000002 ' ]
check 'git fsck' git -C "$run/history.git" fsck --strict
check 'nothing is kept that was only for the way' sh -c "[ -z \"\$(ls -A '$run/records')\" ]"
check 'the temporary directory is empty' [ -z "$(ls -A "$TMPDIR")" ]
check 'nothing lives' none_living

# The record has the shape of the published sample: every key of it, of the same type.
python3 - "$run" "$EPG_SOURCE/tests/vectors/data/sample-run" <<'P' || fail 'the shape of the record'
import json, os, sys
ours, sample = sys.argv[1:]
free = {"parameters", "content", "feedback_content", "agent"}
def compare(a, b, where):
    if b is None or a is None:
        return
    if isinstance(b, dict):
        assert isinstance(a, dict), where
        for key in b:
            if key == "model" or (key in free and where != "run.json"):
                continue
            assert key in a, f"{where}: {key} is missing"
            compare(a[key], b[key], f"{where}.{key}") if key not in free else None
    elif isinstance(b, list):
        assert isinstance(a, list), where
        if a and b:
            compare(a[0], b[0], where + "[0]")
    else:
        assert isinstance(a, type(b)) or {type(a), type(b)} <= {int, float}, f"{where}: {a!r} is no {type(b)}"
def read(root, path):
    with open(os.path.join(root, path)) as file:
        raw = file.read()
    return raw, json.loads(raw)
for path in ["run.json", "agent/invocation.json", "validation/report.json", "assessment/report.json",
             "submissions/submission-000001/feedback.json", "submissions/submission-000001/availability.json",
             "workspace/feedback/latest.json", "workspace/feedback/retention.json"]:
    raw, document = read(ours, path)
    _, wanted = read(sample, path)
    compare(document, wanted, path)
    assert raw == json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n", f"{path}: not in the published form"
    assert document.get("schema") == wanted.get("schema"), path
fields = {}
for line in open(os.path.join(sample, "events.jsonl")):
    event = json.loads(line)
    fields[event["event"]] = fields.get(event["event"], set(event)) & set(event)
for line in open(os.path.join(ours, "events.jsonl")):
    event = json.loads(line)
    missing = fields.get(event["event"], set()) - set(event)
    assert not missing, (event["event"], missing)
    assert line == json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n", line
P
checks=$((checks + 1))

# --- mistakes: one line, exit code 2, nothing created ---
mistake() { # WORD OPTIONS... (after `run`)
    local word=$1
    shift
    "$EPG_BIN/evopolicygym" run "$@" >"$work/out" 2>"$work/err"
    local code=$?
    check "'$*' is a mistake" [ $code -eq 2 ]
    check "'$*': $(cat "$work/err")" grep -q -- "$word" "$work/err"
    check "'$*': one line" [ "$(wc -l <"$work/err")" -eq 1 ]
    check "'$*': nothing created" [ ! -e "$work/new" ]
}
base=(-b test/one-step -p "$work/start" --execution process --allow-unsafe-process)
mistake 'exists' "$run" "${base[@]}" -- true
mistake 'Agent' "$work/new" "${base[@]}"
mistake 'PATH' "$work/new" "${base[@]}" -- no-such-agent-command
mistake 'is not a file' "$work/new" "${base[@]}" -- "$work/nothing"
mistake 'not executable' "$work/new" "${base[@]}" -- "$work/start/policy.py"
mistake 'program' "$work/new" -b test/one-step --execution process --allow-unsafe-process -- true
mistake 'allow-unsafe' "$work/new" -b test/one-step -p "$work/start" --execution process -- true
mistake 'benchmark' "$work/new" -b nothing-like-it -p "$work/start" --execution process --allow-unsafe-process -- true
mistake 'no split' "$work/new" -b cartpole -p "$work/start" --execution process --allow-unsafe-process --validation-episodes 2 --validation-split tset -- true
mistake 'no split' "$work/new" -b cartpole -p "$work/start" --execution process --allow-unsafe-process --assessment-episodes 2 --assessment-split tset -- true
mistake 'directory' "$work/missing/new" "${base[@]}" -- true
mistake 'episode-budget' "$work/new" "${base[@]}" --episode-budget 0 -- true
mistake 'seconds' "$work/new" "${base[@]}" --agent-timeout -1 -- true
