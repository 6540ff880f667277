"""codec.py SOURCE VALUE-TOOL: tests of evopolicygym._codec and evopolicygym.policy, with the C codec as the other side."""

import base64
import collections
import copy
import enum
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import unittest

SOURCE, TOOL = sys.argv[1:3]
sys.path.insert(0, os.path.join(SOURCE, "harness", "guest", "python"))

from evopolicygym import policy  # noqa: E402
from evopolicygym._codec import decode, encode  # noqa: E402
from evopolicygym.policy import PolicyContext, TensorValue  # noqa: E402

SIZES = {"bool": 1, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "int8": 1, "int16": 2, "int32": 4, "int64": 8,
         "float16": 2, "float32": 4, "float64": 8}


def vectors(name):
    with open(os.path.join(SOURCE, "tests", "vectors", "data", name + ".json"), encoding="utf-8") as stream:
        return json.load(stream)


def b64(data):
    return base64.b64encode(data).decode()


def to_node(value):
    """The contract's node form, written here anew."""
    if value is None:
        return ["none"]
    if isinstance(value, bool):
        return ["bool", value]
    if isinstance(value, int):
        return ["int", str(value)]
    if isinstance(value, float):
        return ["float", b64(struct.pack(">d", value))]
    if isinstance(value, str):
        return ["string", value]
    if isinstance(value, bytes):
        return ["bytes", b64(value)]
    if isinstance(value, TensorValue):
        return ["tensor", value.dtype, list(value.shape), b64(value.data)]
    if isinstance(value, list):
        return ["list", [to_node(item) for item in value]]
    if isinstance(value, tuple):
        return ["tuple", [to_node(item) for item in value]]
    return ["map", [[key, to_node(value[key])] for key in sorted(value, key=lambda key: key.encode())]]


def from_node(node):
    kind, rest = node[0], node[1:]
    if kind == "none":
        return None
    if kind == "int":
        return int(rest[0])
    if kind == "float":
        return struct.unpack(">d", base64.b64decode(rest[0]))[0]
    if kind == "bytes":
        return base64.b64decode(rest[0])
    if kind == "tensor":
        return TensorValue(rest[0], tuple(rest[1]), base64.b64decode(rest[2]))
    if kind == "list":
        return [from_node(item) for item in rest[0]]
    if kind == "tuple":
        return tuple(from_node(item) for item in rest[0])
    if kind == "map":
        return {key: from_node(item) for key, item in rest[0]}
    return rest[0]


def same(a, b):
    """Equal, of equal types all the way down, and -0.0 apart from 0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return sorted(a) == sorted(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b)
    return a == b


class Draw:
    """Random values, the same for a seed with every interpreter."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self):
        points = [0, 9, 34, 92, 0x7F, 0xE9, 0x2028, 0xFFEE, 0x1F600, 0x10FFFF, 65, 97, 98]
        return "".join(chr(self.random.choice(points)) for _ in range(self.random.randrange(5)))

    def number(self):
        edges = [0, 1, -1, 9, 10, -(2**63), 2**63 - 1, 2**63, 2**64 - 1, -(2**63) + 1, 10**18, 10**19]
        return self.random.choice(edges + [self.random.randrange(-(2**63), 2**64)])

    def real(self):
        edges = [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, 0.1, -2.5, 1e16, 2.2250738585072014e-308]
        return self.random.choice(edges + [self.random.uniform(-1e3, 1e3)])

    def tensor(self):
        dtype = self.random.choice(sorted(SIZES))
        shape = tuple(self.random.randrange(4) for _ in range(self.random.randrange(4)))
        count = 1
        for dimension in shape:
            count *= dimension
        if dtype == "bool":
            data = bytes(self.random.randrange(2) for _ in range(count))
        elif dtype.startswith("float"):
            code = {"float16": "e", "float32": "f", "float64": "d"}[dtype]
            data = struct.pack("<%d%s" % (count, code), *(self.random.uniform(-6e4, 6e4) for _ in range(count)))
        else:
            data = bytes(self.random.randrange(256) for _ in range(count * SIZES[dtype]))
        return TensorValue(dtype, shape, data)

    def value(self, depth=0):
        kind = self.random.randrange(10 if depth < 5 else 7)
        if kind == 0:
            return None
        if kind == 1:
            return self.random.random() < 0.5
        if kind == 2:
            return self.number()
        if kind == 3:
            return self.real()
        if kind == 4:
            return self.text()
        if kind == 5:
            return bytes(self.random.randrange(256) for _ in range(self.random.randrange(6)))
        if kind == 6:
            return self.tensor()
        items = [self.value(depth + 1) for _ in range(self.random.randrange(5))]
        if kind == 7:
            return items
        if kind == 8:
            return tuple(items)
        return {self.text(): item for item in items}

    def damaged(self, data):
        """The bytes with one to three changes of the kinds that matter: a bit, a byte of meaning, a cut, a repeat."""
        data = bytearray(data)
        for _ in range(self.random.randrange(1, 4)):
            at = self.random.randrange(len(data) or 1)
            how = self.random.randrange(5)
            if how == 0 and data:
                data[at] ^= 1 << self.random.randrange(8)
            elif how == 1 and data:
                data[at] = self.random.choice(b"NBIFSYTLUM01-9\x00\x01\x02\x7f\xff")
            elif how == 2:
                del data[at:]
            elif how == 3:
                data[at:at] = data[at : at + self.random.randrange(12)]
            else:
                del data[at : at + self.random.randrange(1, 10)]
        return bytes(data)


