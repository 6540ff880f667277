"""The process of a Python Benchmark: speaks docs/benchmark-protocol.md on descriptors 3 and 4 for an installed package.

    runner.py MODULE FACTORY [KEY=VALUE...]

How it works. The package is imported and its factory called at the first question, so that what goes wrong there is
told as any other fault. Each question gets its answer, or a fault with what was raised; the traceback goes to stderr.
This file's directory stands first on sys.path: `evopolicygym` is ours, whatever else is installed. The working
directory stands last. The process ends when the channel does.
"""

import os
import sys

sys.path.append(os.getcwd())

from evopolicygym import _values
from evopolicygym._calling import calling
from evopolicygym._codec import encode
from evopolicygym._values import orders_of, private_value, public_bytes, trusted_bytes, value_of, with_orders
from evopolicygym.authoring import BenchmarkSpec, EpisodeSpec, Feedback, InvalidAction, Step

RECEIVE, SEND = 3, 4
READ_SIZE = 8192  # most questions are small, and room for more costs time in every one of them
HEAD_SIZE = 9
TEXT_LIMIT = 600
PROTOCOL = "evopolicygym/benchmark/v1"
PLAN_PIECE = 256
STEP = ord("A")


class Ended(Exception):
    """The Host closed the channel."""


class Channel:
    def __init__(self):
        self.sequence = b"\0\0\0\0"
        self.left = b""

    def receive(self):
        """The next frame's type and body; its sequence number is that of all answers from now on."""
        data = self.left or os.read(RECEIVE, READ_SIZE)
        if len(data) < 4 or len(data) != 4 + int.from_bytes(data[:4], "big"):
            data = self.whole(bytearray(data))
        self.sequence = data[5:HEAD_SIZE]
        return data[4], data[HEAD_SIZE:]

    def whole(self, data):
        while len(data) < HEAD_SIZE or len(data) < 4 + int.from_bytes(data[:4], "big"):
            more = os.read(RECEIVE, 65536)
            if not more:
                raise Ended
            data += more
        end = 4 + int.from_bytes(data[:4], "big")
        self.left = bytes(data[end:])
        return bytes(data[:end])

    def send(self, kind, body=b""):
        frame = (len(body) + 5).to_bytes(4, "big") + kind + self.sequence + body
        sent = os.write(SEND, frame)
        while sent < len(frame):
            frame = frame[sent:]
            sent = os.write(SEND, frame)

    def ask(self, kind, value=None):
        """During Feedback the Host answers us."""
        self.send(kind, encode(value))
        return value_of(self.receive()[1])


# --- The package ---


def read_parameter(text, annotation):
    """JSON where it is some, else the text itself; always the text where the factory wants a str."""
    import json

    if annotation in (str, "str"):
        return text

    def no_constant(name):
        raise ValueError(name)

    try:
        return json.loads(text, parse_constant=no_constant)
    except ValueError:
        return text


def parameters_of(factory, words):
    import inspect

    try:
        annotations = {name: entry.annotation for name, entry in inspect.signature(factory).parameters.items()}
    except (TypeError, ValueError):
        annotations = {}
    named = {}
    for word in words:
        name, _, text = word.partition("=")
        if name in named:
            raise ValueError("the parameter %s is given twice" % name)
        named[name] = read_parameter(text, annotations.get(name))
    return named


def attribute(module, path):
    for name in path.split("."):
        module = getattr(module, name)
    return module


def make_benchmark(module, factory, words):
    import importlib

    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or (module + ".").find(error.name + ".") != 0:
            raise  # something that the package needs
        raise ModuleNotFoundError(
            "No module named %r for %s: install it there, or name another interpreter with --benchmark-python"
            % (error.name, sys.executable)
        ) from None
    made = attribute(imported, factory)
    if callable(made) and (isinstance(made, type) or not hasattr(made, "make_environment")):
        made = made(**parameters_of(made, words))
    elif words:
        raise TypeError("%s:%s is no factory and takes no parameters" % (module, factory))
    for name in ("spec", "episodes", "make_environment", "feedback"):
        if not hasattr(made, name):
            raise TypeError("%s:%s gave a %s, which has no %s" % (module, factory, type(made).__name__, name))
    return made


# --- Records ---


