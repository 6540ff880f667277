"""What the plays of deaths, failures and power cuts share: a Run whose end is known, and how to compare with it."""
import atexit
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

BIN = os.environ["EPG_BIN"]
CLI = os.path.join(BIN, "evopolicygym")
PROGRAM = """class P:
    def act(self, o):
        return %s
def make_policy(c):
    return P()
"""
AGENT = """
while :; do
    n=$(evopolicygym-session status)
    n=${n#*'"submissions_used":'}
    n=${n%%[,\}]*}
    [ -n "$n" ] || exit 9
    [ "$n" -ge 3 ] && break
    echo "PROGRAM" >program/policy.py
    evopolicygym-session submit program --episodes $n,$((n + 3)) >/dev/null || exit 8
done
evopolicygym-session finish submission-000002 submission-000003 >/dev/null
""".replace("PROGRAM", PROGRAM % "$((n + 2))")
# In memory: what is tested is the order of the writes, not the disk's time for them.
WORK = tempfile.mkdtemp(prefix="epg-faults-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None)
START = os.path.join(WORK, "start")
os.mkdir(START)
with open(os.path.join(START, "policy.py"), "w") as file:
    file.write(PROGRAM % 1)

# A virtual environment that is empty: hundreds of interpreters are started, and none looks for what this machine has.
PYTHON = os.path.join(WORK, "python", "bin", "python3")
os.makedirs(os.path.dirname(PYTHON))
os.symlink(sys.executable, PYTHON)
with open(os.path.join(WORK, "python", "pyvenv.cfg"), "w") as file:
    file.write(f"home = {os.path.dirname(sys.executable)}\ninclude-system-site-packages = false\n")
RESUME = [CLI, "resume", "--progress", "none"]
JOBS = int(os.environ.get("EPG_TEST_JOBS", "4"))
MORE = os.environ.get("EPG_RUN_OPTIONS", "").split()


def command(run, *more, agent=AGENT):
    return [CLI, "run", run, "-b", "test/one-step", "-p", START, "--execution", "process", "--allow-unsafe-process",
            "--python", PYTHON, "--progress", "none", *MORE, "--episode-budget", "8", "--validation-episodes", "2",
            "--max-candidates", "2", "--assessment-episodes", "2", "--agent-grace", "5", "-j", "1", *more,
            "--", "bash", "-c", agent]


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


def files(run, *below):
    """The path, mode and content of each file and directory: of contents the hash."""
    found = {}
    for place in below:
        for directory, directories, names in os.walk(os.path.join(run, place)):
            for name in directories + names:
                path = os.path.relpath(os.path.join(directory, name), run)
                mode = os.lstat(os.path.join(run, path)).st_mode
                found[path] = mode, name in names and hashlib.sha256(read(run, path)).hexdigest()
    return found


def value(run):
    """All that must be the same, value for value, whatever happened on the way."""
    record = json.loads(read(run, "run.json"))
    kept = {key: record[key] for key in ("benchmark", "candidate_submission_ids", "config", "final_submission_id",
                                         "initial_program", "submissions", "terminal_reason", "validation")}
    for name in ("validation/report.json", "assessment/report.json", "workspace/feedback/latest.json"):
        kept[name] = json.loads(read(run, name))
    kept |= files(run, "submissions", "workspace/feedback", "validation", "assessment", "traces",
                  "records", "staging", "initial")
    notes = subprocess.run(["git", "-C", os.path.join(run, "history.git"), "log", "--format=%s%n%T%n%N", "main"],
                           stdout=subprocess.PIPE, text=True, check=True)
    kept["history.git"] = notes.stdout
    return kept


def timed(events):
    """What each Host that went on took for the Agent's time: from each start to its end, or to its Host's last event."""
    used, since, last = 0, None, None
    for event in events:
        name, now = event["event"], event["time_unix_ns"]
        ended = name in ("agent_exited", "agent_stopped_after_terminal")
        if since is not None and (ended or name in ("agent_started", "run_resumed")):
            used += (now if ended else last) - since
            since = None
        if name == "run_resumed":
            told = event["agent_seconds_used"]
            assert abs(told - used / 1e9) < 1e-6, f"{told} s were taken for the Agent's time, it was {used / 1e9}"
        if name == "agent_started":
            since = now
        last = now


def charged(run):
    try:
        lines = read(run, "events.jsonl").decode().splitlines()
    except FileNotFoundError:
        return None
    events = [json.loads(line) for line in lines if line.endswith("}")]
    timed(events)
    started = [event["submission_id"] for event in events if event["event"] == "evaluation_started"]
    assert len(started) == len(set(started)), f"charged twice: {started}"
    return started


def sound(run, where):
    code, error, out = call([CLI, "verify", run])
    assert code == 0, f"{where}: verify exits {code}: {error} {out}"


def compare(got, wanted, where):
    for key in sorted(set(got) | set(wanted)):
        assert got.get(key) == wanted.get(key), f"{where}: {key}: {got.get(key)} is not {wanted.get(key)}"


def go_on(run, where, wanted):
    """Resumes until the end. A Run that was not yet set up has charged nothing and says so."""
    code, error, out = call(RESUME + [run])
    if code == 2 and "was not set up" in error:
        assert not charged(run), f"{where}: charged, and not to be resumed: {error}"
        return "not begun"
    if code == 2 and "is complete" in error:
        code = 0
    assert code == 0, f"{where}: resume exits {code}: {error} {out} {explain(run)}"
    compare(value(run), wanted, where)
    charged(run)
    sound(run, where)
    return "resumed"


def healthy(run, where, said):
    """What a cut left of a Run is sound, and its ledger holds what was `said`."""
    try:
        ledger = read(run, "events.jsonl")
    except FileNotFoundError:
        ledger = b""
    assert ledger.startswith(said), f"{where}: somebody was told what the ledger does not hold any more"
    code, error, out = call([CLI, "verify", run])
    # Between the last event and run.json nobody can tell a cut from a run.json that was taken away, or put back.
    ended = code == 1 and len(out.splitlines()) == 2 and out.startswith(("run.json: is missing", "run.json: is older"))
    assert code == 0 or ended or (code == 2 and not said), f"{where}: verify exits {code}: {error} {out}"


def after_cut(run, where, said, wanted):
    if not os.path.exists(run):
        assert not said, f"{where}: the Run is gone"
        return "not begun"
    healthy(run, where, said)
    outcome = go_on(run, where, wanted)
    assert outcome == "resumed" or not said, f"{where}: {outcome}"
    return outcome


def interrupt(words, run, point, where, wanted):
    """SIGTERM at a point of a Host, which ends in good order; then to the end."""
    code, error, out = call(words, f"term@{point}")
    assert code in (0, 130) or (code == -15 and point < 5), f"{where}: exits {code}: {error} {out} {explain(run)}"
    if os.path.exists(os.path.join(run, "run.json")):
        sound(run, where)
    return after_cut(run, where, b"", wanted) if code else "past the end"


def judge(run, where, code, error, out, wanted):
    """What is left by a Host one of whose calls failed."""
    assert code in (0, 1, 2, 4, 5), f"{where}: exits {code}: {error} {out}"  # 3: never the Benchmark's
    assert len(error.splitlines()) <= 1, f"{where}: {error}"
    assert (code == 0) == (error == "") or code == 1, f"{where}: exits {code}, and says: {error}"
    if code == 0:
        got, due = value(run), dict(wanted)
        for key in [key for key in due if key.startswith("traces/") and key not in got]:
            del due[key]  # a Run goes on without digests that could not be written
        compare(got, due, f"{where}: went on")
        sound(run, where)
        return "went on"
    if not os.path.exists(run):
        return "not begun"
    record = os.path.join(run, "run.json")
    if os.path.exists(record):
        json.loads(read(run, "run.json"))
        sound(run, where)
        return "typed end"
    return go_on(run, where, wanted)


def by_process(log):
    found = {}
    with open(log) as file:
        for line in file:
            entry = json.loads(line)
            found.setdefault(entry["pid"], []).append((entry["point"], entry["call"]))
    return found


def host(log):
    """The process that writes the most."""
    found = by_process(log)
    return max(found, key=lambda pid: len(found[pid]))


def points(log):
    """[(number, call)] of the Host."""
    return by_process(log)[host(log)]


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


def each(calls):
    """The results of all of `calls`, (function, arguments...), made some at a time."""
    with ThreadPoolExecutor(JOBS) as pool:
        return [future.result() for future in [pool.submit(*one) for one in calls]]


def play_all(kind, plays, of):
    """Each of `plays`, (function, arguments...), which comes to an outcome. Ends the program."""
    outcomes, failed = {}, 0
    with ThreadPoolExecutor(JOBS) as pool:
        for future in [pool.submit(*one) for one in plays]:
            try:
                outcome = future.result()
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
            except (AssertionError, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
                failed += 1
                print(f"FAILED: {str(error)[:2500]}", flush=True)
    print(f"{kind}: {len(plays)} of {of}: {outcomes}, {failed} failed")
    sys.exit(1 if failed or not set(outcomes) - {"not begun"} else 0)


def spread(everything, count):
    """About `count` of them, evenly; 0: all."""
    if count == 0 or count >= len(everything):
        return everything
    return [everything[i * len(everything) // count] for i in range(count)]


def remove(directory):
    subprocess.run(["chmod", "-R", "u+w", directory], stderr=subprocess.DEVNULL)
    shutil.rmtree(directory, ignore_errors=True)


if not os.environ.get("EPG_KEEP"):
    atexit.register(remove, WORK)
