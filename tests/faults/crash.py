"""Plays deaths and failures at the points where a Host writes, then goes on, and compares with an undisturbed Run.

    crash.py kill POINTS   SIGKILL before POINTS calls, spread over a whole Run; then `resume`, then compare
    crash.py fail POINTS   each call fails once with ENOSPC, EIO, EMFILE, ...; the Run ends with a typed fault or goes on,
                           its record is sound, and once the fault is gone `resume` comes to the undisturbed end
"""
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
ERRORS = ["ENOSPC", "EIO", "EMFILE", "ENFILE", "EDQUOT", "EROFS", "EINTR"]
# In memory: what is tested is the order of the writes, not the disk's time for them.
WORK = tempfile.mkdtemp(prefix="epg-crash-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None)
START = os.path.join(WORK, "start")
os.mkdir(START)
with open(os.path.join(START, "policy.py"), "w") as file:
    file.write("class P:\n    def act(self, o):\n        return 1\ndef make_policy(c):\n    return P()\n")


def command(run):
    return [CLI, "run", run, "-b", "test/one-step", "-p", START, "--execution", "process", "--allow-unsafe-process",
            "--progress", "none", "--episode-budget", "8", "--validation-episodes", "2", "--max-candidates", "2",
            "--assessment-episodes", "2", "--agent-grace", "5", "-j", "1", "--", "bash", "-c", AGENT]


def call(words, fault=None):
    environment = dict(os.environ, EPG_TEST_BENCHMARKS="1", TMPDIR=WORK)
    if fault:
        environment["EPG_IO_FAULT"] = fault
    done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=300)
    return done.returncode, done.stderr.strip()


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
    code, error = call([CLI, "verify", run])
    assert code == 0, f"{where}: verify: {error or subprocess.run([CLI, 'verify', run], stdout=subprocess.PIPE, text=True).stdout}"


def go_on(run, where, wanted):
    """Resumes until the end. A Run that was not yet set up has charged nothing and says so."""
    code, error = call([CLI, "resume", run])
    if code == 2 and ("was not set up" in error or "no Run directory" in error):
        assert not charged(run), f"{where}: charged, and not to be resumed: {error}"
        return "not begun"
    if code == 2 and "is complete" in error:
        code = 0
    assert code == 0, f"{where}: resume exits {code}: {error}"
    got = value(run)
    for key in wanted:
        assert got[key] == wanted[key], f"{where}: {key}: {got[key]} is not {wanted[key]}"
    charged(run)
    sound(run, where)
    return "resumed"


def kill_at(point, wanted):
    run = os.path.join(WORK, f"kill-{point}")
    where = f"killed at point {point}"
    code, error = call(command(run), f"kill@{point}")
    if code == 0:
        outcome = "past the end"
    else:
        assert code == -9, f"{where}: exits {code}: {error}"
        outcome = go_on(run, where, wanted) if os.path.exists(run) else "not begun"
    subprocess.run(["chmod", "-R", "u+w", run], stderr=subprocess.DEVNULL)
    shutil.rmtree(run, ignore_errors=True)
    return outcome


def fail_at(point, wanted):
    name = ERRORS[point % len(ERRORS)]
    run = os.path.join(WORK, f"fail-{point}")
    where = f"{name} at point {point}"
    code, error = call(command(run), f"errno={name}@{point}")
    assert code in (0, 1, 2, 3, 4, 5), f"{where}: exits {code}: {error}"
    assert len(error.splitlines()) <= 1, f"{where}: {error}"
    if code == 0:
        assert value(run) == wanted, f"{where}: went on to another end"
        sound(run, where)
        outcome = "went on"
    elif not os.path.exists(os.path.join(run, "events.jsonl")):
        outcome = "not begun"
    else:
        record = os.path.join(run, "run.json")
        if os.path.exists(record):
            json.loads(read(run, "run.json"))
            sound(run, where)
            outcome = "typed end"
        else:
            outcome = go_on(run, where, wanted)
    subprocess.run(["chmod", "-R", "u+w", run], stderr=subprocess.DEVNULL)
    shutil.rmtree(run, ignore_errors=True)
    return outcome


def main():
    kind, count = sys.argv[1], int(sys.argv[2])
    reference = os.path.join(WORK, "reference")
    log = os.path.join(WORK, "log")
    code, error = call(command(reference), f"log={log}")
    assert code == 0, f"the undisturbed Run: {code} {error}"
    with open(log) as file:
        points = sum(1 for _ in file)
    wanted = value(reference)
    assert [s["score"] for s in wanted["submissions"]] == [2.0, 3.0, 4.0], wanted["submissions"]
    sound(reference, "the undisturbed Run")
    chosen = sorted({1 + i * points // count for i in range(count)})
    play = {"kill": kill_at, "fail": fail_at}[kind]
    outcomes, failed = {}, 0
    with ThreadPoolExecutor(int(os.environ.get("EPG_TEST_JOBS", "4"))) as pool:
        for future in [pool.submit(play, point, wanted) for point in chosen]:
            try:
                outcome = future.result()
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
            except (AssertionError, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"FAILED: {str(error)[:600]}", flush=True)
    print(f"{kind}: {len(chosen)} of {points} points: {outcomes}, {failed} failed")
    subprocess.run(["chmod", "-R", "u+w", WORK], stderr=subprocess.DEVNULL)
    shutil.rmtree(WORK, ignore_errors=True)
    sys.exit(1 if failed or not outcomes else 0)


main()
