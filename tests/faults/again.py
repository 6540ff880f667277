"""Plays second deaths: a Run is cut, `resume` heals it and is cut itself; then `verify`, `resume` and comparison.

    again.py SHARE    about SHARE second cuts of each kind, spread over all places of the first; 0: all of them

The first cut comes at the places where a Run's life turns: before each of its events (the first two of each kind) and
before each rename of a publication. It is a death, which leaves everything, or a power cut. From what it left `resume`
is recorded once; then, on a copy each,

    kill     SIGKILL before each of its calls that write
    power    power is cut around each of its syncs; what the first Host wrote and nobody synced may be lost only now
    fail     one of its calls fails
    term     SIGTERM comes before one of its calls
    chain    eight Hosts die or are interrupted one after the other, each at a place drawn at random
"""
import os
import random
import re
import sys

import play
import recording

CHAIN, CHAINS = 8, 6
FAILURES = ("ENOSPC", "EIO", "EROFS", "EMFILE")


def places(recorded):
    """[(what comes next, cut)]"""
    found, counts = [], {}
    for cut, call in enumerate(recorded.calls):
        what = None
        if call["do"] == "write" and b'"schema":"evopolicygym/run-event' in call["data"]:
            event = re.search(rb'"event":"([a-z_]+)"', call["data"])
            what = event and event.group(1).decode()
        elif call["do"] == "name" and call["also"] and re.fullmatch(r"submission-[0-9]+|run\.json", call["name"]):
            what = "the rename to " + call["name"]
        if what is not None and recorded.promised(cut) and counts.get(what, 0) < 2:
            counts[what] = counts.get(what, 0) + 1
            found.append((what, cut))
    return found


class Base:
    """What a first cut left, and the recording of the `resume` that healed it."""

    def __init__(self, number, first, what, cut, variant, wanted):
        self.where = f"cut before {what} ({variant})"
        self.wanted = wanted
        self.number = number
        self.recorded = first.cut(cut, variant)
        self.disk = self.recorded.disk(self.recorded.choose(len(self.recorded.calls), "all"))
        root, run = self.lay("first")
        self.recorded.begin(root)
        log = os.path.join(play.WORK, f"log-{number}")
        code, error, out = play.call(play.RESUME + [run], f"log={log}")
        assert code == 0, f"{self.where}: resume exits {code}: {error} {out} {play.explain(run)}"
        self.recorded.take_log(log)
        recording.check(self.recorded, root)
        play.go_on(run, self.where, wanted)
        self.points = play.points(log)
        os.unlink(log)
        play.remove(root)

    def lay(self, name):
        root = os.path.join(play.WORK, f"again-{self.number}-{name}")
        recording.lay(self.disk, root)
        return root, os.path.join(root, "run")

    def kill(self, point):
        root, run = self.lay(f"kill-{point}")
        where = f"{self.where}, resume killed at point {point}"
        code, error, out = play.call(play.RESUME + [run], f"kill@{point}")
        assert code in (0, -9), f"{where}: exits {code}: {error} {out} {play.explain(run)}"
        outcome = play.after_cut(run, where, self.recorded.said, self.wanted)
        play.remove(root)
        return outcome if code != 0 else "past the end"

    def power(self, cut, variant):
        root = os.path.join(play.WORK, f"again-{self.number}-{cut}-{variant}")
        where = f"{self.where}, resume's power cut at {cut - self.recorded.first}, {variant}"
        recording.lay(self.recorded.disk(self.recorded.choose(cut, variant)), root)
        outcome = play.after_cut(os.path.join(root, "run"), where, self.recorded.promised(cut), self.wanted)
        play.remove(root)
        return outcome

    def fail(self, point):
        way = FAILURES[point % len(FAILURES)]
        root, run = self.lay(f"fail-{point}")
        where = f"{self.where}, {way} at point {point} of resume"
        code, error, out = play.call(play.RESUME + [run], f"errno={way}@{point}")
        outcome = play.judge(run, where, code, error, out, self.wanted)
        play.remove(root)
        return outcome

    def term(self, point):
        root, run = self.lay(f"term-{point}")
        where = f"{self.where}, resume got SIGTERM at point {point}"
        outcome = play.interrupt(play.RESUME + [run], run, point, where, self.wanted)
        play.remove(root)
        return outcome

    def chain(self, number):
        root, run = self.lay(f"chain-{number}")
        draw = random.Random(number)
        points = []
        for _ in range(CHAIN):
            points.append(f"{draw.choice(('kill', 'term'))}@{draw.randrange(1, len(self.points) + 1)}")
            where = f"{self.where}, then {points}"
            code, error, out = play.call(play.RESUME + [run], points[-1])
            good = code in (0, -9, 130, -15) or (code == 2 and "is complete" in error)
            assert good, f"{where}: exits {code}: {error} {out}"
            play.healthy(run, where, self.recorded.said)
        outcome = play.go_on(run, where, self.wanted)
        play.remove(root)
        return outcome


def main():
    share = int(sys.argv[1])
    run, log, wanted = play.undisturbed()
    first = recording.of_run(log, os.path.dirname(run))
    variants = [v for v in recording.VARIANTS if v != "all"]
    cuts = [(what, cut, variant) for i, (what, cut) in enumerate(places(first))
            for variant in ("all", variants[i % len(variants)])]
    # A share looks at every place in its turn, so that it needs few recordings of each.
    chosen = play.spread(cuts, max(4, share // 4) if share else 0)
    bases = play.each([(Base, i, first, *cut, wanted) for i, cut in enumerate(chosen)])
    kinds = {"kill": [(base.kill, point) for base in bases for point, _ in base.points],
             "power": [(base.power, *state) for base in bases for state in base.recorded.states()],
             "fail": [(base.fail, point) for base in bases for point, call in base.points if call != "boundary"],
             "term": [(base.term, point) for base in bases for point, _ in base.points],
             "chain": [(base.chain, i) for base in bases for i in range(CHAINS)]}
    print(f"{len(chosen)} of {len(cuts)} first cuts")
    plays = []
    for kind, everything in kinds.items():
        some = play.spread(everything, share if kind != "chain" or share == 0 else max(1, share // CHAIN))
        print(f"  {kind}: {len(some)} of {len(everything)}")
        plays += some
    play.play_all("again", plays, sum(map(len, kinds.values())))


main()
