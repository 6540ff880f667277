"""A long Run: what it needs stays flat while it grows, and after a death near its end it goes on within seconds.

    long.py SUBMISSIONS EPISODES [JOBS]    EPISODES in each submission, on a toy Benchmark

Asserted: the Host's memory and descriptors late in the Run are those early in it, the git history stays packed, all
submissions are published and charged once, `resume` goes on and `verify` finds the whole sound. Told, and not asserted:
the milliseconds a submission takes early and late, what a resume takes, what `verify` and `log` take, and the most
memory that each of these had.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BIN = os.environ["EPG_BIN"]
CLI = os.path.join(BIN, "evopolicygym")
HERE = os.path.dirname(os.path.abspath(__file__))
SUBMISSIONS, EPISODES = int(sys.argv[1]), int(sys.argv[2])
JOBS = sys.argv[3] if len(sys.argv) > 3 else "1"
WORK = tempfile.mkdtemp(prefix="epg-long-", dir=os.environ.get("EPG_LONG_DIR"))
RUN = os.path.join(WORK, "run")
PROGRESS = os.path.join(WORK, "progress")
SAMPLES = 400
# What may grow from early to late, however many submissions are between. Of each, the Host keeps about 100 bytes (its
# score, digest and Episodes, the size of its bulk artifacts), and git's index of objects has as many, which are mapped
# and the kernel's to take back: 1.5 MB from the 1,000th submission to the 10,000th. The rest is what joining packs takes
# for a moment. Nothing is kept of an Episode.
GROWTH_KIB = 2 * 1024
PACKS_OPEN = 48  # so many packs there are before they are joined; each is opened when something is looked for in it
LIMIT_S = 3600


def start(words):
    environment = dict(os.environ, EPG_TEST_BENCHMARKS="1")
    environment.pop("EPG_IO_FAULT", None)
    with open(os.path.join(WORK, "told"), "w") as told:
        return subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=told, stderr=told)


def run_command():
    source = os.path.join(WORK, "start")
    os.mkdir(source)
    with open(os.path.join(source, "policy.py"), "w") as file:
        file.write("class P:\n    def act(self, o):\n        return 1\ndef make_policy(c):\n    return P()\n")
    return [CLI, "run", RUN, "-b", "test/one-step", "-p", source, "--execution", "process", "--allow-unsafe-process",
            "--progress", "none", "--episode-budget", str(SUBMISSIONS * EPISODES), "--episode-pool-size", str(EPISODES),
            "--agent-grace", "5", "--agent-timeout", "86400", "--assessment-episodes", "2", "-j", JOBS, "--",
            sys.executable, os.path.join(HERE, "agent.py"), str(SUBMISSIONS), str(EPISODES), PROGRESS]


def made():
    try:
        with open(PROGRESS) as file:
            return int(file.read())
    except FileNotFoundError:
        return 0


def names_in(path):
    try:
        return os.listdir(os.path.join(RUN, "history.git", path))
    except FileNotFoundError:
        return []


def sample(pid):
    """What the Host and its history hold now; None: it is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            status = dict(line.split(":", 1) for line in file)
        resident = {name: int(status[name].split()[0]) for name in ("VmRSS", "RssAnon")}
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except (FileNotFoundError, ProcessLookupError, KeyError):
        return None
    return {"made": made(), "kib": resident["VmRSS"], "own_kib": resident["RssAnon"], "descriptors": descriptors,
            "packs": sum(name.endswith(".pack") for name in names_in("objects/pack")),
            "tags": len(names_in("refs/tags")), "loose": sum(len(name) == 2 for name in names_in("objects"))}


def watch(host, until):
    """Samples while the Host runs, up to `until` submissions."""
    samples, next_at = [], 0
    while host.poll() is None and made() < until:
        if made() >= next_at:
            one = sample(host.pid)
            if one:
                samples.append(one)
            next_at = made() + max(1, SUBMISSIONS // SAMPLES)
        time.sleep(0.02)
    return samples


def told():
    with open(os.path.join(WORK, "told")) as file:
        return file.read()


def too_long(*_):
    raise TimeoutError(f"no end within {LIMIT_S} s: {told()}")


def end(process, what):
    """Waits for its good end; the most memory that it had, in MB."""
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LIMIT_S)
    _, status, usage = os.wait4(process.pid, 0)
    signal.alarm(0)
    process.returncode = status
    assert status == 0, f"{what} ends with status {status}: {told()}"
    return usage.ru_maxrss / 1024


