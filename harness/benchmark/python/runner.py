"""The process of a Python Benchmark: speaks docs/benchmark-protocol.md on descriptors 3 and 4 for an installed package.

    runner.py MODULE FACTORY [KEY=VALUE...]

How it works. The package is imported and its factory called at the first question, so that what goes wrong there is
told as any other fault. Each question gets its answer, or a fault with what was raised; the traceback goes to stderr.
`evopolicygym` is imported from this file's directory before anything else, so it is ours, whatever else is installed;
then that directory is the last on sys.path, after the working directory. The process ends when the channel does.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [HERE] + [path for path in sys.path if path != HERE]

from evopolicygym import _values
from evopolicygym._calling import calling
from evopolicygym._codec import encode
from evopolicygym._values import orders_of, private_value, public_bytes, trusted_bytes, value_of, with_orders
from evopolicygym.authoring import BenchmarkSpec, EpisodeSpec, Feedback, InvalidAction, Step

sys.path[:] = sys.path[1:] + [os.getcwd(), HERE]

RECEIVE, SEND = 3, 4
READ_SIZE = 8192  # most questions are small, and room for more costs time in every one of them
HEAD_SIZE = 9
TEXT_LIMIT = 600
PROTOCOL = "evopolicygym/benchmark/v1"
PLAN_PIECE = 1 << 16  # bytes
STEP = ord("A")


class Ended(Exception):
    """The Host closed the channel."""


class Mistake(Exception):
    """The user's, told in one line without a traceback."""


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


def kinds_of(annotation):
    """The names of the types that a parameter is declared with: {"str", "None"} for `str | None` or `Optional[str]`."""
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
    if text.startswith("Optional["):
        text = text[len("Optional[") : -1] + "|None"
    return set(text.replace(" ", "").split("|"))


def read_parameter(text, kinds):
    """The value of a parameter's text: JSON, or Python's True, False and None, where it is one of these; else the text.

    What is declared as str stays text, and a number for what is declared as float is a float.
    """
    import json

    def no_constant(name):
        raise ValueError(name)

    if "None" in kinds and text in ("None", "null"):
        return None
    if "str" in kinds and kinds <= {"str", "None"}:
        return text
    words = {"True": True, "False": False, "None": None}
    try:
        value = words[text] if text in words else json.loads(text, parse_constant=no_constant)
    except ValueError:
        return text
    return float(value) if type(value) is int and "float" in kinds and "int" not in kinds else value


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
            raise Mistake("the parameter %s is given twice" % name)
        named[name] = read_parameter(text, kinds_of(annotations.get(name)))
    return named


def import_named(module):
    import importlib

    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or (module + ".").find(error.name + ".") != 0:
            raise  # something that the package needs
        raise Mistake(
            "there is no module %r for %s: install it there, name its directory in PYTHONPATH, or name another "
            "interpreter with --benchmark-python" % (error.name, sys.executable)
        ) from None


def lacking(error):
    """What a package imports and can't have: where, and what to do. None where the error tells something else."""
    import traceback
    from evopolicygym import offered

    wanted = error.name or ""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    where = "%s, line %d" % (frames[-1].filename, frames[-1].lineno)
    if wanted.partition(".")[0] == "evopolicygym":
        text = " ".join(str(error).split()).partition(" (")[0].partition(";")[0]
        return Mistake("%s: %s; of evopolicygym 0.3, %s" % (where, text, offered(wanted)))
    if isinstance(error, ModuleNotFoundError) and wanted:
        return Mistake("%s needs the module %r, which %s does not have: install it there, or name another interpreter "
                       "with --benchmark-python" % (where, wanted, sys.executable))
    return None


def attribute(module, path):
    found = module
    for name in path.split("."):
        if not hasattr(found, name):
            there = [known for known, value in vars(module).items() if callable(value) and not known.startswith("_")]
            raise Mistake("the module %s has no %s; what can be called in it: %s"
                          % (module.__name__, path, ", ".join(there) or "nothing"))
        found = getattr(found, name)
    return found


def call_factory(factory, name, words):
    import inspect

    parameters = parameters_of(factory, words)
    try:
        inspect.signature(factory).bind(**parameters)
    except TypeError as error:
        raise Mistake("%s%s can't be called so: %s" % (name, inspect.signature(factory), error)) from None
    except ValueError:
        pass  # it has no signature
    return factory(**parameters)


def make_benchmark(module, factory, words):
    try:
        return benchmark_of(module, factory, words)
    except ImportError as error:
        mistake = lacking(error)
        if mistake is None:
            raise
        raise mistake from None


def benchmark_of(module, factory, words):
    made = attribute(import_named(module), factory)
    name = "%s:%s" % (module, factory)
    if callable(made) and (isinstance(made, type) or not hasattr(made, "make_environment")):
        made = call_factory(made, name, words)
    elif words:
        raise Mistake("%s is no factory and takes no parameters" % name)
    if isinstance(made, type):
        raise Mistake("%s gave the class %s and no Benchmark made of it" % (name, made.__name__))
    for needed in ("spec", "episodes", "make_environment", "feedback"):
        if not hasattr(made, needed):
            raise Mistake("%s gave a %s, which is no Benchmark: it has no %s" % (name, type(made).__name__, needed))
    return made


# --- Records ---


def restored(kind, **fields):
    """What was checked when it was made: a Benchmark's own Steps, back from the Host."""
    made = object.__new__(kind)
    made.__dict__.update(fields)
    return made


