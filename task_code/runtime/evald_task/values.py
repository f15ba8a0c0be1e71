"""Values of Python as JSON. A value that JSON would change (a tuple, a set, a number beyond 64 bits, NaN, an object) goes
as the nearest JSON, for people and templates, and as a pickle, for functions that get the value back.

Pickles are made and read in this process alone: evald keeps them and does not look into them.
"""
import base64
import math
import pickle

LEAST, MOST = -(1 << 63), (1 << 63) - 1


class NoValue(ValueError):
    """A value that neither JSON nor pickle can hold."""


def pack(value):
    """[json] or [json, pickle in base64]."""
    shown, faithful = as_json(value)
    if faithful:
        return [shown]
    try:
        kept = pickle.dumps(value, protocol=4)
    except Exception as error:
        raise NoValue(f"a value of type {type(value).__name__} cannot be kept: {error}") from None
    return [shown, base64.b64encode(kept).decode()]


def unpack(packed):
    return packed[0] if len(packed) == 1 else pickle.loads(base64.b64decode(packed[1]))


def as_json(value):
    """The nearest JSON, and whether reading that JSON gives an equal value of the same types."""
    kind = type(value)
    if value is None or kind is bool:
        return value, True
    if kind is int:
        return (value, True) if LEAST <= value <= MOST else (str(value), False)
    if kind is float:
        return (value, True) if math.isfinite(value) else (str(value), False)
    if kind is str:
        return text_as_json(value)
    if kind is list:
        return list_as_json(value, True)
    if kind is dict:
        return dict_as_json(value)
    return other_as_json(value)


def text_as_json(value):
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return value.encode(errors="replace").decode(), False
    return value, True


def list_as_json(values, faithful):
    items = []
    for value in values:
        shown, same = as_json(value)
        items.append(shown)
        faithful = faithful and same
    return items, faithful


def dict_as_json(values):
    members, faithful = {}, True
    for name, value in values.items():
        key, same_key = as_json(name) if type(name) is str else (str(name), False)
        members[key], same = as_json(value)
        faithful = faithful and same and same_key
    return members, faithful


def other_as_json(value):
    if isinstance(value, (tuple, set, frozenset)):
        return list_as_json(sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value, False)
    if isinstance(value, bool):
        return bool(value), False
    for kind in (int, float, str, list, dict):
        if isinstance(value, kind):
            return as_json(kind(value))[0], False
    if hasattr(value, "tolist"):  # numpy
        return as_json(value.tolist())[0], False
    if hasattr(value, "items"):
        return dict_as_json(value)[0], False
    return str(value), False