class Records:
    """The Feedback's records: a sequence that holds no more than what its user holds.

    Records come from the Host in order, once; their bytes are kept in a temporary file for whoever looks again.
    """

    def __init__(self, channel, count):
        import tempfile
        import weakref

        self.channel = channel
        self.count = count
        self.file = tempfile.SpooledTemporaryFile(max_size=16 * 1024 * 1024)
        self.places = []  # of each record: where its pieces begin and how long each is
        self.alive = weakref.WeakValueDictionary()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self.count)))
        position = index.__index__()
        if position < 0:
            position += self.count
        if not 0 <= position < self.count:
            raise IndexError("record index out of range")
        record = self.alive.get(position)
        if record is None:
            while len(self.places) <= position:
                self.pull()
            record = self.alive[position] = self.build(position)
        return record

    def __iter__(self):
        for index in range(self.count):
            yield self[index]

    def __reversed__(self):
        for index in reversed(range(self.count)):
            yield self[index]

    def __contains__(self, wanted):
        return any(record == wanted for record in self)

    def index(self, wanted, *bounds):
        return tuple(self).index(wanted, *bounds)

    def __eq__(self, other):
        return tuple(self) == tuple(other) if isinstance(other, (tuple, list, Records)) else NotImplemented

    __hash__ = None

    def pull(self):
        self.file.seek(0, os.SEEK_END)
        start, sizes = self.file.tell(), []
        self.channel.send(b"n")
        piece = self.channel.receive()[1]
        if piece == b"N":
            raise RuntimeError("the Host has fewer records than it said")
        while True:
            sizes.append(self.file.write(piece) or len(piece))
            if len(sizes) > 1 and piece == b"L" + bytes(8):
                break
            self.channel.send(b"t", encode(1024))
            piece = self.channel.receive()[1]
        self.places.append((start, sizes))

    def build(self, position):
        from evopolicygym.authoring import EpisodeRecord, Transition

        start, sizes = self.places[position]
        self.file.seek(start)
        head, *pieces = [value_of(self.file.read(size)) for size in sizes]
        transitions, initial = [], None
        for piece in pieces:
            for turn in piece:
                action = turn.pop("action")
                turn["metrics"], orders, first = private_value(turn["metrics"])
                turn["observation"] = with_orders(turn["observation"], orders)
                initial = initial or first
                transitions.append(Transition(action, Step(**turn)))
        return EpisodeRecord(
            spec=EpisodeSpec(head["environment_seed"], private_value(head["scenario"])[0]),
            policy_seed=head["policy_seed"],
            initial_observation=with_orders(head["initial_observation"], initial),
            transitions=tuple(transitions),
            policy_failure=head["policy_failure"],
        )


# --- Answers ---


