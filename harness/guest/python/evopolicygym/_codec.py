"""PolicyValues to canonical bytes and back: the Python twin of harness/value (value.h says what the bytes are).

``encode`` raises TypeError for what is no PolicyValue and ValueError for one that is out of bounds; ``decode`` raises
ValueError for bytes that are not exactly one canonical value. Both are loops over a stack of their own, so neither a
deep value nor a low recursion limit matters.

An instance of a subclass (an IntEnum, an OrderedDict, a named tuple) counts as its plain base type, and nothing that it
overrides is asked. bool is a kind of its own and never an int. Bounds count as the Host counts: the root is at depth 0,
every value is a node, keys are none.
"""

from struct import Struct
from struct import error as _StructError

from .policy import TensorValue

MAX_DEPTH = 32
MAX_NODES = 65536
MAX_BYTES = 4 * 1024 * 1024

_head = Struct(">cQ").pack  # a tag, then a count or a length
_float = Struct(">cd").pack
_length = Struct(">Q").pack
_length_at = Struct(">Q").unpack_from
_float_at = Struct(">d").unpack_from
_INT_MIN = -(1 << 63)
_INT_MAX = (1 << 64) - 1
_INT_TEXT_MAX = 20
_MappingProxy = type(type.__dict__)


class _Key(bytes):
    """A map's key, encoded already, on its way through the encoder's loop."""

    __slots__ = ()


_EXACT = frozenset((type(None), bool, int, float, str, bytes, list, tuple, dict, TensorValue, _Key))


def _refusal(value):
    kind = type(value)
    module = getattr(kind, "__module__", None)
    name = kind.__name__ if module in (None, "builtins") else "%s.%s" % (module, kind.__name__)
    hint = ""
    if str(module).partition(".")[0] == "numpy":
        hint = ": convert it with .item() or .tolist(), or make a TensorValue"
    elif isinstance(value, (bytearray, memoryview)):
        hint = ": convert it with bytes()"
    elif isinstance(value, (set, frozenset)) or hasattr(kind, "__next__"):
        hint = ": convert it with list()"
    return TypeError("%s is not a PolicyValue%s" % (name, hint))


def _plain(value):
    """The plain value of an instance of a subclass, whatever that subclass overrides."""
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes.__getitem__(value, slice(None))
    if isinstance(value, list):
        return list.__getitem__(value, slice(None))
    if isinstance(value, tuple):
        return tuple.__getitem__(value, slice(None))
    if isinstance(value, dict):
        return dict(dict.items(value))
    if isinstance(value, _MappingProxy):
        return dict(value)
    raise _refusal(value)


def _plain_keys(mapping):
    """The same map with keys that are exactly str."""
    plain = {}
    for key, value in mapping.items():
        if not isinstance(key, str):
            raise TypeError("a map's keys must be str, not %s" % type(key).__name__)
        plain[str.__str__(key)] = value
    if len(plain) != len(mapping):
        raise ValueError("a map's keys must be unique")
    return plain


def _map_items(mapping):
    """Its keys, encoded, and values in turn, in the order of the keys' UTF-8 bytes, which is that of their text."""
    for key in mapping:
        if type(key) is not str:
            mapping = _plain_keys(mapping)
            break
    items = []
    for key in sorted(mapping):
        text = key.encode()
        items.append(_Key(_length(len(text)) + text))
        items.append(mapping[key])
    return items


def _tensor(value):
    dtype = value.dtype.encode()
    parts = [_head(b"T", len(dtype)), dtype, _length(len(value.shape))]
    for dimension in value.shape:
        text = b"%d" % dimension
        parts.append(_length(len(text)))
        parts.append(text)
    parts.append(_length(len(value.data)))
    parts.append(value.data)
    return b"".join(parts)


def _encode(value, max_depth, max_nodes, max_bytes):
    parts = []
    put = parts.append
    stack = []  # iterators of the containers around `items`
    items = iter((value,))
    nodes = 1
    size = 0  # of what is long only: bounds memory before the end tells the whole
    while True:
        for value in items:
            kind = type(value)
            if kind not in _EXACT:
                value = _plain(value)
                kind = type(value)
            if kind is float:
                if value - value != 0.0:
                    raise ValueError("a float must be finite, not %r" % value)
                put(_float(b"F", value))
            elif kind is int:
                if not _INT_MIN <= value <= _INT_MAX:
                    raise ValueError("an int must be -2**63 .. 2**64-1")
                text = b"%d" % value
                put(_head(b"I", len(text)) + text)
            elif kind is str:
                text = value.encode()
                size += len(text)
                put(_head(b"S", len(text)))
                put(text)
            elif kind is bool:
                put(b"B1" if value else b"B0")
            elif value is None:
                put(b"N")
            elif kind is _Key:
                size += len(value)
                put(value)
            elif kind is bytes:
                size += len(value)
                put(_head(b"Y", len(value)))
                put(value)
            elif kind is TensorValue:
                text = _tensor(value)
                size += len(text)
                put(text)
            else:
                count = len(value)
                put(_head(b"L" if kind is list else b"U" if kind is tuple else b"M", count))
                if count:
                    nodes += count
                    if nodes > max_nodes:
                        raise ValueError("the value has over %d nodes" % max_nodes)
                    if len(stack) >= max_depth:
                        raise ValueError("the value is over %d levels deep" % max_depth)
                    stack.append(items)
                    items = iter(_map_items(value) if kind is dict else value)
                    break
            if size > max_bytes:
                raise ValueError("the value is over %d bytes" % max_bytes)
        else:
            if not stack:
                return b"".join(parts)
            items = stack.pop()


