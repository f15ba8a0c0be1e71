"""Made-up tables and operations on them, which datasets.Dataset and its stand-in must answer alike."""
import random


def value(draw, kind):
    if draw.random() < 0.1:
        return None
    if kind == "text":
        return draw.choice(["", "a", "é x", "long text"])
    if kind == "integer":
        return draw.randint(-5, 5)
    if kind == "float":
        return draw.choice([0.5, 1.0, 2.25])
    if kind == "boolean":
        return draw.random() < 0.5
    if kind == "texts":
        return [draw.choice("abc") for _ in range(draw.randint(0, 3))]
    if kind == "object":
        return {"x": draw.randint(0, 3), "y": draw.choice("ab")}
    return [{"t": draw.choice("ab"), "n": draw.randint(0, 2)} for _ in range(draw.randint(0, 2))]


def tables(seed, count):
    draw = random.Random(seed)
    kinds = ["text", "integer", "float", "boolean", "texts", "object", "objects"]
    for _ in range(count):
        columns = {f"c{i}": draw.choice(kinds) for i in range(draw.randint(1, 4))}
        yield [{name: value(draw, kind) for name, kind in columns.items()} for _ in range(draw.randint(1, 6))]


def add_in_place(row):
    row["new"] = str(row["c0"]) + "!"
    return row


def add_and_change(row):
    return {"new": [len(str(member)) for member in row.values()], "c0": str(row["c0"])}


def change_in_place_and_return_another(row):
    row["c0"] = None
    return {"z": 1}


def change_in_place_and_return_nothing(row):
    row["c0"] = None


def remove_in_place(row):
    row.pop("c0")
    return row


OPERATIONS = {
    "map, the row itself": lambda rows: rows.map(add_in_place),
    "map, another type": lambda rows: rows.map(add_and_change),
    "map, in place and another": lambda rows: rows.map(change_in_place_and_return_another),
    "map, nothing": lambda rows: rows.map(change_in_place_and_return_nothing),
    "map, removed in place": lambda rows: rows.map(remove_in_place),
    "map, tuples": lambda rows: rows.map(lambda row: {"t": (1, 2), "n": {"k": str(row["c0"]), "m": None}}),
    "map, other columns": lambda rows: rows.map(lambda row: {"opt": 1} if row["c0"] else {"opt": None, "other": "x"}),
    "map, whole numbers and floats": lambda rows: rows.map(lambda row: {"n": 1 if row["c0"] else 2.5}),
    "map, numbers and texts": lambda rows: rows.map(lambda row: {"n": 1 if row["c0"] else "x"}),
    "map, other members": lambda rows: rows.map(lambda row: {"q": {"a": 1} if row["c0"] else {"b": [1]}}),
    "map, all columns removed": lambda rows: rows.map(add_and_change, remove_columns=rows.column_names),
    "map, with indices": lambda rows: rows.map(lambda row, i: {"i": i}, with_indices=True),
    "map, batched": lambda rows: rows.map(lambda batch: {"n": [str(v) for v in batch["c0"]]}, batched=True),
    "map, more rows": lambda rows: rows.map(lambda batch: {"n": batch["c0"] * 2}, batched=True, remove_columns=rows.column_names),
    "filter": lambda rows: rows.filter(lambda row: row["c0"]),
    "filter, with indices": lambda rows: rows.filter(lambda row, i: i % 2, with_indices=True),
    "filter, of a column": lambda rows: rows.filter(lambda v: v is not None, input_columns="c0"),
    "select": lambda rows: rows.select(range(0, len(rows), 2)),
    "rename": lambda rows: rows.rename_column("c0", "zz"),
    "remove a column": lambda rows: rows.remove_columns("c0"),
    "remove columns": lambda rows: rows.remove_columns(["c0"]),
    "add a column": lambda rows: rows.add_column("more", [i * 2 for i in range(len(rows))]),
    "select columns": lambda rows: rows.select_columns(["c0"]),
    "split in order": lambda rows: rows.train_test_split(test_size=0.3, shuffle=False)["train"],
    "take": lambda rows: rows.take(2),
}
# These take their order from numpy.
DRAWN = {
    "shuffle": lambda rows: rows.shuffle(seed=42),
    "split, a row": lambda rows: rows.train_test_split(test_size=1, seed=3)["train"],
    "split, a share": lambda rows: rows.train_test_split(test_size=0.4, seed=3)["test"],
}


def shown(made):
    """All that can be seen of a table, or None if the operation failed."""
    try:
        table = made()
        column = table["c0"][:] if "c0" in table.column_names else None
        return [table.column_names, [dict(row) for row in table], column, table[0:2], len(table)]
    except Exception:
        return None