def events():
    with open(os.path.join(RUN, "events.jsonl")) as file:
        for line in file:
            if '"event":"episode_completed"' not in line[:200]:
                yield json.loads(line)


def median(values):
    return sorted(values)[len(values) // 2] if values else float("nan")


def check_flat(samples):
    assert len(samples) >= 10, f"only {len(samples)} samples"
    early = [one for one in samples if 0.1 * SUBMISSIONS <= one["made"] < 0.3 * SUBMISSIONS]
    late = [one for one in samples if one["made"] >= 0.7 * SUBMISSIONS]
    peak = {key: (max(one[key] for one in early), max(one[key] for one in late)) for key in samples[0]}
    print(f"  Host's memory      {peak['kib'][0]} KiB early, {peak['kib'][1]} KiB late; without maps of files "
          f"{peak['own_kib'][0]} and {peak['own_kib'][1]}")
    print(f"  descriptors        {peak['descriptors'][0]} early, {peak['descriptors'][1]} late")
    print(f"  git history        at most {max(one['packs'] for one in samples)} packs, "
          f"{max(one['tags'] for one in samples)} tags not packed, {max(one['loose'] for one in samples)} loose objects")
    assert peak["kib"][1] <= peak["kib"][0] + GROWTH_KIB, "memory grows"
    assert peak["descriptors"][1] <= peak["descriptors"][0] + PACKS_OPEN, "descriptors grow"
    assert max(one["packs"] for one in samples) < 100 and max(one["tags"] for one in samples) < 100, "not packed"
    assert all(one["loose"] == 0 for one in samples), "loose objects"


def tell_times():
    starts = [event["monotonic_ns"] for event in events() if event["event"] == "evaluation_started"]
    took = [(b - a) / 1e6 for a, b in zip(starts, starts[1:])]
    tenth = max(1, len(took) // 10)
    print(f"  a submission       {median(took[:tenth]):.1f} ms early, {median(took[-tenth:]):.1f} ms late, "
          f"{median(took):.1f} ms in all (medians)")


def timed(*words):
    began = time.monotonic()
    most = end(start([CLI, *words]), words[0])
    return f"{time.monotonic() - began:.2f} s, {most:.0f} MB"


def main():
    began = time.monotonic()
    kill_at = SUBMISSIONS - max(2, SUBMISSIONS // 50)
    host = start(run_command())
    samples = watch(host, kill_at)
    assert host.poll() is None, f"the Run ended early: {told()}"
    host.send_signal(signal.SIGKILL)
    host.wait()
    print(f"{SUBMISSIONS} submissions of {EPISODES} Episodes: killed at {made()} after {time.monotonic() - began:.1f} s")
    check_flat(samples)
    resumed_at = time.time_ns()
    most = end(start([CLI, "resume", RUN, "--progress", "none"]), "resume")
    again = {e["event"]: (e["time_unix_ns"] - resumed_at) / 1e9 for e in events()
             if e["event"] in ("run_resumed", "agent_started") and e["time_unix_ns"] > resumed_at}
    print(f"  resume             {again['run_resumed']:.2f} s until it goes on, {again['agent_started']:.2f} s until the Agent "
          f"works again, what it waited for completed; {most:.0f} MB at most, to the end of the Run")
    tell_times()
    published = [e["submission_id"] for e in events() if e["event"] == "submission_published"]
    charged = [e["submission_id"] for e in events() if e["event"] == "evaluation_started"]
    assert published == charged == [f"submission-{i + 1:06d}" for i in range(SUBMISSIONS)], len(published)
    print(f"  verify             {timed('verify', RUN)}")
    print(f"  log                {timed('log', RUN)}")
    print(f"long: {SUBMISSIONS} submissions, {SUBMISSIONS * EPISODES} Episodes in {time.monotonic() - began:.1f} s")


try:
    main()
finally:
    subprocess.run(["chmod", "-R", "u+w", WORK], stderr=subprocess.DEVNULL)
    shutil.rmtree(WORK, ignore_errors=True)