def ask(requests):
    """The answers of value-tool, one a request."""
    run = subprocess.run([TOOL], input="".join(line + "\n" for line in requests).encode(), stdout=subprocess.PIPE,
                         check=True)
    answers = run.stdout.decode().split("\n")[:-1]
    if len(answers) != len(requests):
        raise AssertionError("value-tool gave %d answers to %d requests" % (len(answers), len(requests)))
    return answers


def dump(node):
    return json.dumps(node, ensure_ascii=False, separators=(",", ":"))


class Vectors(unittest.TestCase):
    def test_wire_values_and_digest_parameters_agree_with_c_and_come_back(self):
        nodes = [vector["node"] for vector in vectors("wire_values")]
        nodes += [vector["parameters"] for vector in vectors("environment_digests")]
        answers = ask(["node " + dump(node) for node in nodes])
        for node, answer in zip(nodes, answers):
            value = from_node(node)
            self.assertEqual(answer, "ok " + encode(value).hex(), node)
            self.assertTrue(same(decode(encode(value)), value), node)

    def test_environment_digest_is_that_of_the_bytes(self):
        import hashlib

        for vector in vectors("environment_digests"):
            bytes_ = encode(from_node(vector["parameters"]))
            digest = hashlib.sha256(b"evopolicygym/environment-parameters/v1\0" + bytes_).hexdigest()
            self.assertEqual(vector["digest"], "sha256:" + digest, vector["name"])

    def test_constants(self):
        from evopolicygym import _codec

        constants = vectors("constants")
        self.assertEqual(policy.POLICY_ABI_VERSION, constants["POLICY_ABI_VERSION"])
        self.assertEqual(_codec.MAX_DEPTH, constants["POLICY_MAX_VALUE_DEPTH"])
        self.assertEqual(_codec.MAX_NODES, constants["POLICY_MAX_VALUE_ITEMS"])
        self.assertEqual(_codec.MAX_BYTES, constants["POLICY_MAX_FRAME_BYTES"])


class AgainstC(unittest.TestCase):
    def test_random_values_python_to_c_and_c_to_python(self):
        draw = Draw(20240601)
        values = [draw.value() for _ in range(3000)]
        checked = ask(["check " + encode(value).hex() for value in values])
        encoded = ask(["node " + dump(to_node(value)) for value in values])
        for value, node, data in zip(values, checked, encoded):
            self.assertEqual(node, "ok " + dump(to_node(value)))
            self.assertEqual(data, "ok " + encode(value).hex())
            self.assertTrue(same(decode(bytes.fromhex(data[3:])), value), value)

    def test_damaged_bytes_are_taken_by_both_or_by_none(self):
        draw = Draw(7)
        cases = [draw.damaged(encode(draw.value())) for _ in range(8000)]
        accepted = 0
        for data, answer in zip(cases, ask(["check " + data.hex() for data in cases])):
            try:
                value = decode(data)
            except ValueError:
                self.assertTrue(answer.startswith("no "), (data, answer))
                continue
            accepted += 1
            self.assertEqual(answer, "ok " + dump(to_node(value)), data)
            self.assertEqual(encode(value), data)
        self.assertGreater(accepted, 100)
        self.assertLess(accepted, 7900)

    def test_both_count_bounds_alike(self):
        deep = None
        for _ in range(32):
            deep = [deep]
        wide = [None] * 65535
        big = bytes(4 * 1024 * 1024 - 9)
        for value, worse in ((deep, [deep]), (wide, [None] * 65536), (big, big + b"x"), ([[]] * 65535, [wide])):
            self.assertTrue(same(decode(encode(value)), value))
            with self.assertRaises(ValueError):
                encode(worse)
            loose = encode(worse, max_depth=64, max_nodes=1 << 20, max_bytes=1 << 26)
            with self.assertRaises(ValueError):
                decode(loose)
            good, bad = ask(["check " + encode(value).hex(), "check " + loose.hex()])
            self.assertEqual(good[:3], "ok ")
            self.assertEqual(bad[:9], "no limit ", bad)


