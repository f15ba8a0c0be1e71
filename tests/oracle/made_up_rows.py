"""Made-up documents for any task of lm-evaluation-harness: the form of the columns comes from the task's templates and functions.

Form.of(config) reads the names of columns in the Jinja templates and in the sources of the functions, and guesses a kind for
each column from its name. refine() corrects the guesses: as long as a given check fails on the rows, the column that the
error names, or a random one, gets another kind. Everything is seeded by the task's name.
"""

import ast
import inspect
import random
import re
import textwrap
import time
import traceback

import jinja2
import jinja2.meta
import jinja2.nodes

WORDS = "red blue tall  house river 12 1,400 3.5 the a An [step] [title] café naïve “quoted” don't it's x² 日本 end. why?".split(" ")
FIELDS = ("doc_to_text", "doc_to_target", "doc_to_choice", "process_docs", "process_results", "gen_prefix", "description")
LISTS = re.compile(r"choices|options|endings|answers|candidates|distractors|entities|texts|targets|references|tokens|list", re.I)
NUMBERS = re.compile(r"^(label|gold|answer_?(idx|index|key|no|num\w*)|\w*_?(idx|index|id)|correct|truth|year|score)$", re.I)
NOT_COLUMNS = {"int", "str", "len", "range", "loop", "doc"}


def text(draw, least=2, most=9):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(least, most)))


def value(kind, draw, row):
    """A value of a kind: a tuple with a name and what belongs to it. `row` has the columns made before."""
    name, *rest = kind
    if name == "text":
        return text(draw)
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
    if name == "texts":
        return [text(draw, 1, 4) or "x" for _ in range(rest[0])]
    if name == "ints":
        return [draw.randrange(2) for _ in range(rest[0])]
    if name == "repr":
        return repr([text(draw, 1, 3) for _ in range(4)])
    if name == "pick":
        source = row.get(rest[0])
        return draw.choice(source) if isinstance(source, list) and source else text(draw, 1, 2)
    if name == "dict":
        return {key: value(inner, draw, row) for key, inner in rest[0].items()}
    if name == "dicts":
        return [{key: value(inner, draw, row) for key, inner in rest[0].items()} for _ in range(3)]
    raise ValueError(name)


class Names(ast.NodeVisitor):
    """The constant keys and texts in a function, and the functions that the function calls."""

    def __init__(self):
        self.keys, self.nested, self.constants, self.called = {}, {}, [], set()

    @staticmethod
    def key_of(node):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return node.slice.value, node.value
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop") and node.args
                and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)):
            return node.args[0].value, node.func.value
        return None, None

    def generic_visit(self, node):
        key, owner = self.key_of(node)
        if key is not None:
            outer, _ = self.key_of(owner)
            if outer is not None:
                self.nested.setdefault(outer, {})[key] = None
            self.keys[key] = None
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < 30:
            self.constants.append(node.value)
        if isinstance(node, ast.Name):
            self.called.add(node.id)
        super().generic_visit(node)


def functions_of(config):
    """The functions of a task's configuration, each once, with those of their modules that they call."""
    found = []

    def add(function):
        function = getattr(function, "func", function)
        if inspect.isfunction(function) and function not in found:
            found.append(function)
            visitor = names_in(function)
            for name in sorted(visitor.called) if visitor else []:
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


def source_of(function):
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return ""


def names_in(function):
    visitor = Names()
    try:
        visitor.visit(ast.parse(source_of(function)))
    except SyntaxError:
        return None
    return visitor


def template_names(template):
    """Columns of a template, and the keys inside of them."""
    try:
        tree = jinja2.Environment().parse(template)
    except jinja2.TemplateError:
        return {}
    columns = {name: {} for name in sorted(jinja2.meta.find_undeclared_variables(tree))}
    for node in tree.find_all((jinja2.nodes.Getattr, jinja2.nodes.Getitem)):
        key = node.attr if isinstance(node, jinja2.nodes.Getattr) else getattr(node.arg, "value", None)
        if isinstance(key, str) and isinstance(node.node, jinja2.nodes.Name) and node.node.name in columns and not hasattr(str, key):
            columns[node.node.name][key] = None
    return columns


