"""An executable that speaks the frames by hand, and breaks one thing: cmd:python3 raw.py WHAT."""

import os
import struct
import sys

WHAT = sys.argv[1] if len(sys.argv) > 1 else "nothing"


def counted(data):
    return struct.pack(">Q", len(data)) + data


def text(value):
    return b"S" + counted(value.encode())


def integer(value):
    return b"I" + counted(str(value).encode())


def mapping(**items):
    parts = [counted(key.encode()) + items[key] for key in sorted(items)]
    return b"M" + struct.pack(">Q", len(parts)) + b"".join(parts)


def listing(*items):
    return b"L" + struct.pack(">Q", len(items)) + b"".join(items)


def number(value):
    return b"F" + struct.pack(">d", value)


def deep(levels):
    return b"L" + struct.pack(">Q", 1) + deep(levels - 1) if levels else b"N"


def read(size):
    data = b""
    while len(data) < size:
        more = os.read(3, size - len(data))
        if not more:
            sys.exit(0)
        data += more
    return data


def write(data):
    while data:
        data = data[os.write(4, data) :]


def hear():
    frame = read(struct.unpack(">I", read(4))[0])
    return chr(frame[0]), frame[1:5], frame[5:]


EMPTY_MAP = mapping()
SPEC = dict(
    action_space=mapping(type=text("int"), minimum=integer(0), maximum=integer(3)),
    description=text("Raw."),
    environment_parameters=EMPTY_MAP,
    id=text("raw"),
    max_episode_steps=integer(2),
    metadata=EMPTY_MAP,
    observation_space=EMPTY_MAP,
    primary_metric=text("score"),
    score_direction=text("maximize"),
)
OBSERVATIONS = {
    "nan": b"F\x7f\xf8\0\0\0\0\0\0",
    "deep": deep(40),
    "large": b"Y" + counted(bytes(5 << 20)),
    "junk": b"junk",
    "plus": b"I" + counted(b"+1"),
    "keys": b"M" + struct.pack(">Q", 2) + counted(b"b") + b"N" + counted(b"a") + b"N",
    "tail": b"NN",
    "empty": b"",
    "utf8": b"S" + counted(b"\xff"),
}
ARTIFACT = dict(content=b"Y" + counted(b"x"), media_type=text("text/plain"), name=text("a"), retention=text("bulk"))
CALLS = {"S": "spec", "E": "episodes", "O": "open", "R": "reset", "A": "step", "C": "close", "F": "feedback"}
steps = 0


def trip(kind):
    if kind == "raise":
        raise RuntimeError("told to raise")
    if kind == "kill":
        os.kill(os.getpid(), 9)
    if kind == "hang":
        import time

        while True:
            time.sleep(1000)
    if kind == "print":
        print("\0\0\0\5x0000" * 3, flush=True)
    if kind == "spawn":
        import subprocess

        subprocess.Popen(["sleep", "31573"])
        subprocess.run(["sh", "-c", "setsid sleep 31573 >/dev/null 2>&1 &"], check=True)


while True:
    question, sequence, body = hear()

    def tell(letter, body=b""):
        write(struct.pack(">I", 5 + len(body)) + letter.encode() + sequence + body)

    kind, _, where = WHAT.partition("-")
    if where == CALLS.get(question):
        trip(kind)
    bad = OBSERVATIONS.get(kind) if where == {"R": "reset", "A": "step"}.get(question) else None
    if question == "S":
        spec = dict(SPEC)
        if kind == "spec":
            spec = {
                "missing": {key: spec[key] for key in spec if key != "metadata"},
                "extra": dict(spec, more=b"N"),
                "type": dict(spec, max_episode_steps=number(2.0)),
                "zero": dict(spec, max_episode_steps=integer(0)),
                "direction": dict(spec, score_direction=text("up")),
                "map": dict(spec, metadata=listing()),
                "id": dict(spec, id=text("")),
            }[where]
        tell("s", b"N" if WHAT == "nospec" else b"" if WHAT == "emptyspec" else mapping(**spec))
    elif question == "E":
        episode = mapping(environment_seed=integer(-1 if WHAT == "seed" else 5), scenario=b"N")
        if WHAT == "flood":
            while True:
                tell("e", listing(*[episode] * 100))
        tell("e", {"list": mapping(), "item": listing(integer(1)), "other": b""}.get(WHAT, listing(episode)))
        tell("d" if WHAT != "end" else "o")
    elif question == "O":
        steps = 0
        tell("i" if WHAT == "refused-open" else "o")
    elif question == "R":
        tell("r", integer(0) if bad is None else bad)
        if WHAT == "early":
            tell("a", mapping())
    elif question == "A":
        steps += 1
        if WHAT == "partial":
            write(struct.pack(">I", 100) + b"a" + sequence)
            sys.exit(4)
        step = dict(
            metrics=b"N",
            observation=integer(steps) if bad is None else bad,
            reward=integer(1) if WHAT == "reward" else OBSERVATIONS["nan"] if WHAT == "nanreward" else number(1.0),
            terminated=b"B1" if steps == 2 and WHAT != "never" else b"B0",
            truncated=b"N" if WHAT == "truncated" else b"B0",
        )
        if WHAT == "metrics":
            del step["metrics"]
        tell("z" if WHAT == "letter" else "a", mapping(**step))
    elif question == "C":
        tell("c")
    elif question == "F":
        if WHAT == "steps-first":
            tell("t", integer(1))
        tell("n")
        hear()
        tell("t", integer(0 if WHAT == "steps-none" else 1))
        assert hear()[2][:9] == b"L" + struct.pack(">Q", 1)
        artifact = dict(ARTIFACT)
        if kind == "artifact":
            artifact[where] = {"name": text("../up"), "content": text("x"), "retention": text("ever")}[where]
        for _ in range(1100 if WHAT == "many" else 1):
            tell("m", mapping(**artifact))
        if WHAT == "twice":
            tell("m", mapping(**artifact))
        score = {"score": integer(1), "nanscore": OBSERVATIONS["nan"]}.get(WHAT, number(1.0))
        tell("f", b"N" if WHAT == "result" else mapping(score=score, content=b"N"))
    elif WHAT == "baseline-outside":
        tell("p", mapping(path=text("../x"), content=b"Y" + counted(b"")))
        tell("d")
    elif WHAT == "baseline-empty":
        tell("d")
    elif WHAT == "baseline-file":
        tell("p", mapping(path=text("policy.py")))
    else:
        tell("p", mapping(path=text("z/y.py"), content=b"Y" + counted(b"1")))
        tell("p", mapping(path=text("policy.py"), content=b"Y" + counted(b"2")))
        tell("d")