class Encoding(unittest.TestCase):
    def refused(self, kind, value, text):
        for wrapped in (value, [value], {"k": (value,)}):
            with self.assertRaises(kind) as caught:
                encode(wrapped)
            self.assertIn(text, str(caught.exception))

    def test_what_is_out_of_bounds_is_told(self):
        for value in (float("nan"), float("inf"), -float("inf")):
            self.refused(ValueError, value, "finite")
        for value in (-(2**63) - 1, 2**64, 10**6000):
            self.refused(ValueError, value, "-2**63 .. 2**64-1")
        self.refused(ValueError, "a\ud800b", "'\\ud800'")
        self.refused(ValueError, {"\udfff": 1}, "valid Unicode")

    def test_what_is_no_value_is_told(self):
        for value in (object(), 1j, {1, 2}, frozenset(), bytearray(b"x"), memoryview(b"x"), range(3), encode, Ellipsis,
                      iter([]), collections.deque()):
            self.refused(TypeError, value, "is not a PolicyValue")
        for key in (1, None, b"k", True, ("a",)):
            self.refused(TypeError, {key: 1}, "keys must be str")
        self.refused(TypeError, {"a": 1, 2: 2}, "keys must be str")

    def test_foreign_scalars_are_told_how_to_be_converted(self):
        foreign = type("int64", (), {"__module__": "numpy", "__int__": lambda self: 1, "__float__": lambda self: 1.0})
        self.refused(TypeError, foreign(), "numpy.int64 is not a PolicyValue: convert it with .item()")

    def test_a_cycle_ends_at_the_bound(self):
        cycle = []
        cycle.append(cycle)
        self.refused(ValueError, cycle, "levels deep")

    def test_one_big_string_many_times_is_refused_before_it_is_copied(self):
        self.refused(ValueError, ["x" * (1 << 20)] * 60000, "over 4194304 bytes")

    def test_bool_int_and_float_stay_apart(self):
        self.assertEqual([encode(True), encode(1), encode(1.0)], [b"B1", b"I" + bytes(7) + b"\x011",
                                                                  b"F\x3f\xf0" + bytes(6)])
        self.assertTrue(same(decode(encode([True, 1, 1.0, -0.0])), [True, 1, 1.0, -0.0]))

    def test_instances_of_subclasses_count_as_their_base_type(self):
        class Loud(dict):
            def items(self):
                raise AssertionError("asked")

            __iter__ = __len__ = __getitem__ = items

        class Text(str):
            def encode(self, *_):
                raise AssertionError("asked")

        class Number(int):
            def __index__(self):
                raise AssertionError("asked")

            __int__ = __str__ = __repr__ = __index__

        class Real(float):
            def __float__(self):
                raise AssertionError("asked")

            __sub__ = __float__

        Move = enum.IntEnum("Move", "LEFT RIGHT")
        Pair = collections.namedtuple("Pair", "a b")
        for value, plain in (
            (Move.RIGHT, 2), (Pair(1, "x"), (1, "x")), (collections.OrderedDict([("b", 1), ("a", 2)]), {"a": 2, "b": 1}),
            (Loud(a=1), {"a": 1}), (Text("x"), "x"), ({Text("k"): Number(5)}, {"k": 5}), (Real(-0.0), -0.0),
            (collections.defaultdict(list, z=[Real(2.5)]), {"z": [2.5]}),
            (PolicyContext(None, None, {"m": 1}, {}, 0).metadata, {"m": 1}),
        ):
            self.assertEqual(encode(value), encode(plain))
            self.assertTrue(same(decode(encode([value])), [plain]))

    def test_a_low_recursion_limit_does_not_matter(self):
        deep = 1
        for _ in range(32):
            deep = {"k": deep}
        before = sys.getrecursionlimit()
        data = encode(deep)
        frame, depth = sys._getframe(), 0
        while frame is not None:
            frame, depth = frame.f_back, depth + 1
        sys.setrecursionlimit(depth + 12)
        try:
            again = encode(deep)
            value = decode(data)
        finally:
            sys.setrecursionlimit(before)
        self.assertEqual(again, data)
        self.assertEqual(value, deep)


