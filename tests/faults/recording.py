"""What a Host wrote, taken from the log of its writes (EPG_IO_FAULT=log=FILE), and the disks that may be left of it
when power is cut.

The disk is taken to be as forgetful as POSIX allows. The bytes of a file are safe when fsync or fdatasync of it came
after the write; a name (made, renamed, removed) when fsync of its directory came after; a mode with fsync of what has
it. Of what is not safe anything may be there and anything may not, in any order; a rename happens whole or not at all.
VARIANTS are the disks that are tried:

    none      nothing but what is safe
    all       everything: what a death leaves while the power stays on
    names     every name, but no bytes that are not safe
    bytes     all bytes, but no name that is not safe
    torn      everything, but the last write only half
    drawn-N   each call that is not safe with a probability of one half

A recording may go on from where another one was cut: `Recording.cut`.
"""
import base64
import hashlib
import json
import os
import random
import stat

DRAWS = 2
VARIANTS = ["none", "all", "names", "bytes", "torn"] + [f"drawn-{i}" for i in range(DRAWS)]
SYNCS = ("fsync", "fdatasync")
LEDGER = "run/events.jsonl"
ALWAYS = -1


class Recording:
    """Calls on inodes, and for each the index of the call that made it safe ("safe").

    An inode is a number of our own: the file system gives those of its own again."""

    def __init__(self):
        self.calls = []
        self.names = {0: {}}  # directory -> {name: inode}, as it is behind the last call
        self.kinds = {0: "dir"}
        self.answers = []  # before which calls somebody was told something
        self.said = b""  # what the ledger held when somebody was told something before all of these calls
        self.first = 0  # the call with which the process began that was recorded last

    # --- from a log ---

    def begin(self, root):
        """What is below `root` now, laid by `lay` if there is anything, is what this recording leaves."""
        self.root = root
        self.alive = {os.lstat(os.path.join(root, path)).st_ino: inode for path, inode in self.paths()}
        return self

    def take_log(self, log):
        """What has happened there since."""
        self.first = len(self.calls)
        with open(log) as file:
            for line in file:
                self.take(json.loads(line))
        self.answers.append(len(self.calls))  # the end is told, too
        self.find_syncs()

    def paths(self, directory=0, below=""):
        for name, inode in self.names[directory].items():
            yield below + name, inode
            if self.kinds[inode] == "dir":
                yield from self.paths(inode, f"{below}{name}/")

    def inside(self, path):
        return path == self.root or path.startswith(self.root + "/")

    def find(self, path):
        inode = 0
        for part in os.path.relpath(path, self.root).split("/"):
            if part != ".":
                inode = self.names.get(inode, {}).get(part)
        return inode

    def place(self, path):
        return self.find(os.path.dirname(path)), os.path.basename(path)

    def add(self, **call):
        self.calls.append(call)

    def make(self, entry, kind):
        directory, name = self.place(entry["path"])
        inode = len(self.kinds)
        self.kinds[inode] = kind
        self.alive[entry["inode"]] = inode
        self.names[directory][name] = inode
        if kind == "dir":
            self.names[inode] = {}
        self.add(do="name", directory=directory, name=name, inode=inode, also=None)
        self.add(do="mode", inode=inode, mode=entry["mode"])
        if kind == "link":
            self.add(do="target", inode=inode, target=entry["target"])

    def take(self, entry):
        call, path = entry["call"], entry.get("path", "")
        if call == "boundary":
            self.answers.append(len(self.calls))
            return
        if not self.inside(path) or call == "bind":
            return
        inode = 0 if path == self.root else self.alive.get(entry.get("inode"))
        if call == "open":
            directory, name = self.place(path)
            if inode is None or self.names[directory].get(name) != inode:
                self.make(entry, "file")
            elif entry["truncate"]:
                self.add(do="cut", inode=inode, size=0)
        elif call in ("mkdir", "symlink"):
            self.make(entry, {"mkdir": "dir", "symlink": "link"}[call])
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
        next_sync, next_fsync = {}, {}
        for at in range(len(self.calls) - 1, -1, -1):
            call = self.calls[at]
            if call.get("safe") == ALWAYS:
                continue
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

    # --- disks ---

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

    def tree(self, kept):
        """What calls leave: names, contents and modes by inode."""
        names, files, modes = {0: {}}, {}, {}
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
            elif do != "sync":
                data = files.setdefault(inode, bytearray())
                end = call["size"] if do == "cut" else call["offset"]
                if do == "cut":
                    del data[end:]
                if len(data) < end:
                    data.extend(bytes(end - len(data)))
                if do == "write":
                    data[end:end + len(call["data"])] = call["data"]
        return names, files, modes

    def disk(self, kept):
        """{path: (kind, mode, content)}"""
        names, files, modes = self.tree(kept)
        found = {}
        self.list(names, files, modes, 0, "", found)
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

    def promised(self, cut):
        """What the ledger held when somebody was last told something before `cut`."""
        answered = max((at for at in self.answers if at <= cut), default=None)
        if answered is None:
            return self.said
        disk = self.disk(self.choose(answered, "all"))
        return bytes(disk.get(LEDGER, ("file", 0, b""))[2])

    def states(self):
        """Every different disk before and after the syncs of the process that was recorded last: [(cut, variant)]."""
        seen, found = set(), []
        syncs = [at for at in range(self.first, len(self.calls)) if self.calls[at]["do"] == "sync"]
        for cut in sorted({cut for at in syncs for cut in (at, at + 1)} | {len(self.calls)}):
            said = self.promised(cut)
            for variant in VARIANTS:
                disk = self.disk(self.choose(cut, variant))
                key = hashlib.sha256(repr((sorted(disk.items()), said)).encode()).digest()
                if key not in seen:
                    seen.add(key)
                    found.append((cut, variant))
        return found

    def cut(self, cut, variant):
        """A recording that begins with the disk that is left, as `lay` lays it. After a power cut all that is there is
        safe. After a death nothing has become safe by that: the next Host may rest on it, and power may be cut then."""
        next_one = Recording()
        next_one.kinds = dict(self.kinds)
        next_one.said = self.promised(cut)
        if variant == "all":
            next_one.calls = [dict(call) for call in self.calls[:cut]]
        else:
            next_one.calls = [dict(call, safe=ALWAYS) for call in self.choose(cut, variant)]
        names, _, _ = self.tree(next_one.calls)
        next_one.names = {inode: names.get(inode, {}) for inode, kind in self.kinds.items() if kind == "dir"}
        return next_one


def of_run(log, root):
    """The recording of a whole Run in `root`, which its end is compared with."""
    recorded = Recording().begin(root)
    recorded.take_log(log)
    check(recorded, root)
    return recorded


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


def check(recording, root):
    """The log is complete: played to its end it gives the directory that the Run left, but for what its Agent wrote."""
    disk = recording.disk(recording.choose(len(recording.calls), "all"))
    for path in ("run/run.json", LEDGER):
        safe = recording.disk(recording.choose(len(recording.calls), "none"))
        assert safe.get(path) == disk[path], f"the Host has ended, and {path} is not safe"
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
