"""Plays power cuts: what a Host wrote is taken from the log of its writes (EPG_IO_FAULT=log=FILE) and laid down anew as a
disk might hold it after the cut, without calls that were not synced; then `verify`, `resume` and comparison.

    power.py STATES    about STATES different disks, spread over a whole Run; 0: all of them

The disk is taken to be as forgetful as POSIX allows. The bytes of a file are safe when fsync or fdatasync of it came
after the write; a name (made, renamed, removed) when fsync of its directory came after; a mode with fsync of what has
it. Of what is not safe anything may be there and anything may not, in any order; a rename happens whole or not at all.
Before and after each sync these disks are tried:

    none      nothing but what is safe
    all       everything
    names     every name, but no bytes that are not safe
    bytes     all bytes, but no name that is not safe
    torn      everything, but the last write only half
    drawn-N   each call that is not safe with a probability of one half

What a Host has told anybody ("answer" in the log) must be there on every disk from then on: the events that it rests
on, and what they claim.
"""
import base64
import hashlib
import json
import os
import random
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import play

DRAWS = 2
VARIANTS = ["none", "all", "names", "bytes", "torn"] + [f"drawn-{i}" for i in range(DRAWS)]
SYNCS = ("fsync", "fdatasync")


class Recording:
    """The log as a list of calls on inodes, and for each the index of the call that made it safe."""

    def __init__(self, log, root):
        self.root = root
        self.names = {"/": {}}  # directory -> {name: inode}, as it is while the log is read
        self.root_inode = "/"
        self.calls = []
        self.kinds = {"/": "dir"}
        self.answers = []
        with open(log) as file:
            for line in file:
                self.take(json.loads(line))
        self.find_syncs()

    def inside(self, path):
        return path == self.root or path.startswith(self.root + "/")

    def find(self, path):
        inode = self.root_inode
        for part in os.path.relpath(path, self.root).split("/"):
            if part != ".":
                inode = self.names.get(inode, {}).get(part)
        return inode

    def place(self, path):
        return self.find(os.path.dirname(path)), os.path.basename(path)

    def add(self, **call):
        self.calls.append(call)

    def take(self, entry):
        call, path = entry["call"], entry.get("path", "")
        inode = entry.get("inode")
        if call == "boundary":
            self.answers.append(len(self.calls))
            return
        if inode is not None and path == self.root:
            inode = self.root_inode
        if not self.inside(path) or call == "bind":
            return
        if call in ("open", "mkdir", "symlink"):
            directory, name = self.place(path)
            if call != "open" or self.names[directory].get(name) != inode:
                self.kinds[inode] = {"open": "file", "mkdir": "dir", "symlink": "link"}[call]
                self.names[directory][name] = inode
                if call == "mkdir":
                    self.names[inode] = {}
                self.add(do="name", directory=directory, name=name, inode=inode, also=None)
                self.add(do="mode", inode=inode, mode=entry["mode"])
                if call == "symlink":
                    self.add(do="target", inode=inode, target=entry["target"])
            elif entry["truncate"]:
                self.add(do="cut", inode=inode, size=0)
        elif call == "write":
            self.add(do="write", inode=inode, offset=entry["offset"], data=base64.b64decode(entry["data"]))
        elif call == "truncate":
            self.add(do="cut", inode=inode, size=entry["size"])
        elif call == "chmod":
            self.add(do="mode", inode=inode, mode=entry["mode"])
        elif call == "rename":
            (before, old), (after, new) = self.place(path), self.place(entry["to"])
            moved = self.names[before].pop(old)
            self.names[after][new] = moved
            self.add(do="name", directory=after, name=new, inode=moved, also=(before, old))
        elif call == "unlink":
            directory, name = self.place(path)
            if directory is not None and self.names[directory].pop(name, None) is not None:
                self.add(do="unname", directory=directory, name=name)
        elif call in SYNCS:
            self.add(do="sync", inode=inode, whole=call == "fsync")
        else:
            raise ValueError(f"a call of no known kind: {call}")

    def find_syncs(self):
        """Each call gets "safe": the index of the sync that made it so, or infinity."""
        next_sync, next_fsync = {}, {}
        for at in range(len(self.calls) - 1, -1, -1):
            call = self.calls[at]
            if call["do"] == "sync":
                next_sync[call["inode"]] = at
                if call["whole"]:
                    next_fsync[call["inode"]] = at
            elif call["do"] in ("write", "cut", "target"):
                call["safe"] = next_sync.get(call["inode"], float("inf"))
            elif call["do"] == "mode":
                call["safe"] = next_fsync.get(call["inode"], float("inf"))
            else:
                directories = [call["directory"]] + ([call["also"][0]] if call.get("also") else [])
                call["safe"] = min(next_fsync.get(one, float("inf")) for one in directories)

    def choose(self, cut, variant):
        """The calls before `cut` that the disk holds."""
        draw = random.Random(f"{cut} {variant}")
        kept = []
        last_write = max((i for i in range(cut) if self.calls[i]["do"] == "write"), default=-1)
        for at in range(cut):
            call = self.calls[at]
            if call["do"] == "sync":
                continue
            is_name = call["do"] in ("name", "unname")
            if call["safe"] >= cut:
                if variant == "torn" and at == last_write:
                    call = dict(call, data=call["data"][:len(call["data"]) // 2])
                elif not {"none": False, "all": True, "torn": True, "names": is_name,
                          "bytes": not is_name}.get(variant, draw.random() < 0.5):
                    continue
            kept.append(call)
        return kept

    def disk(self, kept):
        """What calls leave: {path: (kind, mode, content)}."""
        names, files, modes = {self.root_inode: {}}, {}, {}
        for call in kept:
            do, inode = call["do"], call.get("inode")
            if do == "name":
                if call["also"]:
                    before = names.setdefault(call["also"][0], {})
                    if before.get(call["also"][1]) == inode:
                        del before[call["also"][1]]
                names.setdefault(call["directory"], {})[call["name"]] = inode
            elif do == "unname":
                names.setdefault(call["directory"], {}).pop(call["name"], None)
            elif do == "mode":
                modes[inode] = call["mode"]
            elif do == "target":
                files[inode] = call["target"]
            else:
                data = files.setdefault(inode, bytearray())
                end = call["size"] if do == "cut" else call["offset"]
                if do == "cut":
                    del data[end:]
                if len(data) < end:
                    data.extend(bytes(end - len(data)))
                if do == "write":
                    data[end:end + len(call["data"])] = call["data"]
        found = {}
        self.list(names, files, modes, self.root_inode, "", found)
        return found

    def list(self, names, files, modes, directory, path, found):
        for name, inode in sorted(names.get(directory, {}).items()):
            below = f"{path}{name}"
            kind = self.kinds[inode]
            if kind == "dir":
                found[below] = ("dir", modes.get(inode, 0o700), b"")
                self.list(names, files, modes, inode, below + "/", found)
            else:
                empty = "" if kind == "link" else b""
                found[below] = (kind, modes.get(inode, 0o600), files.get(inode, empty))


def lay(disk, root):
    os.mkdir(root)
    for path, (kind, mode, content) in disk.items():
        whole = os.path.join(root, path)
        if kind == "dir":
            os.mkdir(whole)
        elif kind == "link":
            os.symlink(content, whole)
        else:
            with open(whole, "wb") as file:
                file.write(content)
            os.chmod(whole, mode)
    for path, (kind, mode, _) in reversed(disk.items()):
        if kind == "dir":
            os.chmod(os.path.join(root, path), mode)


def check_recording(recording, root):
    """The log is complete: played to its end it gives the directory that the Run left, but for what its Agent wrote."""
    disk = recording.disk(recording.choose(len(recording.calls), "all"))
    for directory, directories, names in os.walk(root):
        for name in names + directories:
            whole = os.path.join(directory, name)
            path = os.path.relpath(whole, root)
            if path == "run/workspace/program/policy.py":
                continue
            assert path in disk, f"{path} was written past the seam"
            kind, mode, content = disk.pop(path)
            info = os.lstat(whole)
            assert kind == ("dir" if stat.S_ISDIR(info.st_mode) else "file"), f"{path} is no {kind}"
            assert mode == stat.S_IMODE(info.st_mode), f"{path}: mode {mode:o} in the log, {info.st_mode:o} there"
            if kind == "file":
                with open(whole, "rb") as file:
                    assert file.read() == bytes(content), f"{path} is not as the log says"
    disk.pop("run/workspace/program/policy.py", None)
    assert not disk, f"in the log, and not there: {sorted(disk)}"


def promised(recording, cut):
    """What the ledger held when somebody was last told something before `cut`."""
    answered = max((at for at in recording.answers if at <= cut), default=0)
    disk = recording.disk(recording.choose(answered, "all")) if answered else {}
    return bytes(disk.get("run/events.jsonl", ("file", 0, b""))[2])


def states(recording):
    """Every different disk, as (where, disk, what it must hold)."""
    seen = set()
    for at, call in enumerate(recording.calls):
        if call["do"] != "sync":
            continue
        for cut in (at, at + 1):
            for variant in VARIANTS:
                disk = recording.disk(recording.choose(cut, variant))
                said = promised(recording, cut)
                key = hashlib.sha256(repr((sorted(disk.items()), said)).encode()).digest()
                if key not in seen:
                    seen.add(key)
                    yield f"call {cut} of {len(recording.calls)}, {variant}", disk, said


def play_state(number, where, disk, said, wanted):
    root = os.path.join(play.WORK, f"power-{number}")
    run = os.path.join(root, "run")
    lay(disk, root)
    ledger = bytes(disk.get("run/events.jsonl", ("file", 0, b""))[2])
    assert ledger.startswith(said), f"{where}: somebody was told what the ledger does not hold any more"
    if not os.path.exists(run):
        assert not said, f"{where}: the Run is gone"
        outcome = "not begun"
    else:
        code, error, out = play.call([play.CLI, "verify", run])
        # Between the last event and run.json nobody can tell a cut from a run.json that was taken away.
        ended = code == 1 and len(out.splitlines()) == 2 and out.startswith("run.json: is missing")
        assert code == 0 or ended or (code == 2 and not said), f"{where}: verify exits {code}: {error} {out}"
        outcome = play.go_on(run, where, wanted)
        assert outcome == "resumed" or not said, f"{where}: {outcome}"
    play.remove(root)
    return outcome


def main():
    count = int(sys.argv[1])
    run, log, wanted = play.undisturbed()
    recording = Recording(log, os.path.dirname(run))
    check_recording(recording, os.path.dirname(run))
    everything = list(states(recording))
    step = max(1, len(everything) // count) if count > 0 else 1
    chosen = everything[::step]
    outcomes, failed = {}, 0
    with ThreadPoolExecutor(int(os.environ.get("EPG_TEST_JOBS", "4"))) as pool:
        for future in [pool.submit(play_state, i, *state, wanted) for i, state in enumerate(chosen)]:
            try:
                outcome = future.result()
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
            except (AssertionError, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
                failed += 1
                print(f"FAILED: {str(error)[:2500]}", flush=True)
    print(f"power: {len(chosen)} of {len(everything)} disks: {outcomes}, {failed} failed")
    sys.exit(1 if failed or outcomes.get("resumed", 0) == 0 else 0)


main()
