"""Checked values and their bytes, for authoring and the runner.

What an author hands over is encoded once, where it is checked: those bytes are what is sent. A list of floats, an int
and a null are what most steps are made of and have a shorter way.
"""

from collections.abc import Mapping
from struct import Struct

from ._codec import decode, encode

TRUSTED_DEPTH, TRUSTED_NODES, TRUSTED_BYTES = 64, (1 << 32) - 1, 64 * 1024 * 1024
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


def _encode(value, *limits):
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


def trusted_bytes(value, name):
    """The bytes of what stays between Benchmark and Host."""
    if value is None:
        return b"N"
    try:
        return _encode(value, TRUSTED_DEPTH, TRUSTED_NODES, TRUSTED_BYTES)
    except (TypeError, ValueError) as error:
        raise _told(error, name) from None


def value_of(data):
    """The value of bytes that the Host has checked."""
    known = _ints.get(data)
    return decode(data, TRUSTED_DEPTH, TRUSTED_NODES, 1 << 30) if known is None else known


def finite(value, name):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError("%s must be a number, not %s" % (name, type(value).__name__))
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
        raise TypeError("%s must be an int, not %s" % (name, type(value).__name__))
    if not least <= value <= most:
        raise ValueError("%s must be %d .. %d" % (name, least, most))
    return int(value)


def boolean(value, name):
    if value is not True and value is not False:
        raise TypeError("%s must be a bool, not %s" % (name, type(value).__name__))
    return value
