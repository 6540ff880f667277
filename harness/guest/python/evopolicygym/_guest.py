"""One Policy process: parked until the Host names its Program, then an answer for every frame of the Host.

A frame is a 4-byte big-endian length of what follows, a type byte, a 4-byte sequence number and a body of canonical
bytes. The Host speaks first, always; each of its frames gets one answer that repeats the sequence number, which can't
be guessed. The end of the channel asks this process to end.

Everything that the protocol needs is imported before the Program's directory joins sys.path, so no file of a Program
stands in for it, and nothing of it is imported later. Descriptors 1 and 2 are the Program's own output; the channel
lives on high numbers where a Program does not come across it by chance.
"""

import os
import random
import sys
from struct import Struct

import _frozen_importlib
import _frozen_importlib_external

from evopolicygym._codec import decode, encode
from evopolicygym.policy import PolicyContext

START, ACT = 1, 2  # from the Host
READY, VALUE, LOAD_FAILED, RAISED, INADMISSIBLE = b"\x11", b"\x12", b"\x13", b"\x14", b"\x15"  # to the Host

HEAD_SIZE = 9
SHORT_READ = 479  # the longest bytes that the interpreter allocates from its own pools
LONG_READ = 65536  # a larger buffer costs more to allocate than it saves
TEXT_LIMIT = 1000
RECEIVE, SEND = 250, 251
EXIT_FAULT = 70


class Ended(Exception):
    """The Host closed the channel."""


def run(receive, send, output):
    """Takes the process over, given three descriptors; never returns."""
    settle(receive, send, output)
    rehearse()
    status = EXIT_FAULT
    try:
        converse()
    except Ended:
        status = 0
    except BaseException:
        sys.__excepthook__(*sys.exc_info())
    flush()
    os._exit(status)


def settle(receive, send, output):
    """A session of its own (a Program that signals its group reaches nobody else) and descriptors in their places."""
    try:
        os.setsid()
    except OSError:
        pass  # started with one
    os.dup2(receive, RECEIVE, inheritable=False)
    os.dup2(send, SEND, inheritable=False)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.closerange(3, RECEIVE)
    sys.stdout.reconfigure(line_buffering=True)


def rehearse():
    """Does in small what an Episode will do, so that the pages it needs are this process's own before it counts."""
    sample = {"path": b"/", "context": {"space": [0.5, -1, "text", None, True, (1, 2)]}}
    decode(encode(sample))
    exec(compile("def make_policy(context):\n    return context\n", "<rehearsal>", "exec"), {})


def float_list_form(count):
    body = b"L" + count.to_bytes(8, "big")
    size = HEAD_SIZE + len(body) + 9 * count
    head = (size - 4).to_bytes(4, "big") + bytes((ACT,))
    return size, (head, body, b"F" * count, Struct(">18x" + "xd" * count).unpack)


# How the frame that asks to act on a list of 1 .. 50 floats looks, as most do, by its size: how it starts, how its body
# starts, the tags of its items, and what reads these. Any other frame has no form.
FLOAT_LIST_FORMS = dict(map(float_list_form, range(1, 51)))
NO_FORM = (b"no form", None, None, None)


def converse():
    """Answers frame after frame. What an act needs is written out here: each call would be paid for in every step."""
    policy = None
    room = SHORT_READ
    read, write = os.read, os.write
    while True:
        data = read(RECEIVE, room)
        head, body_head, tags, unpack = FLOAT_LIST_FORMS.get(len(data), NO_FORM)
        if data.startswith(head) and data.startswith(body_head, HEAD_SIZE) and data[HEAD_SIZE + 9 :: 9] == tags:
            observation = list(unpack(data))
        else:
            if len(data) != 4 + int.from_bytes(data[:4], "big"):
                data = receive_rest(bytearray(data))
            room = SHORT_READ if len(data) <= SHORT_READ else LONG_READ
            if data[4] != ACT:
                kind, body, policy = start(data[HEAD_SIZE:])
                write(SEND, (len(body) + 5).to_bytes(4, "big") + kind + data[5:HEAD_SIZE] + body)
                continue
            observation = decode(data[HEAD_SIZE:])
        try:
            action = policy.act(observation)
        except BaseException as error:
            kind, body = RAISED, told(error)
        else:
            try:
                kind, body = VALUE, encode(action)
            except BaseException as error:
                kind, body = INADMISSIBLE, told(error)
        answer = (len(body) + 5).to_bytes(4, "big") + kind + data[5:HEAD_SIZE] + body
        sent = write(SEND, answer)
        while sent < len(answer):
            answer = answer[sent:]
            sent = write(SEND, answer)


def receive_rest(data):
    while len(data) < HEAD_SIZE or len(data) < 4 + int.from_bytes(data[:4], "big"):
        more = os.read(RECEIVE, LONG_READ)
        if not more:
            raise Ended
        data += more
    return bytes(data)


def start(body):
    """Loads the Program and makes its Policy."""
    directory, context = decode(body)
    enter(os.fsdecode(directory), context["policy_seed"])
    try:
        make_policy = load().make_policy
    except BaseException as error:
        return LOAD_FAILED, told(error), None
    try:
        return READY, b"", make_policy(PolicyContext(**context))
    except BaseException as error:
        return RAISED, told(error), None


def enter(directory, seed):
    """The Program's directory becomes the working directory and the first place of imports; its parent is scratch,
    or, where that can't be written (in a sandbox), /tmp is."""
    os.chdir(directory)
    scratch = os.path.dirname(directory)
    os.environ["HOME"] = os.environ["TMPDIR"] = scratch if os.access(scratch, os.W_OK) else "/tmp"
    sys.path.insert(0, directory)
    sys.argv[:] = [os.path.join(directory, "policy.py")]
    random.seed(seed)
    if "numpy.random" in sys.modules:
        seed_numpy(sys.modules["numpy.random"], seed)
    else:
        sys.meta_path.insert(0, NumpySeeder(seed))


def load():
    spec = _frozen_importlib_external.spec_from_file_location("policy", sys.argv[0])
    module = _frozen_importlib.module_from_spec(spec)
    sys.modules["policy"] = module
    spec.loader.exec_module(module)
    return module


def seed_numpy(module, seed):
    module.seed([seed >> 32, seed & 0xFFFFFFFF])


class NumpySeeder:
    """Seeds numpy's global generator the moment a Program imports it, then is gone."""

    def __init__(self, seed):
        self.seed = seed

    def find_spec(self, name, path=None, target=None):
        if name != "numpy.random":
            return None
        sys.meta_path.remove(self)
        spec = _frozen_importlib_external.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_seed(module):
                execute(module)
                seed_numpy(module, self.seed)

            spec.loader.exec_module = execute_and_seed
        return spec


def told(error):
    """A short text for the Host's evidence; the whole traceback goes to the Program's own log."""
    try:
        sys.__excepthook__(type(error), error, error.__traceback__)
        text = str(error)
    except BaseException:
        text = "(its text can't be had)"
    name = type(error).__name__
    return (name + ": " + text if text else name)[:TEXT_LIMIT].encode("utf-8", "replace")


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass
