"""Plays deaths and failures at the points where a Host writes, then goes on, and compares with an undisturbed Run.

    crash.py kill POINTS   SIGKILL before POINTS calls, spread over a whole Run; then `resume`, then compare
    crash.py fail FAULTS   a call fails once, in each way in which its like can fail (FAULTS of them, spread over all
                           calls and all ways): the Run ends with a typed fault or goes on, its record is sound, and once
                           the fault is gone `resume` comes to the undisturbed end
    crash.py term POINTS   SIGTERM before POINTS calls; the Host ends in good order, and `resume` comes to the same end
    crash.py full POINTS   from a point on every call that writes fails: the disk is full, or read-only

0 for all of them.
"""
import os
import random
import sys

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


def term_at(point, wanted):
    place, run = new_place(f"term-{point}")
    outcome = play.interrupt(play.command(run), run, point, f"SIGTERM at point {point}", wanted)
    play.remove(place)
    return outcome


def fail_at(fault, wanted):
    point, call, way = fault
    place, run = new_place(f"fail-{point}-{way}")
    where = f"{way} at point {point} ({call})"
    code, error, out = play.call(play.command(run), f"short@{point}" if way == "short" else f"errno={way}@{point}")
    outcome = play.judge(run, where, code, error, out, wanted)
    assert outcome != "not begun" or not os.listdir(place), f"{where}: left {os.listdir(place)}: {error}"
    play.remove(place)
    return outcome


def full_from(point, wanted):
    place, run = new_place(f"full-{point}")
    way = ("ENOSPC", "EROFS", "EIO")[point % 3]
    where = f"{way} from point {point} on"
    code, error, out = play.call(play.command(run), f"errno={way}@{point}+")
    outcome = play.judge(run, where, code, error, out, wanted)
    play.remove(place)
    return outcome


def tell_coverage(chosen, everything):
    for call in sorted({fault[1] for fault in everything}):
        ways = sorted({fault[2] for fault in chosen if fault[1] == call})
        print(f"  {call}: {sum(f[1] == call for f in chosen)} of {sum(f[1] == call for f in everything)} faults; "
              f"{', '.join(ways)}")


def main():
    kind, count = sys.argv[1], int(sys.argv[2])
    _, log, wanted = play.undisturbed()
    points = play.points(log)
    everything = [number for number, _ in points]
    if kind == "fail":
        everything = [(number, call, way) for number, call in points for way in WAYS[call]]
        random.Random(7).shuffle(everything)
    chosen = play.spread(everything, count)
    player = {"kill": kill_at, "fail": fail_at, "term": term_at, "full": full_from}[kind]
    if kind == "fail":
        tell_coverage(chosen, everything)
    play.play_all(kind, [(player, one, wanted) for one in chosen], len(everything))


main()
