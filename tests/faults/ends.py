"""Plays deaths behind a Run's turning point: what ended it stands in the ledger, and its Host dies before run.json says so.
`resume` must give the end that the Run had when nobody disturbed it: the same reason, the same exit code, nobody else
blamed, and the Agent not started again.

    ends.py    all ends, and each event behind the one that decides; the operator's hand-over, `finish`, cut likewise
"""
import json
import os
import re
import sys

import play
import recording

SUBMIT = "evopolicygym-session submit program --episodes 0,3 >/dev/null; "
FINISH = "evopolicygym-session finish submission-000001 >/dev/null; "
DEAF = "trap 'exit 0' TERM; sleep 600 & wait"  # an Agent that ends well when it is ended
SLOW = f"echo '{play.PROGRAM % 'time.sleep(600)'}' >program/policy.py; sed -i '1i import time' program/policy.py; "
# What ended it, the event that says so, the Agent, options, and the call that fails (how many of its kind come before).
ENDS = [
    ("failed", "agent_exited", SUBMIT + "exit 3", [], None),
    ("exited", "agent_exited", SUBMIT, [], None),
    ("spent", "agent_exited", 4 * SUBMIT, [], None),
    ("late", "agent_timeout", SUBMIT + DEAF, ["--agent-timeout", "1"], None),
    ("late, evaluating", "agent_timeout", SLOW + SUBMIT + DEAF, ["--agent-timeout", "1"], None),
    ("idle", "agent_limit", SUBMIT + DEAF, ["--agent-idle", "1"], None),
    ("the best", "finish_requested", SUBMIT, ["--on-agent-exit", "best=2"], None),
    ("finished, failing", "finish_requested", SUBMIT + FINISH + "exit 3", [], None),
    ("no charge", "session_failed", SUBMIT + SUBMIT, [], ("rename", r"refs/tags/submission-000002$")),
    ("no record", "publication_failed", SUBMIT + SUBMIT, [], ("write", r"records/submission-000002-")),
    ("no publication", "publication_failed", SUBMIT + SUBMIT, [], ("rename", r"/submissions/submission-000002$")),
    ("no validation", "validation_failed", SUBMIT + FINISH, [], ("write", r"records/validation-")),
    ("no assessment", "assessment_failed", SUBMIT + FINISH, [], ("write", r"records/assessment-")),
]


def nth(log, call, path):
    """Which of the Host's calls of a name it is that concerns a path."""
    count = 0
    host = play.host(log)
    with open(log) as file:
        for line in file:
            entry = json.loads(line)
            count += entry["pid"] == host and entry["call"] == call
            if entry["call"] == call and re.search(path, entry.get("to", entry.get("path", ""))):
                return f"errno=ENOSPC@{count}:{call}"
    raise ValueError(f"no {call} of {path}")


def end_of(run, code):
    record = json.loads(play.read(run, "run.json"))
    kept = {key: record[key] for key in ("candidate_submission_ids", "final_submission_id", "submissions",
                                         "terminal_reason", "validation")}
    if not record["terminal_reason"].endswith(("evaluation_failed", "validation_failed", "assessment_failed")):
        kept["detail"] = record["host"].get("detail")
    starts = [line for line in play.read(run, "events.jsonl").splitlines() if b'"event":"agent_started"' in line]
    return kept | {"exit code": code, "starts": len(starts)} | play.files(run, "submissions", "validation", "assessment")


def whole(name, agent, options, fault):
    """Runs it: where, and the recording."""
    run = os.path.join(play.WORK, name, "run")
    os.mkdir(os.path.dirname(run))
    log = os.path.join(play.WORK, f"log of {name}")
    faults = ([fault] if fault else []) + [f"log={log}"]
    code, error, _ = play.call(play.command(run, *options, agent=agent), ",".join(faults))
    return run, log, code, error


def play_end(name, event, agent, options, failing):
    fault = None
    if failing is not None:
        _, log, code, error = whole(f"{name} not yet", agent, options, None)
        assert os.path.exists(log), f"{name}: {code} {error}"
        fault = nth(log, *failing)
    run, log, code, error = whole(name, agent, options, fault)
    assert os.path.exists(os.path.join(run, "run.json")), f"{name}: {code} {error}"
    play.sound(run, name)
    wanted = end_of(run, code)
    recorded = recording.Recording().begin(os.path.dirname(run))
    recorded.take_log(log)
    calls = recorded.calls
    events = [at for at, call in enumerate(calls) if b'"schema":"evopolicygym/run-event' in call.get("data", b"")]
    decided = [at for at in events if f'"event":"{event}"'.encode() in calls[at]["data"]]
    assert decided, f"{name}: no {event}: {play.explain(run)}"
    written = events[events.index(decided[0]):]
    for at in written:
        root = os.path.join(play.WORK, f"{name} {at}")
        copy = os.path.join(root, "run")
        recording.lay(recorded.disk(recorded.choose(at + 1, "all")), root)
        where = f"{name}, {written.index(at)} events behind {event}"
        code, error, out = play.call(play.RESUME + [copy])
        assert os.path.exists(os.path.join(copy, "run.json")), f"{where}: resume exits {code}: {error} {out}"
        play.compare(end_of(copy, code), wanted, where)
        play.sound(copy, where)
        play.remove(root)
    return wanted["terminal_reason"]


def play_finish():
    """An operator's `finish`, cut before and behind each of its events: given again, or resumed where it was recorded."""
    run, log, code, error = whole("handed over", SUBMIT + SUBMIT, [], None)
    recorded = recording.Recording().begin(os.path.dirname(run))
    recorded.take_log(log)
    assert code == 1, f"{code}: {error}"
    finish = [play.CLI, "finish", "--progress", "none", run, "submission-000002", "submission-000001"]
    first = recorded.cut(len(recorded.calls), "all").begin(os.path.dirname(run))
    log += " again"
    code, error, out = play.call(finish, f"log={log}")
    assert code == 0, f"finish exits {code}: {error} {out}"
    first.take_log(log)
    wanted = end_of(run, code)
    events = [at for at, call in enumerate(first.calls) if b'"schema":"evopolicygym/run-event' in call.get("data", b"")]
    for at in [at for at in events if at >= first.first]:
        for cut, variant in ((at, "all"), (at, "none"), (at + 1, "all")):
            root = os.path.join(play.WORK, f"handed over {cut} {variant}")
            copy = os.path.join(root, "run")
            recording.lay(first.disk(first.choose(cut, variant)), root)
            where = f"finish cut at {cut - first.first}, {variant}"
            code, error, out = play.call([word if word != run else copy for word in finish])
            if code == 2 and "has its candidates already" in error:
                code, error, out = play.call(play.RESUME + [copy])
            assert code == 0, f"{where}: exits {code}: {error} {out}"
            play.compare(end_of(copy, code), wanted, where)
            play.sound(copy, where)
            play.remove(root)
    return "handed over"


def main():
    play.play_all("ends", [(play_finish,)] + [(play_end, *end) for end in ENDS], len(ENDS) + 1)


main()