class Form:
    """The kinds of a task's columns."""

    def __init__(self, name):
        self.draw = random.Random(f"form of {name}")
        self.kinds, self.literals, self.inner = {}, [], {}

    @classmethod
    def of(cls, name, config):
        form = cls(name)
        if isinstance(config.get("doc_to_choice"), list):
            form.literals += [str(choice) for choice in config["doc_to_choice"]]
        for function in functions_of(config):
            visitor = names_in(function)
            if visitor is None:
                continue
            for key in visitor.keys:
                form.add(key, visitor.nested.get(key))
            form.literals += visitor.constants
        for field in FIELDS:
            template = config.get(field)
            if not isinstance(template, str):
                continue
            if template.isidentifier():  # the name of a column
                form.add(template, {})
            for column, keys in template_names(template).items():
                form.add(column, keys)
        return form

    def add(self, column, keys=None):
        if column in NOT_COLUMNS:
            return
        if keys:
            self.kinds[column] = ("dict", {key: self.guess(key) for key in keys})
        elif column not in self.kinds:
            self.kinds[column] = self.guess(column)

    @staticmethod
    def guess(column):
        if LISTS.search(column):
            return ("texts", 4)
        return ("int", 2) if NUMBERS.match(column) else ("text",)

    def other(self, column):
        """Another kind for a column."""
        draw = self.draw
        lists = [name for name, kind in self.kinds.items() if kind[0] == "texts" and name != column]
        names = [name for name in self.kinds if name != column]
        inner = {name: self.simple() for name in draw.sample(names, min(len(names), 6))}
        choices = [("text",), ("int", 2), ("int", 4), ("letter",), ("digit", 4), ("texts", 4), ("texts", 2), ("bool",), ("word",),
                   ("float",), ("ints", 4), ("repr",), ("dict", inner), ("dicts", inner)]
        choices += [("pick", name) for name in lists] * 2
        if self.literals:
            choices += [("one", self.literals)] * 2
        return draw.choice(choices)

    def simple(self):
        return self.draw.choice([("text",), ("text",), ("int", 2), ("texts", 4), ("bool",)])

    def rows(self, split, count=12):
        draw = random.Random(f"{split} of {sorted(self.kinds)}")
        rows = []
        for _ in range(count):
            row = {}
            for column, kind in sorted(self.kinds.items(), key=lambda item: item[1][0] == "pick"):
                row[column] = value(kind, draw, row)
            rows.append(row)
        return rows

    def repair(self, error):
        """Changes the kind of a column that may be the cause of an error."""
        missing = re.search(r"^KeyError: '(\w+)'|'(\w+)' is undefined|has no attribute '(\w+)'|Column '?(\w+)'? ", error_line(error))
        name = next((group for group in missing.groups() if group), None) if missing else None
        if name and name not in self.kinds and name not in NOT_COLUMNS and not hasattr(str, name) and self.draw.random() < 0.8:
            self.kinds[name] = self.guess(name)
            return
        lines = "".join(frame.line or "" for frame in traceback.extract_tb(error.__traceback__)[-4:])
        blamed = [column for column in self.kinds if re.search(rf"\b{re.escape(column)}\b", lines)]
        pool = blamed if blamed and self.draw.random() < 0.7 else sorted(self.kinds)
        if pool:
            column = self.draw.choice(pool)
            self.kinds[column] = self.other(column)


def error_line(error):
    return f"{type(error).__name__}: {error}"


def refine(form, check, seconds):
    """Repairs the form until check(form) raises nothing. Returns the last error, or None."""
    end = time.monotonic() + seconds
    first = None
    while True:
        try:
            check(form)
            return None
        except Exception as error:
            first = first or error
            if time.monotonic() > end or not form.kinds:
                return first
            form.repair(error)