class Records(tuple):
    """The Feedback's records: a tuple to whoever asks, that holds no more than what its user holds.

    Records come from the Host in order, once; their bytes are kept in a temporary file for whoever looks again.
    """

    def __new__(cls, channel, total, benchmark):
        return super().__new__(cls)

    def __init__(self, channel, total, benchmark):
        import tempfile
        import weakref

        self.channel = channel
        self.total = total
        self.benchmark = benchmark
        self.key_orders = {}  # of the maps of initial observations: how their keys stood
        self.file = tempfile.SpooledTemporaryFile(max_size=16 * 1024 * 1024)
        self.places = []  # of each record: where its pieces begin and how long each is
        self.alive = weakref.WeakValueDictionary()

    def __len__(self):
        return self.total

    def __getitem__(self, index):
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self.total)))
        position = index.__index__()
        if position < 0:
            position += self.total
        if not 0 <= position < self.total:
            raise IndexError("record index out of range")
        record = self.alive.get(position)
        if record is None:
            while len(self.places) <= position:
                self.pull()
            record = self.alive[position] = self.build(position)
        return record

    def __iter__(self):
        for index in range(self.total):
            yield self[index]

    def __reversed__(self):
        for index in reversed(range(self.total)):
            yield self[index]

    def __contains__(self, wanted):
        return any(record == wanted for record in self)

    def whole(self):
        return tuple(iter(self))

    def index(self, wanted, *bounds):
        return self.whole().index(wanted, *bounds)

    def count(self, wanted):
        return self.whole().count(wanted)

    def __eq__(self, other):
        return self.whole() == tuple(iter(other)) if isinstance(other, tuple) else NotImplemented

    def __ne__(self, other):
        return not self == other

    def __add__(self, other):
        return self.whole() + tuple(iter(other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other):
        return tuple(iter(other)) + self.whole() if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times):
        return self.whole() * times

    def __reduce_ex__(self, protocol):  # a copy, in another process too, is a plain tuple
        return tuple, (list(self),)

    __rmul__ = __mul__
    __hash__ = None

    def __repr__(self):
        return "<%d EpisodeRecords>" % self.total

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
        from evopolicygym.authoring import EpisodeRecord, PolicyFailureCode, Transition

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
                transitions.append(restored(Transition, action=action, step=restored(Step, **turn)))
        spec = EpisodeSpec(head["environment_seed"], private_value(head["scenario"])[0])
        observation, failure = head["initial_observation"], head["policy_failure"]
        return restored(
            EpisodeRecord,
            spec=spec,
            policy_seed=head["policy_seed"],
            initial_observation=with_orders(observation, initial) if transitions else self.reordered(observation, spec),
            transitions=tuple(transitions),
            policy_failure=failure and PolicyFailureCode(failure),
        )

    def reordered(self, observation, spec):
        """The initial observation of an Episode without a Step, which is what tells of the order of keys elsewhere.

        Observations of one Benchmark are made alike, so one fresh Environment's tells it for all that look the same.
        """
        wanted = _values.key_sets(observation)
        if not wanted.keys() <= self.key_orders.keys():
            self.key_orders = {**wanted, **self.first_key_sets(spec), **self.key_orders}
        return _values.with_key_orders(observation, self.key_orders)

    def first_key_sets(self, spec):
        try:
            environment = self.benchmark.make_environment(spec)
            try:
                return _values.key_sets(environment.reset())
            finally:
                environment.close()
        except Exception:
            return {}  # the order is lost, and nothing else


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
        piece, size = [], 0
        for told in planned:
            piece.append(told)
            size += len(told)
            if size >= PLAN_PIECE:  # scenarios can be large
                self.send_planned(piece)
                piece, size = [], 0
        self.send_planned(piece)
        self.channel.send(b"d")

    def send_planned(self, piece):
        if piece:
            self.channel.send(b"e", b"L" + len(piece).to_bytes(8, "big") + b"".join(piece))

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
            self.channel.send(b"a", step._wire if initial is None else step._encoded(initial))
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
        benchmark = self.ready()
        feedback = benchmark.feedback(Records(self.channel, value_of(body), benchmark))
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
        from evopolicygym._baseline import NoBaseline, find

        try:
            found = find(self.ready(), self.source[0])
        except NoBaseline as error:
            raise Mistake(error) from None
        for path, content in found.files.items():
            self.channel.send(b"p", trusted_bytes({"content": content, "path": path}, path))
        self.channel.send(b"d")


def told(error):
    """One line for the Host; the traceback of what is no Mistake goes to stderr."""
    try:
        if not isinstance(error, Mistake):
            sys.__excepthook__(type(error), error, error.__traceback__)
        text = " ".join(str(error).split())
    except BaseException:
        text = "(its text can't be had)"
    if not isinstance(error, Mistake):
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
        except Ended:
            raise
        except BaseException as error:  # a BrokenPipeError too: where it is the channel's, this one meets it again
            channel.send(b"x", told(error))


def main(module, factory, *words):
    channel = Channel()
    for descriptor in (RECEIVE, SEND):
        os.set_inheritable(descriptor, False)
    # An interpreter that the package starts finds `evopolicygym` too.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), HERE)))
    try:
        converse(Runner(channel, module, factory, words), channel)
    except (Ended, BrokenPipeError):
        pass


if __name__ == "__main__":
    main(*sys.argv[1:])
