"""What the plays of deaths, failures and power cuts share: a short Run whose end is known, and how to compare with it."""
import atexit
import hashlib
import json
import os
import shutil
import subprocess
import tempfile

BIN = os.environ["EPG_BIN"]
CLI = os.path.join(BIN, "evopolicygym")
AGENT = """
while :; do
    n=$(evopolicygym-session status | sed 's/.*"submissions_used":\\([0-9]*\\).*/\\1/')
    [ -n "$n" ] || exit 9
    [ "$n" -ge 3 ] && break
    sed -i "s/return [0-9]/return $((n + 2))/" program/policy.py
    evopolicygym-session submit program --episodes $n,$((n + 3)) >/dev/null || exit 8
done
evopolicygym-session finish submission-000002 submission-000003 >/dev/null
"""
# In memory: what is tested is the order of the writes, not the disk's time for them.
WORK = tempfile.mkdtemp(prefix="epg-faults-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None)
START = os.path.join(WORK, "start")
os.mkdir(START)
with open(os.path.join(START, "policy.py"), "w") as file:
    file.write("class P:\n    def act(self, o):\n        return 1\ndef make_policy(c):\n    return P()\n")

MORE = os.environ.get("EPG_RUN_OPTIONS", "").split()


def command(run, *more):
    return [CLI, "run", run, "-b", "test/one-step", "-p", START, "--execution", "process", "--allow-unsafe-process",
            "--progress", "none", *MORE, "--episode-budget", "8", "--validation-episodes", "2",
            "--max-candidates", "2", "--assessment-episodes", "2", "--agent-grace", "5", "-j", "1", *more, "--", "bash", "-c", AGENT]


def call(words, fault=None):
    """The exit code, what was said on standard error, and all that helps to explain a code that was not expected."""
    environment = dict(os.environ, EPG_TEST_BENCHMARKS="1", TMPDIR=WORK)
    if fault:
        environment["EPG_IO_FAULT"] = fault
    done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=300)
    return done.returncode, done.stderr.strip(), done.stdout.strip()


def explain(run):
    """How far a Run came: its last events and what its Agent said, for a message."""
    told = []
    for name, size in (("events.jsonl", 700), ("agent/stderr.log", 500), ("evidence.jsonl", 500)):
        try:
            told.append(f"{name}: ...{read(run, name)[-size:].decode(errors='replace')}")
        except OSError as error:
            told.append(f"{name}: {error.strerror}")
    return "; ".join(told)


def read(run, path):
    with open(os.path.join(run, path), "rb") as file:
        return file.read()


def value(run):
    """All that must be the same, value for value, whatever happened on the way."""
    record = json.loads(read(run, "run.json"))
    kept = {key: record[key] for key in ("benchmark", "candidate_submission_ids", "config", "final_submission_id",
                                         "initial_program", "submissions", "terminal_reason", "validation")}
    for name in ("validation/report.json", "assessment/report.json", "workspace/feedback/latest.json"):
        kept[name] = json.loads(read(run, name))
    for submission in record["submissions"]:
        for copy in ("submissions", "workspace/feedback/submissions"):
            path = f"{copy}/{submission['submission_id']}/feedback.json"
            kept[path] = hashlib.sha256(read(run, path)).hexdigest()
    notes = subprocess.run(["git", "-C", os.path.join(run, "history.git"), "log", "--format=%s%n%N", "main"],
                           stdout=subprocess.PIPE, text=True, check=True)
    kept["history.git"] = notes.stdout
    return kept


def charged(run):
    try:
        lines = read(run, "events.jsonl").decode().splitlines()
    except FileNotFoundError:
        return None
    events = [json.loads(line) for line in lines if line.endswith("}")]
    started = [event["submission_id"] for event in events if event["event"] == "evaluation_started"]
    assert len(started) == len(set(started)), f"charged twice: {started}"
    return started


def sound(run, where):
    code, error, out = call([CLI, "verify", run])
    assert code == 0, f"{where}: verify exits {code}: {error} {out}"


def go_on(run, where, wanted):
    """Resumes until the end. A Run that was not yet set up has charged nothing and says so."""
    code, error, out = call([CLI, "resume", run])
    if code == 2 and "was not set up" in error:
        assert not charged(run), f"{where}: charged, and not to be resumed: {error}"
        return "not begun"
    if code == 2 and "is complete" in error:
        code = 0
    assert code == 0, f"{where}: resume exits {code}: {error} {out} {explain(run)}"
    got = value(run)
    for key in wanted:
        assert got[key] == wanted[key], f"{where}: {key}: {got[key]} is not {wanted[key]}"
    charged(run)
    sound(run, where)
    return "resumed"


def undisturbed():
    """The Run that all others are compared with, the log of its writes, and its value."""
    run = os.path.join(WORK, "plain", "run")
    os.mkdir(os.path.dirname(run))
    log = os.path.join(WORK, "log")
    code, error, out = call(command(run), f"log={log}")
    assert code == 0, f"the undisturbed Run: {code} {error} {out} {explain(run)}"
    wanted = value(run)
    assert [s["score"] for s in wanted["submissions"]] == [2.0, 3.0, 4.0], wanted["submissions"]
    assert wanted["history.git"].count("Score: ") == 3, wanted["history.git"]
    sound(run, "the undisturbed Run")
    return run, log, wanted


def remove(directory):
    subprocess.run(["chmod", "-R", "u+w", directory], stderr=subprocess.DEVNULL)
    shutil.rmtree(directory, ignore_errors=True)


if not os.environ.get("EPG_KEEP"):
    atexit.register(remove, WORK)
