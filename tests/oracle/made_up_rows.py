"""Made-up documents for any task of lm-evaluation-harness: the form of the columns comes from the task's templates and functions.

Form.of(config) makes a kind for each column from what the task does with the column (document_shapes.py) and from its name.
refine() corrects this: as long as a given check fails on the rows, the column that the error names, whose value it quotes, or
a random one, gets another kind. Everything is seeded by the task's name.

A kind is a list with a name and what belongs to it: ["dict", {key: kind}], ["list", kind, least, most], ["one", values].
"""

import copy
import inspect
import json
import random
import re
import time
import traceback

import document_shapes
from document_shapes import source_of  # noqa: F401

WORDS = "red blue tall  house river 12 1,400 3.5 the a An [step] [title] café naïve “quoted” don't it's x² 日本 end. why?".split(" ")
LISTS = re.compile(r"choices|options|endings|answers|candidates|distractors|entities|texts|targets|references|tokens|list", re.I)
NUMBERS = re.compile(r"^(label|gold|answer_?(idx|index|key|no|num\w*)|\w*_?(idx|index)|correct|truth|year|score)$", re.I)
NOT_COLUMNS = {"int", "str", "len", "range", "loop", "doc"}
MATH = re.compile(r"boxed")
BOXED = [r"\boxed{\frac{1}{2}}", r"\boxed{12}", r"\boxed{3\sqrt5}", r"\boxed{0.5}", r"\boxed{x=3}"]


def text(draw, least=2, most=9):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(least, most)))


def at(row, path):
    """The values at a path of a row; "*" stands for the elements of a list."""
    values = [row]
    for step in path:
        found = []
        for value in values:
            if step == "*":
                found += value if isinstance(value, list) else []
            elif isinstance(value, dict) and step in value:
                found.append(value[step])
        values = found
    return values


def value(kind, draw, row):
    """A value of a kind. `row` has the columns made before."""
    name, *rest = kind
    if name == "text":
        return text(draw)
    if name == "with":  # a text that contains others
        return text(draw, 1, 4) + "".join(f" {part} {text(draw, 1, 3)}" for part in rest[0])
    if name == "starts":
        return draw.choice(rest[0]) + text(draw)
    if name == "boxed":
        return f"{text(draw)} ${draw.choice(BOXED)}$."
    if name == "word":
        return text(draw, 1, 1) or "x"
    if name == "int":
        return draw.randrange(rest[0])
    if name == "digit":
        return str(draw.randrange(rest[0]))
    if name == "float":
        return draw.choice([0.0, 0.5, 1.0, 2.5, 4.75])
    if name == "bool":
        return draw.random() < 0.5
    if name == "letter":
        return draw.choice("ABCD")
    if name == "one":
        return draw.choice(rest[0])
    if name == "labels":
        return list("ABCD")
    if name == "texts":
        return [text(draw, 1, 4) or "x" for _ in range(rest[0])]
    if name == "ints":
        return [draw.randrange(2) for _ in range(rest[0])]
    if name == "list":
        return [value(rest[0], draw, row) for _ in range(draw.randint(rest[1], rest[2]))]
    if name == "repr":
        return repr(value(rest[0], draw, row))
    if name == "json":
        return json.dumps(value(rest[0], draw, row))
    if name == "pick":
        source = [one for found in at(row, rest[0]) for one in (found if isinstance(found, list) else [found])]
        return draw.choice(source) if source else text(draw, 1, 2)
    if name == "dict":
        return {key: value(inner, draw, row) for key, inner in rest[0].items()}
    raise ValueError(name)


def functions_of(config):
    """The functions of a task's configuration, each once, with those of their modules that they call."""
    found = []

    def add(function):
        function = getattr(function, "func", function)
        if inspect.isfunction(function) and function not in found:
            found.append(function)
            for name in function.__code__.co_names:
                called = function.__globals__.get(name)
                if inspect.isfunction(called) and called.__module__ == function.__module__:
                    add(called)

    def look(item):
        if callable(item):
            add(item)
        elif isinstance(item, dict):
            for inner in item.values():
                look(inner)
        elif isinstance(item, (list, tuple)):
            for inner in item:
                look(inner)

    look(config)
    return found


# ---------------------------------------------------------------- kinds from shapes


def guess(column):
    if LISTS.search(column):
        return ["list", ["text"], 4, 4]
    return ["int", 2] if NUMBERS.match(column) else ["text"]


