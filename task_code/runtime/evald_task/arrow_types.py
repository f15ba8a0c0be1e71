"""The types that the package datasets gives to the values of a table: one type for each column, as pyarrow infers it. A
column whose values have no type in common, or whose objects have different keys, keeps its values as they are (the
package's type Json)."""


class Mixed(ValueError):
    """Values that have no type in common."""


def typed_rows(rows, names):
    """The rows with these columns, each of one type; None for what a row lacks."""
    columns = [typed([row.get(name) for row in rows]) for name in names]
    return [dict(zip(names, row)) for row in zip(*columns)]


def typed(values):
    """The values of one column with their common type."""
    values = [plain(value) for value in values]
    try:
        return unified(values)
    except Mixed:
        return values


def unified(values):
    kinds = {kind_of(value) for value in values if value is not None}
    if kinds == {"int", "float"}:
        return [float(value) if value is not None else None for value in values]
    if len(kinds) > 1:
        raise Mixed
    if kinds == {"list"}:
        items = iter(unified([item for value in values if value is not None for item in value]))
        return [None if value is None else [next(items) for _ in value] for value in values]
    if kinds == {"dict"}:
        return unified_objects(values)
    return values


def unified_objects(values):
    names = next(list(value) for value in values if value is not None)
    if any(value is not None and set(value) != set(names) for value in values):
        raise Mixed
    members = {name: unified([(value or {}).get(name) for value in values]) for name in names}
    return [None if value is None else {name: members[name][i] for name in names} for i, value in enumerate(values)]


def cast(values, like):
    """The values as the kind of `like`, another column, if Arrow's safe casts can do that for all of them; else as they
    are. Numbers and booleans do not become text (TypedSequence of the package datasets)."""
    kinds = {kind_of(value) for value in like if value is not None}
    try:
        if kinds == {"list"}:
            kind = only_kind([item for value in like if value is not None for item in value])
            return [as_list(value, kind) for value in values]
        kind = only_kind(like)
        return [as_kind(value, kind) for value in values]
    except (TypeError, ValueError, KeyError):
        return values


def only_kind(values):
    kinds = {kind_of(value) for value in values if value is not None}
    return kinds.pop() if len(kinds) == 1 else None


def as_kind(value, kind):
    if value is None or kind_of(value) == kind:
        return value
    if kind == "bool":
        return as_bool(value)
    if kind == "int" and (isinstance(value, str) or value == int(value)):
        return int(value)
    if kind == "float" and isinstance(value, (str, int)):
        return float(value)
    raise TypeError(f"{value!r} is no {kind}")


def as_list(value, kind):
    if value is None:
        return None
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return [as_kind(item, kind) for item in value]


def as_bool(value):
    if isinstance(value, str):
        return {"true": True, "1": True, "false": False, "0": False}[value.lower()]
    return bool(value)


def kind_of(value):
    for kind in (bool, int, float, str, bytes, list, dict):
        if isinstance(value, kind):
            return kind.__name__
    return type(value).__name__


def plain(value):
    """Tuples and numpy's arrays as lists, numpy's scalars as Python's, mappings as dictionaries."""
    if hasattr(value, "tolist") and not isinstance(value, (str, bytes)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "items"):
        return {name: plain(member) for name, member in value.items()}
    return value