class Decoding(unittest.TestCase):
    def test_every_cut_is_refused(self):
        value = {"a": [1, 2.5, "é", b"x", None, True], "t": TensorValue("int16", (2,), b"abcd"), "u": ((), {}, [])}
        data = encode(value)
        for size in range(len(data)):
            with self.assertRaises(ValueError):
                decode(data[:size])
        with self.assertRaises(ValueError):
            decode(data + b"N")
        self.assertTrue(same(decode(data), value))
        self.assertTrue(same(decode(memoryview(bytearray(data))), value))

    def test_lying_lengths_cost_nothing(self):
        huge = b"\xff" * 8
        for data in (b"L" + huge, b"M" + huge, b"S" + huge, b"I" + huge, b"Y" + huge, b"T" + huge,
                     b"T" + bytes(7) + b"\x05uint8" + huge + bytes(100), b"L" + bytes(6) + b"\xff\xff" + b"N"):
            with self.assertRaises(ValueError):
                decode(data)


class Types(unittest.TestCase):
    def test_tensor_is_checked_when_it_is_made(self):
        for kind, arguments in (
            (TypeError, (1, (), b"")), (TypeError, ("uint8", [1], b"x")), (TypeError, ("uint8", (1,), bytearray(1))),
            (TypeError, ("uint8", (True,), b"x")), (TypeError, ("uint8", (1.0,), b"x")),
            (ValueError, ("complex64", (1,), bytes(8))), (ValueError, ("uint8", (-1,), b"")),
            (ValueError, ("uint8", (2,), b"x")), (ValueError, ("bool", (1,), b"\2")),
            (ValueError, ("uint8", (2**64, 0), b"")),
            (ValueError, ("float16", (2,), b"\0\0\0\x7c")), (ValueError, ("float32", (1,), b"\0\0\xc0\x7f")),
            (ValueError, ("float32", (1,), b"\0\0\x80\xff")), (ValueError, ("float64", (1,), bytes(6) + b"\xf0\x7f")),
        ):
            with self.assertRaises(kind, msg=arguments):
                TensorValue(*arguments)
        largest = struct.pack("<f", 3.4028234663852886e38) + struct.pack("<f", -3.4028234663852886e38)
        self.assertEqual(TensorValue("float32", (2,), largest).data, largest)
        self.assertEqual(TensorValue("float64", (), struct.pack("<d", -sys.float_info.max)).shape, ())
        self.assertEqual(TensorValue("uint8", (0, 2**40), b"").shape, (0, 2**40))

    def test_tensor_and_context_are_read_only_values(self):
        tensor = TensorValue("uint8", (2,), b"ab")
        context = PolicyContext([1], {"n": 2}, {"m": 1}, {"g": 9.8}, 2**64 - 1)
        for subject, name in ((tensor, "data"), (context, "metadata"), (context, "anything")):
            with self.assertRaises(AttributeError):
                setattr(subject, name, None)
            with self.assertRaises(AttributeError):
                delattr(subject, name)
        for mapping in (context.metadata, context.environment_parameters):
            with self.assertRaises(TypeError):
                mapping["x"] = 1
        for subject in (tensor, context):
            self.assertEqual(copy.deepcopy(subject), subject)
            self.assertEqual(pickle.loads(pickle.dumps(subject)), subject)
        self.assertEqual(len({tensor, TensorValue("uint8", (2,), b"ab"), TensorValue("uint8", (2, 1), b"ab")}), 2)
        self.assertNotEqual(context, PolicyContext([1], {"n": 2}, {"m": 1}, {"g": 9.8}, 0))
        self.assertEqual((context.policy_seed, context.metadata["m"]), (2**64 - 1, 1))

    def test_the_module_loads_nothing(self):
        code = ("import sys; before = set(sys.modules); sys.path.insert(0, sys.argv[1]); import evopolicygym.policy;"
                "print(sorted(set(sys.modules) - before))")
        path = os.path.join(SOURCE, "harness", "guest", "python")
        out = subprocess.run([sys.executable, "-B", "-I", "-S", "-c", code, path], stdout=subprocess.PIPE, check=True)
        self.assertEqual(out.stdout.decode().strip(), "['evopolicygym', 'evopolicygym.policy']")

    def test_a_policy_can_be_written_against_the_names(self):
        class Fixed(policy.Policy):
            def act(self, observation: policy.PolicyValue) -> policy.PolicyValue:
                return observation

        self.assertEqual(Fixed().act(3), 3)
        with self.assertRaises(NotImplementedError):
            policy.Policy().act(None)


if __name__ == "__main__":
    unittest.main(argv=["codec.py"], verbosity=0)
