"""What a Policy Program imports.

A Program's ``policy.py`` defines ``make_policy(context: PolicyContext) -> Policy``. The Policy's ``act(observation)``
returns one Action. Observations and Actions are PolicyValues::

    None | bool | int | float | str | bytes | TensorValue | list | tuple | dict with str keys

with ints of -2**63 .. 2**64-1 and finite floats. This module needs nothing but the interpreter itself, and imports
nothing: a fresh Policy process is ready the sooner.
"""

POLICY_ABI_VERSION = "policy/v2"

__all__ = ["POLICY_ABI_VERSION", "Policy", "PolicyContext", "PolicyValue", "TensorValue"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Mapping, Tuple, Union

    PolicyValue = Union[
        None, bool, int, float, str, bytes, "TensorValue", List["PolicyValue"], Tuple["PolicyValue", ...],
        Dict[str, "PolicyValue"],
    ]
else:

    class PolicyValue:
        """The name of the union above, for annotations: values are the ordinary Python types, never instances of it."""

        def __new__(cls, *arguments, **keywords):
            raise TypeError("PolicyValue names a union of ordinary types and has no instances")


# Of an item's top byte: which of its values are those of finite numbers only.
_FINITE_16 = bytes(byte for byte in range(256) if byte & 0x7C != 0x7C)
_FINITE_32 = bytes(byte for byte in range(256) if byte & 0x7F != 0x7F)

# Bytes of one item; for floating types also the table above, and the exponent's bits in the item's top two bytes.
_DTYPES = {
    "bool": (1, None, 0),
    "uint8": (1, None, 0),
    "uint16": (2, None, 0),
    "uint32": (4, None, 0),
    "uint64": (8, None, 0),
    "int8": (1, None, 0),
    "int16": (2, None, 0),
    "int32": (4, None, 0),
    "int64": (8, None, 0),
    "float16": (2, _FINITE_16, 0x7C00),
    "float32": (4, _FINITE_32, 0x7F80),
    "float64": (8, _FINITE_32, 0x7FF0),
}
_MappingProxy = type(type.__dict__)  # types.MappingProxyType, without loading `types`


class _Dataclass:
    """Makes a class one in the eyes of `dataclasses` (fields, replace, asdict), which is loaded only when asked for."""

    def __init__(self, which):
        self.which = which

    def __get__(self, instance, owner):
        from dataclasses import make_dataclass

        for kind in owner.__mro__:
            if self.which in kind.__dict__:
                made = make_dataclass(kind.__name__, kind.__match_args__, frozen=True)
                for name in ("__dataclass_fields__", "__dataclass_params__"):
                    setattr(kind, name, getattr(made, name))
                return getattr(kind, self.which)


def _refuse_change(self, name, *value):
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError("%s is immutable: %s can't be changed" % (type(self).__name__, name))


def _finite(data, size, finite_tops, exponent):
    """Whether no item has all its exponent's bits set; almost always told by the top bytes alone."""
    tops = data[size - 1 :: size]
    if not tops.translate(None, finite_tops):
        return True
    seconds = data[size - 2 :: size]
    return not any((top << 8 | second) & exponent == exponent for top, second in zip(tops, seconds))


class TensorValue:
    """An immutable dense array: `data` holds the items in C order, little-endian.

    Without numpy: ``TensorValue("uint8", (2, 2), bytes([1, 2, 3, 4]))``. With it:
    ``TensorValue(str(a.dtype), a.shape, a.tobytes())`` and ``numpy.frombuffer(t.data, t.dtype).reshape(t.shape)``.
    """

    __slots__ = __match_args__ = ("dtype", "shape", "data")
    __dataclass_fields__, __dataclass_params__ = map(_Dataclass, ("__dataclass_fields__", "__dataclass_params__"))

    def __init__(self, dtype: "str", shape: "tuple", data: "bytes") -> "None":
        if not isinstance(dtype, str):
            raise TypeError("TensorValue: dtype must be a str, not " + type(dtype).__name__)
        if not isinstance(shape, tuple):
            raise TypeError("TensorValue: shape must be a tuple of ints, not " + type(shape).__name__)
        if not isinstance(data, bytes):
            raise TypeError("TensorValue: data must be bytes, not " + type(data).__name__)
        if dtype not in _DTYPES:
            raise ValueError("TensorValue: dtype %.40r is not one of %s" % (dtype, ", ".join(_DTYPES)))
        size, finite_tops, exponent = _DTYPES[dtype]
        items = 1
        for dimension in shape:
            if type(dimension) is not int:
                raise TypeError("TensorValue: a dimension must be an int, not " + type(dimension).__name__)
            if not 0 <= dimension < 1 << 64:
                raise ValueError("TensorValue: a dimension must be 0 .. 2**64-1")
            items *= dimension
        if len(data) != items * size:
            raise ValueError("TensorValue: %s needs %d bytes of data, not %d" % (dtype, items * size, len(data)))
        if dtype == "bool" and data.translate(None, b"\0\1"):
            raise ValueError("TensorValue: a bool is stored as the byte 0 or 1")
        if exponent and not _finite(data, size, finite_tops, exponent):
            raise ValueError("TensorValue: %s data must be finite" % dtype)
        put = object.__setattr__
        put(self, "dtype", str(dtype))
        put(self, "shape", tuple(shape))
        put(self, "data", bytes(data))

    __setattr__ = __delattr__ = _refuse_change

    def __eq__(self, other):
        if type(other) is not TensorValue:
            return NotImplemented
        return self.dtype == other.dtype and self.shape == other.shape and self.data == other.data

    def __hash__(self):
        return hash((self.dtype, self.shape, self.data))

    def __repr__(self):
        return "TensorValue(dtype=%r, shape=%r, data=<%d bytes>)" % (self.dtype, self.shape, len(self.data))

    def __reduce__(self):
        return TensorValue, (self.dtype, self.shape, self.data)


class PolicyContext:
    """What make_policy is told: the spaces, two read-only mappings, and the seed for the Policy's own randomness."""

    __slots__ = __match_args__ = (
        "observation_space", "action_space", "metadata", "environment_parameters", "policy_seed",
    )
    __dataclass_fields__, __dataclass_params__ = map(_Dataclass, ("__dataclass_fields__", "__dataclass_params__"))

    def __init__(
        self,
        observation_space: "PolicyValue",
        action_space: "PolicyValue",
        metadata: "Mapping[str, PolicyValue]",
        environment_parameters: "Mapping[str, PolicyValue]",
        policy_seed: "int",
    ) -> "None":
        put = object.__setattr__
        put(self, "observation_space", observation_space)
        put(self, "action_space", action_space)
        put(self, "metadata", _MappingProxy(dict(metadata)))
        put(self, "environment_parameters", _MappingProxy(dict(environment_parameters)))
        put(self, "policy_seed", policy_seed)

    __setattr__ = __delattr__ = _refuse_change

    def __eq__(self, other):
        if type(other) is not PolicyContext:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in PolicyContext.__slots__)

    __hash__ = None

    def __repr__(self):
        return "PolicyContext(%s)" % ", ".join("%s=%r" % (name, getattr(self, name)) for name in self.__slots__)

    def __reduce__(self):
        return PolicyContext, (
            self.observation_space,
            self.action_space,
            dict(self.metadata),
            dict(self.environment_parameters),
            self.policy_seed,
        )


class Policy:
    """What make_policy returns: an object with this method. Subclassing is allowed and not needed."""

    def act(self, observation: "PolicyValue") -> "PolicyValue":
        """Returns the Action for one observation."""
        raise NotImplementedError("%s has no act(observation)" % type(self).__name__)