def scalar_of(shape, name):
    literals = list(dict.fromkeys(one for one in shape.literals if one != "" and not isinstance(one, bool)))
    if shape.parts and len(literals) == 1:  # what is compared may be a part of the text
        literals = []
    if literals and all(isinstance(one, str) for one in literals):
        return ["one", literals if len(literals) > 1 else [*literals, "other text"]]
    if literals and all(isinstance(one, (int, float)) for one in literals):
        return ["one", literals if len(literals) > 1 else [literals[0], literals[0] + 1]]
    if "digit" in shape.uses and not shape.uses & {"text"}:
        return ["digit", 4]
    if "letter" in shape.uses:
        return ["letter"]
    if shape.inside and shape.inside[0].path and shape.inside[0] is not shape:
        return ["pick", list(shape.inside[0].path)]
    if "label" in shape.uses and "text" not in shape.uses:
        return ["int", 2]
    if shape.starts:
        return ["starts", shape.starts]
    if shape.parts:
        return ["with", shape.parts[:3]]
    if "text" in shape.uses:
        return ["text"]
    if shape.uses & {"index", "int", "number"}:
        return ["int", 2]
    return guess(name)


def kind_of(shape, name):
    if shape.parsed is not None:
        how, inner = shape.parsed
        return [how, kind_of(inner, name)] if inner.keys or inner.item else [how, ["list", ["text"], 4, 4]]
    keys = {key: inner for key, inner in shape.keys.items() if not (hasattr(str, key) and not inner.keys)}
    if keys:
        return ["dict", {key: kind_of(inner, key) for key, inner in keys.items()}]
    if {"label", "searched"} <= shape.uses:
        return ["list", ["int", 2], 1, 2]
    if "mapping" in shape.uses:  # of names that the code does not say, such as languages
        return ["dict", {"en": ["text"], "de": ["text"]}]
    if shape.item is not None and "text" not in shape.uses:
        return ["list", kind_of(shape.item, "item"), 4, 4]
    return scalar_of(shape, name)


def slots(kinds):
    """(holder, key, path) of every kind, also inside of others."""
    for key in sorted(kinds):
        yield from inner_slots(kinds, key, [key])


def inner_slots(holder, key, path):
    yield holder, key, path
    kind = holder[key]
    if kind[0] == "dict":
        for name in sorted(kind[1]):
            yield from inner_slots(kind[1], name, [*path, name])
    elif kind[0] in ("list", "json", "repr"):
        yield from inner_slots(kind, 1, [*path, "*"])


