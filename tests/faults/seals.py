"""Every file of a finished Run is altered, cut short, taken away, and in every directory one is added: `verify` names it.

    seals.py RUN [few]    a finished Run; it is copied, never changed. few: one alteration of each file, each time another
"""
import atexit
import os
import shutil
import stat
import subprocess
import sys
import tempfile

CLI = os.path.join(os.environ["EPG_BIN"], "evopolicygym")
# What no verification can vouch for, as docs/run-directory.md lists it.
UNSEALED = ("lock", "displaced/", "workspace/program/", "workspace/analysis/")
AGENTS_ROOT = "workspace/"  # the Agent may put files of its own here


def verify(run):
    done = subprocess.run([CLI, "verify", run], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def unsealed(path):
    return any(path == one or (one.endswith("/") and path.startswith(one)) for one in UNSEALED)


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


def alterations(size):
    """(what is done, how)"""
    for at in sorted({0, size // 3, size // 2, size - 1} & set(range(size))):
        yield f"byte {at} altered", lambda path, at=at: flip(path, at)
    if size > 0:
        yield "cut to half", lambda path: os.truncate(path, size // 2)
        yield "emptied", lambda path: os.truncate(path, 0)
    yield "one byte longer", lambda path: open(path, "ab").write(b"\n") and None
    yield "taken away", os.unlink


def named(path, said):
    """The path, or for an object of the git history what it is a part of."""
    return path in said or any(path.startswith(one) and one in said for one in ("history.git", "initial/program")) or (
        "/program/" in path and path[:path.index("/program/") + 8] in said) or (
        path.startswith("workspace/skills/") and "/".join(path.split("/")[:3]) in said)


def main():
    original, few = sys.argv[1], len(sys.argv) > 2
    work = tempfile.mkdtemp(prefix="epg-seals-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None)
    atexit.register(shutil.rmtree, work, True)
    copy = os.path.join(work, "run")
    shutil.copytree(original, copy, symlinks=True)
    subprocess.run(["chmod", "-R", "u+w", copy], check=True)
    code, said = verify(copy)
    assert code == 0 and "not sealed" not in said, f"the Run as it is: {said}"
    tried = failed = passed_over = files_seen = 0

    def expect(path, what):
        nonlocal tried, failed
        tried += 1
        code, said = verify(copy)
        if code != 1 or not named(path, said):
            failed += 1
            print(f"FAILED: {path}: {what}: exit code {code}: {said[:400]}")

    for directory, directories, files in os.walk(copy):
        directories.sort()
        for name in sorted(files):
            whole = os.path.join(directory, name)
            path = os.path.relpath(whole, copy)
            if unsealed(path):
                passed_over += 1
                continue
            with open(whole, "rb") as file:
                content = file.read()
            mode = stat.S_IMODE(os.lstat(whole).st_mode)
            each = list(alterations(len(content)))
            files_seen += 1
            for what, alter in [each[files_seen % len(each)]] if few else each:  # few: all kinds come about in turn
                alter(whole)
                expect(path, what)
                with open(whole, "wb") as file:
                    file.write(content)
                os.chmod(whole, mode)
            os.rename(whole, work + "/aside")
            os.symlink("/etc/passwd", whole)
            expect(path, "a link put in its place")
            os.unlink(whole)
            os.rename(work + "/aside", whole)
        for name in ("x.pyc",) if few else ("stray", ".hidden", "stray.json", "x.pyc"):
            whole = os.path.join(directory, name)
            path = os.path.relpath(whole, copy)
            if unsealed(path) or os.path.dirname(path) + "/" == AGENTS_ROOT:
                continue
            with open(whole, "w") as file:
                file.write("{}")
            expect(path, "added")
            os.unlink(whole)
    code, said = verify(copy)
    assert code == 0, f"put back as it was: {said}"
    print(f"seals: {tried} alterations, {failed} not told; {passed_over} unsealed files")
    sys.exit(1 if failed or tried < 100 else 0)


main()