class Runner:
    def __init__(self, channel, module, factory, words):
        self.channel = channel
        self.source = (module, factory, words)
        self.benchmark = None
        self.environment = None
        self.initial = None  # how the keys of the initial observation stood; goes with the first Step
        self.answers = {
            ord("S"): self.spec,
            ord("E"): self.episodes,
            ord("O"): self.open,
            ord("R"): self.reset,
            ord("C"): self.close,
            ord("F"): self.feedback,
            ord("B"): self.baseline,
        }

    def ready(self):
        if self.benchmark is None:
            from collections.abc import Sequence

            Sequence.register(Records)
            self.benchmark = make_benchmark(*self.source)
        return self.benchmark

    def spec(self, body):
        asked = value_of(body)["protocol"]
        if asked != PROTOCOL:
            raise ValueError("the Host speaks %s, this side %s" % (asked, PROTOCOL))
        spec = self.ready().spec
        spec = spec() if callable(spec) else spec
        if not isinstance(spec, BenchmarkSpec):
            raise TypeError("spec is a %s, not a BenchmarkSpec" % type(spec).__name__)
        told = [b"M" + (9).to_bytes(8, "big")]
        wire = spec._wire
        for name in sorted(BenchmarkSpec.__dataclass_fields__):
            told.append(_values.key(name))
            told.append(wire[name] if name in wire else encode(getattr(spec, name)))
        self.channel.send(b"s", b"".join(told))

    def episodes(self, body):
        asked = value_of(body)
        plan = calling(self.ready().episodes, ("split", "seed", "count"))
        planned = []
        for episode in plan(asked["split"], asked["seed"], asked["count"]):
            if not isinstance(episode, EpisodeSpec):
                raise TypeError("episodes holds a %s, not an EpisodeSpec" % type(episode).__name__)
            if len(planned) == asked["count"]:
                raise ValueError("episodes gave more than the %d that were asked for" % asked["count"])
            seed = _values.key("environment_seed") + encode(episode.environment_seed)
            planned.append(b"M" + (2).to_bytes(8, "big") + seed + _values.key("scenario") + episode._wire)
        for at in range(0, len(planned), PLAN_PIECE):
            piece = planned[at : at + PLAN_PIECE]
            self.channel.send(b"e", b"L" + len(piece).to_bytes(8, "big") + b"".join(piece))
        self.channel.send(b"d")

    def open(self, body):
        asked = value_of(body)
        episode = EpisodeSpec(asked["environment_seed"], private_value(asked["scenario"])[0])
        environment = self.ready().make_environment(episode)
        for name in ("reset", "step", "close"):
            if not callable(getattr(environment, name, None)):
                raise TypeError("make_environment gave a %s, which has no %s" % (type(environment).__name__, name))
        self.environment = environment
        self.channel.send(b"o")

    def reset(self, body):
        observation = self.environment.reset()
        body = public_bytes(observation, "the observation")
        self.initial = orders_of(observation)
        self.channel.send(b"r", body)

    def unusual(self, step):
        """A first Step, or what `step` returned or raised instead of exactly a Step."""
        if isinstance(step, Step):
            initial, self.initial = self.initial, None
            self.channel.send(b"a", step._wire if initial is None else step._with_initial(initial))
        elif isinstance(step, InvalidAction) or step is InvalidAction:
            reason = "" if step is InvalidAction else step.reason
            self.channel.send(b"i", encode(reason[:TEXT_LIMIT].encode("utf-8", "replace").decode()))
        else:
            raise TypeError("step returned a %s, neither a Step nor an InvalidAction" % type(step).__name__)

    def close(self, body):
        environment, self.environment = self.environment, None
        if environment is not None:
            environment.close()
        self.channel.send(b"c")

    def feedback(self, body):
        records = Records(self.channel, value_of(body))
        feedback = self.ready().feedback(records)
        if not isinstance(feedback, Feedback):
            raise TypeError("feedback returned a %s, not a Feedback" % type(feedback).__name__)
        for artifact in feedback.artifacts:
            told = {name: getattr(artifact, name) for name in ("content", "media_type", "name", "retention")}
            self.channel.send(b"m", trusted_bytes(told, "an artifact"))
        content = _values.key("content") + feedback._wire
        self.channel.send(
            b"f", b"M" + (2).to_bytes(8, "big") + content + _values.key("score") + encode(feedback.score)
        )

    def baseline(self, body):
        from evopolicygym._baseline import find

        for path, content in find(self.ready(), self.source[0]).files.items():
            self.channel.send(b"p", trusted_bytes({"content": content, "path": path}, path))
        self.channel.send(b"d")


def told(error):
    """One line for the Host; the traceback goes to stderr."""
    try:
        sys.__excepthook__(type(error), error, error.__traceback__)
        text = " ".join(str(error).split())
    except BaseException:
        text = "(its text can't be had)"
    name = type(error).__name__
    text = name + ": " + text if text else name
    return encode(text[:TEXT_LIMIT].encode("utf-8", "replace").decode())


def converse(runner, channel):
    """Answers question after question. What a step needs is written out here: each call would be paid for in every one."""
    answers = runner.answers
    known_action, read, write = _values._ints.get, os.read, os.write
    while True:
        data = channel.left or read(RECEIVE, READ_SIZE)
        if len(data) < HEAD_SIZE or len(data) != 4 + int.from_bytes(data[:4], "big"):
            data = channel.whole(bytearray(data))
        kind = data[4]
        channel.sequence = sequence = data[5:9]
        body = data[9:]
        try:
            if kind == STEP:
                action = known_action(body)
                if action is None:
                    action = value_of(body)
                step = runner.environment.step(action)
                if type(step) is Step and runner.initial is None:
                    body = step._wire
                    frame = (len(body) + 5).to_bytes(4, "big") + b"a" + sequence + body
                    sent = write(SEND, frame)
                    while sent < len(frame):
                        frame = frame[sent:]
                        sent = write(SEND, frame)
                else:
                    runner.unusual(step)
            else:
                answers[kind](body)
        except InvalidAction as refused:
            if kind == STEP:
                runner.unusual(refused)
            else:
                channel.send(b"x", told(refused))
        except (Ended, BrokenPipeError):
            raise
        except BaseException as error:
            channel.send(b"x", told(error))


def main(module, factory, *words):
    channel = Channel()
    for descriptor in (RECEIVE, SEND):
        os.set_inheritable(descriptor, False)
    try:
        converse(Runner(channel, module, factory, words), channel)
    except (Ended, BrokenPipeError):
        pass


if __name__ == "__main__":
    main(*sys.argv[1:])
