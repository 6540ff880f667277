"""Plays deaths and failures at the points where a Host writes, then goes on, and compares with an undisturbed Run.

    crash.py kill POINTS   SIGKILL before POINTS calls, spread over a whole Run; then `resume`, then compare
    crash.py fail FAULTS   a call fails once, in each way in which its like can fail (FAULTS of them, spread over all
                           calls and all ways): the Run ends with a typed fault or goes on, its record is sound, and once
                           the fault is gone `resume` comes to the undisturbed end
    crash.py full POINTS   from a point on every call that writes fails: the disk is full, or read-only

0 for all of them.
"""
import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import play

# The ways in which a call can fail, or be cut short.
WAYS = {
    "open": ["ENOSPC", "EIO", "EMFILE", "ENFILE", "EDQUOT", "EROFS", "EACCES", "EINTR"],
    "write": ["ENOSPC", "EIO", "EDQUOT", "EFBIG", "EINTR", "short"],
    "fsync": ["EIO", "ENOSPC", "EINTR"],
    "fdatasync": ["EIO", "ENOSPC", "EINTR"],
    "rename": ["EIO", "ENOSPC", "EROFS", "EACCES"],
    "mkdir": ["ENOSPC", "EIO", "EDQUOT", "EROFS", "EACCES"],
    "unlink": ["EIO", "EROFS", "EACCES"],
    "chmod": ["EIO", "EROFS", "EPERM"],
    "truncate": ["EIO", "EROFS"],
    "symlink": ["ENOSPC"],
    "bind": ["ENOSPC", "EACCES"],
    "boundary": [],
}


def new_place(name):
    """A directory of its own for a Run, so that all that it leaves shows."""
    place = os.path.join(play.WORK, name)
    os.mkdir(place)
    return place, os.path.join(place, "run")


def kill_at(point, wanted):
    place, run = new_place(f"kill-{point}")
    where = f"killed at point {point}"
    code, error, out = play.call(play.command(run), f"kill@{point}")
    if code == 0:
        outcome = "past the end"
    else:
        assert code == -9, f"{where}: exits {code}: {error} {out} {play.explain(run)}"
        outcome = play.go_on(run, where, wanted) if os.path.exists(run) else "not begun"
    play.remove(place)
    return outcome


def judge(run, where, code, error, out, wanted):
    """What is left by a Run one of whose calls failed."""
    assert code in (0, 1, 2, 4, 5), f"{where}: exits {code}: {error} {out}"  # 3: never the Benchmark's
    assert len(error.splitlines()) <= 1, f"{where}: {error}"
    assert (code == 0) == (error == "") or code == 1, f"{where}: exits {code}, and says: {error}"
    if code == 0:
        assert play.value(run) == wanted, f"{where}: went on to another end"
        play.sound(run, where)
        return "went on"
    if not os.path.exists(run):
        return "not begun"
    record = os.path.join(run, "run.json")
    if os.path.exists(record):
        json.loads(play.read(run, "run.json"))
        play.sound(run, where)
        return "typed end"
    return play.go_on(run, where, wanted)


def fail_at(fault, wanted):
    point, call, way = fault
    place, run = new_place(f"fail-{point}-{way}")
    where = f"{way} at point {point} ({call})"
    code, error, out = play.call(play.command(run), f"short@{point}" if way == "short" else f"errno={way}@{point}")
    outcome = judge(run, where, code, error, out, wanted)
    assert outcome != "not begun" or not os.listdir(place), f"{where}: left {os.listdir(place)}: {error}"
    play.remove(place)
    return outcome


def full_from(point, wanted):
    place, run = new_place(f"full-{point}")
    way = ("ENOSPC", "EROFS", "EIO")[point % 3]
    where = f"{way} from point {point} on"
    code, error, out = play.call(play.command(run), f"errno={way}@{point}+")
    outcome = judge(run, where, code, error, out, wanted)
    play.remove(place)
    return outcome


def read_points(log):
    """[(number, call)] of the process that writes the most: the Host."""
    by_process = {}
    with open(log) as file:
        for line in file:
            entry = json.loads(line)
            by_process.setdefault(entry["pid"], []).append((entry["point"], entry["call"]))
    return max(by_process.values(), key=len)


def spread(everything, count):
    """About `count` of them, evenly."""
    return [everything[i * len(everything) // count] for i in range(min(count, len(everything)))] if count else everything


def tell_coverage(chosen, everything):
    for call in sorted({fault[1] for fault in everything}):
        ways = sorted({fault[2] for fault in chosen if fault[1] == call})
        print(f"  {call}: {sum(f[1] == call for f in chosen)} of {sum(f[1] == call for f in everything)} faults; "
              f"{', '.join(ways)}")


def main():
    kind, count = sys.argv[1], int(sys.argv[2])
    _, log, wanted = play.undisturbed()
    points = read_points(log)
    everything = [number for number, _ in points]
    if kind == "fail":
        everything = [(number, call, way) for number, call in points for way in WAYS[call]]
        random.Random(7).shuffle(everything)
    chosen = spread(everything, count)
    player = {"kill": kill_at, "fail": fail_at, "full": full_from}[kind]
    outcomes, failed = {}, 0
    with ThreadPoolExecutor(int(os.environ.get("EPG_TEST_JOBS", "4"))) as pool:
        for future in [pool.submit(player, one, wanted) for one in chosen]:
            try:
                outcome = future.result()
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
            except (AssertionError, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
                failed += 1
                print(f"FAILED: {str(error)[:2500]}", flush=True)
    print(f"{kind}: {len(chosen)} of {len(everything)}: {outcomes}, {failed} failed")
    if kind == "fail":
        tell_coverage(chosen, everything)
    sys.exit(1 if failed or not outcomes else 0)


main()