class Form:
    """The kinds of a task's columns."""

    def __init__(self, name):
        self.name = name
        self.draw = random.Random(f"form of {name}")
        self.kinds, self.literals, self.last = {}, [], {}

    @classmethod
    def of(cls, name, config):
        form = cls(name)
        if isinstance(config.get("doc_to_choice"), list):
            form.literals += [str(choice) for choice in config["doc_to_choice"]]
        for function in functions_of(config):
            constants = [one for one in function.__code__.co_consts if isinstance(one, str) and 0 < len(one) < 30]
            form.literals += constants
        for column, shape in document_shapes.shape_of(config).keys.items():
            if column not in NOT_COLUMNS:
                form.kinds[column] = kind_of(shape, column)
        if any(MATH.search(source_of(function)) for function in functions_of(config)):
            for column in ("solution", "answer"):
                if form.kinds.get(column) == ["text"]:
                    form.kinds[column] = ["boxed"]
        return form

    def other(self, column):
        """Another kind for a column."""
        draw = self.draw
        lists = [path for _, _, path in slots(self.kinds) if LISTS.search(str(path[-1])) and path[0] != column and "*" not in path]
        names = [name for name in self.kinds if name != column]
        inner = {name: self.simple() for name in draw.sample(names, min(len(names), 6))}
        choices = [["text"], ["int", 2], ["int", 4], ["letter"], ["digit", 4], ["texts", 4], ["texts", 2], ["bool"], ["word"],
                   ["float"], ["ints", 4], ["repr", ["texts", 4]], ["dict", inner], ["list", ["dict", inner], 3, 3], ["labels"]]
        choices += [["pick", path] for path in lists] * 2
        if self.literals:
            choices += [["one", self.literals]] * 2
        return copy.deepcopy(draw.choice(choices))

    def simple(self):
        return self.draw.choice([["text"], ["text"], ["int", 2], ["texts", 4], ["bool"]])

    def rows(self, split, count=12):
        draw = random.Random(f"{split} of {sorted(self.kinds)}")
        rows = []
        for _ in range(count):
            row = {}
            for column, kind in sorted(self.kinds.items(), key=lambda item: "pick" in json.dumps(item[1])):
                row[column] = value(kind, draw, row)
            rows.append(row)
        return rows

    # -- repairs

    def repair(self, error):
        """Changes the kind of a column that may be the cause of an error."""
        line = error_line(error)
        if self.draw.random() < 0.8 and (self.add_missing(line) or self.repair_quoted(line, error)):
            return
        lines = "".join(frame.line or "" for frame in traceback.extract_tb(error.__traceback__)[-4:])
        places = list(slots(self.kinds))
        blamed = [place for place in places if isinstance(place[2][-1], str) and re.search(rf"\b{re.escape(place[2][-1])}\b", lines)]
        pool = blamed if blamed and self.draw.random() < 0.7 else places
        if pool:
            holder, key, path = self.draw.choice(pool)
            holder[key] = self.other(path[0])

    def add_missing(self, line):
        """Adds a column that an error says is missing."""
        missing = re.search(r"^KeyError: '(\w+)'|'(\w+)' is undefined|has no attribute '(\w+)'|Column '?(\w+)'? ", line)
        name = next((group for group in missing.groups() if group), None) if missing else None
        if not name or name in self.kinds or name in NOT_COLUMNS or hasattr(str, name):
            return False
        dicts = [kind for holder, key, _ in slots(self.kinds) if (kind := holder[key])[0] == "dict"]
        if dicts and self.draw.random() < 0.5:
            self.draw.choice(dicts)[1].setdefault(name, guess(name))
        else:
            self.kinds[name] = guess(name)
        return True

    def repair_quoted(self, line, error):
        """Replaces the kind whose value an error quotes: by the keys or elements that were there to be found."""
        quoted = re.search(r"KeyError: (.+)$|ValueError: (.+) is not in list|invalid literal for int\(\) with base 10: (.+)$"
                           r"|could not convert string to float: (.+)$", line, re.S)
        if not quoted:
            return False
        wanted = next(group for group in quoted.groups() if group)
        rows = [row for split in ("train", "validation", "test", *self.splits) for row in self.rows(split, 12)]
        places = [(holder, key) for holder, key, path in slots(self.kinds)
                  if any(repr(found) == wanted or (isinstance(found, str) and found.strip() and found.strip() in wanted)
                         for row in rows for found in at(row, path))]
        if not places:
            return False
        holder, key = self.draw.choice(places)
        if quoted.group(3) or quoted.group(4):
            holder[key] = self.draw.choice([["digit", 4], ["int", 2]])
            return True
        values = looked_through(error)
        if not values:
            return False
        holder[key] = ["one", self.draw.choice(values)]
        return True

    splits = ()


class KnownForm(Form):
    """The form of a task of known_forms.py: `make` makes a row. It has no kinds, so there is nothing to repair."""

    def __init__(self, name, make):
        super().__init__(name)
        self.make = make

    def rows(self, split, count=12):
        draw = random.Random(f"{split} of {self.name}")
        return [self.make(draw, self.name) for _ in range(count)]


def looked_through(error):
    """The keys of mappings, and the lists, that the failing line of code could see and names."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    lines = traceback.extract_tb(error.__traceback__)
    found = []
    for frame, line in list(zip(frames, lines))[-3:]:
        for name in re.findall(r"\w+", line.line or ""):
            seen = frame.f_locals.get(name, frame.f_globals.get(name))
            values = list(seen) if isinstance(seen, (dict, list, tuple)) else []
            if values and all(isinstance(one, (str, int, float, bool)) for one in values):
                found.append(values)
        inner = re.search(r"\{[^{}]*:[^{}]*\}|\[[^\[\]]*,[^\[\]]*\]", line.line or "")
        if inner:
            found.append(re.findall(r"['\"]([^'\"]+)['\"]", inner.group()))
    return [values for values in found if values]


def error_line(error):
    return f"{type(error).__name__}: {error}"


def refine(form, check, seconds, hopeless="$^"):
    """Repairs the form until check(form) raises nothing. Returns the first error, or None. An error that the pattern
    `hopeless` finds ends the search."""
    end = time.monotonic() + seconds
    first, begun, tries = None, copy.deepcopy(form.kinds), 0
    while True:
        try:
            check(form)
            return None
        except Exception as error:
            first = first or error
            tries += 1
            if re.search(hopeless, error_line(error)):
                return error
            if time.monotonic() > end or not form.kinds:
                return first
            if tries % 60 == 0:  # many wrong repairs lead nowhere
                form.kinds = copy.deepcopy(begun)
            form.repair(error)
