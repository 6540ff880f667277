"""Checked values and their bytes, for authoring and the runner.

What an author hands over is encoded once, where it is checked: those bytes are what is sent. A list of floats, an int
and a null are what most steps are made of and have a shorter way.
"""

from collections.abc import Mapping
from struct import Struct

from ._codec import decode, encode
from .policy import TensorValue

TRUSTED_DEPTH, TRUSTED_NODES, TRUSTED_BYTES = 60, (1 << 32) - 1, 64 * 1024 * 1024
CONTENT_LIMITS = 32, 1_000_000, 16 * 1024 * 1024
_FRAME_DEPTH = 64  # of what holds a trusted value, or several, on its way
U64_MAX = (1 << 64) - 1

_length = Struct(">Q").pack
_double = Struct(">d").pack
_float_packers = [Struct(">cQ" + "cd" * count).pack for count in range(65)]
_ints = {encode(number): number for number in range(256)}


def key(name):
    text = name.encode()
    return _length(len(text)) + text


def _plainer(value, depth=0):
    """The same value with every kind of Mapping as a dict."""
    if depth > TRUSTED_DEPTH:
        return value  # refused for its depth where it is encoded
    if isinstance(value, Mapping):
        return {name: _plainer(item, depth + 1) for name, item in value.items()}
    if type(value) is list:
        return [_plainer(item, depth + 1) for item in value]
    if type(value) is tuple:
        return tuple(_plainer(item, depth + 1) for item in value)
    return value


# --- Maps of strings to plain scalars, as observations and metrics often are ---


class _Keys:
    """What the bytes of a map with these keys share: its head and keys, and the order of the keys where that differs."""

    __slots__ = ("head", "starts", "order")

    def __init__(self, keys):
        ordered = sorted(keys)
        self.head = b"M" + _length(len(keys))
        self.starts = [(name, key(name)) for name in ordered]
        self.order = None if ordered == list(keys) else encode(([list(keys)], b"\0"))


_known_keys = {}  # by the keys as they stand; None for those with none or with another key than a str
_KNOWN_MOST = 1000


def _keys_of(value):
    keys = tuple(value)
    if keys not in _known_keys:
        if len(_known_keys) >= _KNOWN_MOST:
            _known_keys.clear()
        plain = keys and len(keys) <= 64 and all(type(name) is str and name.isprintable() for name in keys)
        _known_keys[keys] = _Keys(keys) if plain else None
    return _known_keys[keys]


def _flat_bytes(value, keys):
    """The bytes of such a map; None when a value is of another kind, or out of bounds."""
    parts = [keys.head]
    for name, start in keys.starts:
        item = value[name]
        kind = type(item)
        if kind is float and item - item == 0.0:
            parts += start, b"F", _double(item)
        elif kind is int and 0 <= item < 256:
            parts += start, encode(item)
        elif kind is bool:
            parts += start, b"B1" if item else b"B0"
        elif item is None:
            parts += start, b"N"
        elif kind is str and len(item) < 256 and item.isascii():
            parts += start, b"S", _length(len(item)), item.encode()
        else:
            return None
    return b"".join(parts)


def _encode(value, *limits):
    if type(value) is dict:
        keys = _keys_of(value)
        flat = keys and _flat_bytes(value, keys)
        if flat:
            return flat
    try:
        return encode(value, *limits)
    except TypeError:
        return encode(_plainer(value), *limits)


def _told(error, name):
    return type(error)("%s: %s" % (name, error))


def public_bytes(value, name):
    """The bytes of what a Policy may be sent."""
    if type(value) is list and 0 < len(value) <= 64 and set(map(type, value)) == {float}:
        total = sum(value)
        if total - total == 0.0:  # so each of them is finite
            parts = [b"F"] * (2 * len(value))
            parts[1::2] = value
            return _float_packers[len(value)](b"L", len(value), *parts)
    try:
        return _encode(value)
    except (TypeError, ValueError) as error:
        raise _told(error, name) from None


def trusted_bytes(value, name, limits=(TRUSTED_DEPTH, TRUSTED_NODES, TRUSTED_BYTES)):
    """The bytes of what stays between Benchmark and Host."""
    if value is None:
        return b"N"
    try:
        return _encode(value, *limits)
    except (TypeError, ValueError) as error:
        raise _told(error, name) from None


def value_of(data):
    """The value of bytes that the Host has checked."""
    known = _ints.get(data)
    return decode(data, _FRAME_DEPTH, TRUSTED_NODES, 1 << 30) if known is None else known


