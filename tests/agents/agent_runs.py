"""What the tests of whole Runs with agent CLIs share: starting a Run, reading what it left, and the checks that hold for every
Run: nothing of it goes on living, nothing lies outside it, and no key stands in what it keeps."""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ["EPG_SOURCE"])
BUILD = pathlib.Path(os.environ["EPG_BIN"])
HERE = SOURCE / "tests" / "agents"
LIMIT = 250

passed = []
failed = []
skipped = []


class Failure(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failure(text)


def expect_equal(got, wanted, what):
    expect(got == wanted, "%s: got %r, not %r" % (what, got, wanted))


class Place:
    """A temporary directory with a home and a TMPDIR of its own, for one Run."""

    def __init__(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="epg-agents-"))
        self.home = self.root / "home"
        self.temporary = self.root / "tmp"
        self.state = self.root / "state"
        self.run = self.root / "run"
        for directory in (self.home, self.temporary, self.state):
            directory.mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        subprocess.run(["chmod", "-R", "u+rwX", str(self.root)], check=False)
        shutil.rmtree(self.root, ignore_errors=True)


class Result:
    """One Run's end."""

    def __init__(self, place, code, out, err):
        self.place, self.code, self.out, self.err = place, code, out, err

    def json(self, name):
        return json.loads((self.place.run / name).read_text("utf-8"))

    def record(self):
        expect((self.place.run / "run.json").exists(), "no run.json: exit %d\n%s\n%s" % (self.code, self.out, self.err))
        return self.json("run.json")

    def transcript(self):
        lines = (self.place.run / "agent" / "transcript.jsonl").read_bytes().decode("utf-8").splitlines()
        return [json.loads(line) for line in lines]


def run_command(place, arguments):
    return [str(BUILD / "evopolicygym"), "run", str(place.run), "--benchmark", "cartpole", "--program",
            str(SOURCE / "programs/examples/cartpole"),
            *([] if "--execution" in arguments else ["--execution", "process", "--allow-unsafe-process"]), "--episode-budget", "20", "--validation-episodes", "4", "--max-candidates", "1", "--assessment-episodes", "4",
            "--progress", "plain", "--json", *arguments]


def environment_of(place, secrets=None, variables=None, path=None):
    return {"PATH": os.environ["PATH"] if path is None else path + ":" + os.environ["PATH"], "HOME": str(place.home),
                   "TMPDIR": str(place.temporary), "LANG": "C.UTF-8", **(secrets or {}), **(variables or {})}


def run_agent(place, arguments, secrets=None, variables=None, path=None):
    """evopolicygym run with a small budget on CartPole; `arguments` choose the agent."""
    done = subprocess.run(run_command(place, arguments), env=environment_of(place, secrets, variables, path),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT, check=False,
                          cwd=place.root)
    return Result(place, done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def processes_of(place):
    """Processes that work in the Run or were started for it."""
    mark = str(place.run).encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            parts = [(entry / "environ").read_bytes(), os.readlink(entry / "cwd").encode(), (entry / "cmdline").read_bytes()]
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z" and any(mark in part for part in parts):
            found.append(entry.name + " " + parts[2].replace(b"\0", b" ").decode("utf-8", "replace")[:200])
    return found


def check_nothing_left(place):
    deadline = time.monotonic() + 20
    while processes_of(place) and time.monotonic() < deadline:
        time.sleep(0.1)
    expect_equal(processes_of(place), [], "processes left by the Run")
    for directory in (place.home, place.temporary):
        expect_equal(sorted(os.listdir(directory)), [], "files left in %s" % directory.name)
    expect(not (place.run / "agent" / "home").exists(), "the private home is still there")


def check_no_secret(place, secrets):
    forms = []
    for value in secrets.values():
        forms += [value.encode(), base64.b64encode(value.encode()).rstrip(b"=")[:-1]]
    for path in place.run.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            for form in forms:
                expect(form not in content, "a key stands in %s" % path.relative_to(place.run))


def case(name, function, *arguments):
    began = time.monotonic()
    try:
        with Place() as place:
            function(place, *arguments)
        passed.append(name)
        print("ok   %s (%.1f s)" % (name, time.monotonic() - began), flush=True)
    except (Failure, subprocess.TimeoutExpired, KeyError, OSError, ValueError) as fault:
        failed.append(name)
        print("FAIL %s: %s: %s" % (name, type(fault).__name__, fault), flush=True)


def skip(name, why):
    skipped.append(name)
    print("skip %s: %s" % (name, why), flush=True)


def conclude():
    print("%d passed, %d failed, %d skipped" % (len(passed), len(failed), len(skipped)))
    if failed:
        sys.exit(1)
    sys.exit(0 if passed else 77)