_SMALL_INTS = tuple(_head(b"I", len(b"%d" % number)) + b"%d" % number for number in range(256))


def encode(value, max_depth=MAX_DEPTH, max_nodes=MAX_NODES, max_bytes=MAX_BYTES):
    """The canonical bytes of one value."""
    if type(value) is int and 0 <= value < 256:  # most Actions are one: it is worth a shorter way
        return _SMALL_INTS[value]
    try:
        encoded = _encode(value, max_depth, max_nodes, max_bytes)
    except UnicodeEncodeError as error:
        raise ValueError("a string must be valid Unicode: it holds %a" % error.object[error.start]) from None
    if len(encoded) > max_bytes:
        raise ValueError("the value is over %d bytes" % max_bytes)
    return encoded


def _int_of(text):
    """What canonical decimal text says."""
    if len(text) > _INT_TEXT_MAX or not text.lstrip(b"-").isdigit():
        raise ValueError("int isn't canonical decimal text")
    number = int(text)
    if b"%d" % number != text or not _INT_MIN <= number <= _INT_MAX:
        raise ValueError("int isn't canonical decimal text of -2**63 .. 2**64-1")
    return number


def _tensor_at(data, at):
    """The tensor whose dtype's length stands at `at`, and where it ends."""

    def take(at):
        end = at + 8 + _length_at(data, at)[0]
        if end > len(data):
            raise ValueError("tensor is cut short")
        return bytes(data[at + 8 : end]), end

    dtype, at = take(at)
    (rank,) = _length_at(data, at)
    at += 8
    shape = []
    for _ in range(min(rank, len(data))):
        text, at = take(at)
        shape.append(_int_of(text))
    content, at = take(at)
    return TensorValue(dtype.decode(), tuple(shape), content), at


def _decode(data, max_depth, max_nodes):
    total = len(data)
    at = 0
    stack = []  # (kind, items, left, key) of the containers around the innermost
    kind = 0  # of the innermost container: its tag; 0 at the root
    items = None
    left = 0
    key = None
    nodes = 1
    while True:
        if kind == 77:  # M: the key comes first
            start = at + 8
            at = start + _length_at(data, at)[0]
            if at > total:
                raise ValueError("a key is cut short")
            text = str(data[start:at], "utf-8")
            if key is not None and text <= key:
                raise ValueError("keys aren't unique and in order")
            key = text
        tag = data[at]
        at += 1
        if tag == 70:  # F
            (value,) = _float_at(data, at)
            if value - value != 0.0:
                raise ValueError("a float isn't finite")
            at += 8
        elif tag == 73 or tag == 83 or tag == 89:  # I S Y
            start = at + 8
            at = start + _length_at(data, at)[0]
            if at > total:
                raise ValueError("a value is cut short")
            value = data[start:at]
            if tag == 83:
                value = str(value, "utf-8")
            elif tag == 73:
                value = _int_of(value)
        elif tag == 66:  # B
            truth = data[at]
            if truth != 48 and truth != 49:
                raise ValueError("a bool is neither '0' nor '1'")
            value = truth == 49
            at += 1
        elif tag == 78:  # N
            value = None
        elif tag == 84:  # T
            value, at = _tensor_at(data, at)
        elif tag == 76 or tag == 85 or tag == 77:  # L U M
            (count,) = _length_at(data, at)
            at += 8
            value = {} if tag == 77 else []
            if count:
                nodes += count
                if nodes > max_nodes:
                    raise ValueError("the value has over %d nodes" % max_nodes)
                if len(stack) >= max_depth:
                    raise ValueError("the value is over %d levels deep" % max_depth)
                stack.append((kind, items, left, key))
                kind, items, left, key = tag, value, count, None
                continue
            if tag == 85:
                value = ()
        else:
            raise ValueError("no kind of value starts with byte %d" % tag)
        while kind:
            if kind == 77:
                items[key] = value
            else:
                items.append(value)
            left -= 1
            if left:
                break
            value = tuple(items) if kind == 85 else items
            kind, items, left, key = stack.pop()
        else:
            if at != total:
                raise ValueError("bytes follow the value")
            return value


def decode(data, max_depth=MAX_DEPTH, max_nodes=MAX_NODES, max_bytes=MAX_BYTES):
    """The one value that the canonical bytes `data` (bytes) are."""
    if type(data) is not bytes:
        data = bytes(data)
    if len(data) > max_bytes:
        raise ValueError("the value is over %d bytes" % max_bytes)
    try:
        return _decode(data, max_depth, max_nodes)
    except (IndexError, _StructError):
        raise ValueError("the value is cut short") from None
    except UnicodeDecodeError:
        raise ValueError("a string isn't valid UTF-8") from None
