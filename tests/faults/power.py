"""Plays power cuts: what a Host wrote is laid down anew as a disk might hold it after the cut, without calls that were
not synced (recording.py tells which disks); then `verify`, `resume` and comparison.

    power.py STATES    about STATES different disks, spread over a whole Run; 0: all of them

What a Host has told anybody ("answer" in the log) must be there on every disk from then on: the events that it rests
on, and what they claim.
"""
import os
import sys

import play
import recording


def play_state(recorded, cut, variant, wanted):
    root = os.path.join(play.WORK, f"power-{cut}-{variant}")
    recording.lay(recorded.disk(recorded.choose(cut, variant)), root)
    where = f"call {cut} of {len(recorded.calls)}, {variant}"
    outcome = play.after_cut(os.path.join(root, "run"), where, recorded.promised(cut), wanted)
    play.remove(root)
    return outcome


def main():
    run, log, wanted = play.undisturbed()
    recorded = recording.of_run(log, os.path.dirname(run))
    everything = recorded.states()
    chosen = play.spread(everything, int(sys.argv[1]))
    play.play_all("power", [(play_state, recorded, *state, wanted) for state in chosen], len(everything))


main()