# --- The order of keys ---
#
# Canonical bytes have a map's keys in their own order. A package that writes its records into an artifact may show the
# order in which it made its maps, so that order goes along where it differs: beside what is private to the Benchmark,
# its scenarios and metrics, and there for the observations too.

_MARK = "evopolicygym/ordered/v1"
_PLAIN = frozenset((type(None), bool, int, float, str, bytes, TensorValue))


def _collect(value, table, found):
    """Adds the keys of every map, outermost first; true when one has them in another order than the canonical."""
    if type(value) in _PLAIN:
        return False
    differs = False
    if isinstance(value, Mapping):
        keys = tuple(value)
        found.append(table.setdefault(keys, len(table)))
        differs = list(keys) != sorted(keys)
        items = value.values()
    elif isinstance(value, (list, tuple)):
        items = value
    else:
        items = ()
    if _PLAIN.issuperset(map(type, items)):
        return differs
    for item in items:
        if type(item) not in _PLAIN:
            differs |= _collect(item, table, found)
    return differs


def orders_of(value):
    """What with_orders needs; None when there is nothing to tell. The value was encoded before: it is not too deep."""
    if type(value) in _PLAIN:
        return None
    table, found = {}, []
    if not _collect(value, table, found):
        return None
    return [list(keys) for keys in table], bytes(found) if len(table) <= 256 else found


def with_orders(value, orders):
    """The decoded value with the keys of its maps as they were."""
    if orders is None:
        return value
    table, found = orders
    following = iter(found)

    def restore(value):
        if type(value) is dict:
            return {key: restore(value[key]) for key in table[next(following)]}
        if type(value) is list:
            return [restore(item) for item in value]
        if type(value) is tuple:
            return tuple(restore(item) for item in value)
        return value

    return restore(value)


def key_sets(value):
    """Of every map of two keys or more: its keys, as a set, and as they stand. What was sent before is not too deep."""
    found = {}
    if isinstance(value, Mapping):
        if len(value) > 1:
            found[frozenset(value)] = list(value)
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return found
    for item in value:
        found.update(key_sets(item))
    return found


def with_key_orders(value, orders):
    """The decoded value with the keys of its maps as `orders`, the result of key_sets on another one, has them."""
    if type(value) is dict:
        return {key: with_key_orders(value[key], orders) for key in orders.get(frozenset(value), value)}
    if type(value) in (list, tuple):
        return type(value)(with_key_orders(item, orders) for item in value)
    return value


_MARKED = b"U" + _length(5) + encode(_MARK)


def private_bytes(value, name, observation=None, initial=None):
    """The bytes of a scenario or metrics, with orders: its own, and those of the observations that go with it."""
    keys = _keys_of(value) if type(value) is dict else None
    data = _flat_bytes(value, keys) if keys else None
    if data:
        own = keys.order
    else:
        data, own = trusted_bytes(value, name), orders_of(value)
        own = own and trusted_bytes(own, name)
    if own is observation is initial is None and not (type(value) is tuple and value[:1] == (_MARK,)):
        return data
    return b"".join((_MARKED, data, own or b"N", trusted_bytes(observation, name), trusted_bytes(initial, name)))


def private_value(value):
    """The value of private_bytes, decoded: itself, and the orders of the observations."""
    if type(value) is tuple and len(value) == 5 and value[0] == _MARK:
        return with_orders(value[1], value[2]), value[3], value[4]
    return value, None, None


def _wrong_type(name, wanted, value, convert):
    kind = type(value)
    hint = ": convert it with %s()" % convert if str(kind.__module__).partition(".")[0] == "numpy" else ""
    return TypeError("%s must be %s, not %s%s" % (name, wanted, kind.__name__, hint))


def finite(value, name):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong_type(name, "a number", value, "float")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("%s must be finite" % name) from None
    if number - number != 0.0:
        raise ValueError("%s must be finite, not %r" % (name, number))
    return number


def text(value, name, one_line=False):
    if not isinstance(value, str):
        raise TypeError("%s must be a str, not %s" % (name, type(value).__name__))
    if not value.strip():
        raise ValueError("%s must not be empty" % name)
    if "\0" in value or (one_line and ("\n" in value or "\r" in value)):
        raise ValueError("%s must be one line without NUL" % name if one_line else "%s must not hold NUL" % name)
    value.encode()  # UnicodeEncodeError is a ValueError
    return value


def integer(value, name, least, most):
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong_type(name, "an int", value, "int")
    if not least <= value <= most:
        raise ValueError("%s must be %d .. %d" % (name, least, most))
    return int(value)


def boolean(value, name):
    if value is not True and value is not False:
        raise _wrong_type(name, "a bool", value, "bool")
    return value
