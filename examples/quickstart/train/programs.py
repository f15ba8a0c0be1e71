"""Small Python functions with docstrings, in the manner of HumanEval.

A function is a composition of parts (what is selected, how it is changed, what is returned). Every
fourth composition is held out: it occurs in the suite only, never in the training text, so that a
model has to put known parts together in a way it has not seen.
"""

import itertools
import random
import zlib

from text import Segments

LETTERS = "abcdefghilmnoprst"
WORDS = (
    "apple bread candle dragon eagle forest garden house island jacket kitten lemon mirror night "
    "ocean paper queen river stone table uncle violet window yellow zebra level noon radar"
).split()

# (name in the function's name, words in the docstring, code); {k} is a small number.
NUMBER_FILTERS = [
    ("", "", ""),
    ("even", " that are even", " if x % 2 == 0"),
    ("odd", " that are odd", " if x % 2 == 1"),
    ("positive", " that are positive", " if x > 0"),
    ("negative", " that are negative", " if x < 0"),
    ("above", " that are greater than {k}", " if x > {k}"),
    ("below", " that are less than {k}", " if x < {k}"),
    ("divisible", " that are divisible by {k}", " if x % {k} == 0"),
    ("other", " that are not equal to {k}", " if x != {k}"),
]
NUMBER_MAPS = [
    ("numbers", "", "x"),
    ("squares", ", each squared", "x * x"),
    ("increased", ", each increased by {m}", "x + {m}"),
    ("decreased", ", each decreased by {m}", "x - {m}"),
    ("multiplied", ", each multiplied by {m}", "x * {m}"),
    ("absolute", ", each by its absolute value", "abs(x)"),
    ("negated", ", each with its sign changed", "-x"),
]
NUMBER_RESULTS = [
    ("sum", "int", "the sum of ", "sum(values)"),
    ("count", "int", "the count of ", "len(values)"),
    ("largest", "int", "the largest of ", "max(values, default=0)"),
    ("smallest", "int", "the smallest of ", "min(values, default=0)"),
    ("list", "list", "a list of ", "values"),
    ("sorted", "list", "a sorted list of ", "sorted(values)"),
    ("reversed", "list", "a reversed list of ", "values[::-1]"),
    ("unique", "list", "a sorted list without repetition of ", "sorted(set(values))"),
]
WORD_FILTERS = [
    ("", "", ""),
    ("long", " that are longer than {k} letters", " if len(w) > {k}"),
    ("short", " that are shorter than {k} letters", " if len(w) < {k}"),
    ("start", " that start with '{c}'", " if w.startswith('{c}')"),
    ("end", " that end with '{c}'", " if w.endswith('{c}')"),
    ("with", " that contain '{c}'", " if '{c}' in w"),
    ("without", " that do not contain '{c}'", " if '{c}' not in w"),
]
WORD_MAPS = [
    ("words", "", "w"),
    ("upper", ", each in upper case", "w.upper()"),
    ("capitalized", ", each with a capital letter", "w.capitalize()"),
    ("mirrored", ", each spelled backwards", "w[::-1]"),
    ("doubled", ", each written twice", "w * 2"),
    ("initials", ", each by its first letter", "w[0]"),
]
WORD_RESULTS = [
    ("count", "int", "the count of ", "len(words)"),
    ("list", "list", "a list of ", "words"),
    ("sorted", "list", "a sorted list of ", "sorted(words)"),
    ("reversed", "list", "a reversed list of ", "words[::-1]"),
    ("joined", "str", "a text of ", "' '.join(words)"),
]
TESTS = [
    ("even", "n is even", "n % 2 == 0"),
    ("odd", "n is odd", "n % 2 == 1"),
    ("positive", "n is positive", "n > 0"),
    ("negative", "n is negative", "n < 0"),
    ("above", "n is greater than {k}", "n > {k}"),
    ("below", "n is less than {k}", "n < {k}"),
    ("divisible", "n is divisible by {k}", "n % {k} == 0"),
    ("square", "the square of n is greater than {m}", "n * n > {m}"),
]


def held_out(*parts: str) -> bool:
    """Whether a composition is kept for the suite."""
    return zlib.crc32("/".join(parts).encode()) % 4 == 0


def _compositions():
    number = [("number", *c) for c in itertools.product(NUMBER_FILTERS, NUMBER_MAPS, NUMBER_RESULTS)]
    word = [("word", *c) for c in itertools.product(WORD_FILTERS, WORD_MAPS, WORD_RESULTS)]
    test = [
        ("test", a, b, joint)
        for a, b in itertools.permutations(TESTS, 2)
        for joint in (("and",), ("or",))
    ]
    return {"number": number, "word": word, "test": test}


def _key(composition) -> tuple:
    return (composition[0], *(part[0] for part in composition[1:]))


ALL = _compositions()
TRAINING = {kind: [c for c in cs if not held_out(*_key(c))] for kind, cs in ALL.items()}
HELD_OUT = {kind: [c for c in cs if held_out(*_key(c))] for kind, cs in ALL.items()}


def _numbers(rng: random.Random) -> list:
    return [rng.randint(-9, 20) for _ in range(rng.randint(3, 4))]


def _sentence(rng: random.Random) -> str:
    return " ".join(rng.sample(WORDS, rng.randint(3, 4)))


def build(composition, rng: random.Random) -> dict:
    """A function of a composition with constants drawn: name, header, summary, body and `draw`,
    which gives an argument."""
    kind, first, second, third = composition
    constants = {"k": rng.randint(2, 9), "m": rng.randint(2, 9), "c": rng.choice(LETTERS)}
    if kind == "test":
        other = {"k": rng.randint(2, 9), "m": rng.randint(10, 60)}
        constants["m"] = rng.randint(10, 60)
        name = f"is_{first[0]}_{third[0]}_{second[0]}"
        words = f"Return True if {first[1].format(**constants)} {third[0]} {second[1].format(**other)}."
        code = f"    return {first[2].format(**constants)} {third[0]} {second[2].format(**other)}\n"
        return {
            "name": name,
            "header": f"def {name}(n: int) -> bool:\n",
            "summary": words,
            "body": code,
            "draw": lambda r: r.randint(-9, 30),
        }
    if kind == "number":
        argument = rng.choice(["numbers", "items", "xs"])
        noun, source, variable, values, draw = "numbers", argument, "x", "values", _numbers
        declared = f"{argument}: list"
    else:
        argument = rng.choice(["text", "sentence", "line"])
        noun, source, variable, values, draw = "words", f"{argument}.split()", "w", "words", _sentence
        declared = f"{argument}: str"
        constants["k"] = rng.randint(3, 6)
    selected, changed, result = first, second, third
    name = "_".join(part for part in (result[0], changed[0], selected[0]) if part)
    what = f"{result[2]}the {noun} in {argument}{selected[1]}{changed[1]}".format(**constants)
    comprehension = f"{changed[2]} for {variable} in {source}{selected[2]}".format(**constants)
    return {
        "name": name,
        "header": f"def {name}({declared}) -> {result[1]}:\n",
        "summary": f"Return {what}.",
        "body": f"    {values} = [{comprehension}]\n    return {result[3]}\n",
        "draw": draw,
    }


def _compiled(function: dict):
    scope = {}
    exec(function["header"] + function["body"], scope)
    return scope[function["name"]]


def prompt_of(function: dict, examples: list) -> str:
    """Header and docstring, with worked examples: (argument, value) pairs."""
    lines = "".join(f"    >>> {function['name']}({a!r})\n    {v!r}\n" for a, v in examples)
    if not lines:
        return f'{function["header"]}    """{function["summary"]}"""\n'
    return f'{function["header"]}    """{function["summary"]}\n{lines}    """\n'


def training_document(rng: random.Random) -> Segments:
    kind = rng.choices(["number", "word", "test"], [5, 4, 2])[0]
    function = build(rng.choice(TRAINING[kind]), rng)
    call = _compiled(function)
    arguments = [function["draw"](rng) for _ in range(rng.choice([0, 1]))]
    prompt = prompt_of(function, [(a, call(a)) for a in arguments])
    return Segments().context(prompt).answer(function["body"])


def suite(size: int, rng: random.Random) -> list:
    """Documents in HumanEval's form, all of held-out compositions and of different summaries."""
    documents, seen = [], set()
    kinds = ["number", "word", "number", "word", "test"]
    while len(documents) < size:
        function = build(rng.choice(HELD_OUT[kinds[len(documents) % len(kinds)]]), rng)
        call = _compiled(function)
        inputs = [function["draw"](rng) for _ in range(60)]
        if function["summary"] in seen or len({repr(call(i)) for i in inputs}) < 2:
            continue
        seen.add(function["summary"])
        examples = [(inputs[0], call(inputs[0]))]
        checks = "".join(f"    assert candidate({a!r}) == {call(a)!r}\n" for a in inputs[1:9])
        documents.append(
            {
                "task_id": f"QuickstartCode/{len(documents)}",
                "prompt": prompt_of(function, examples),
                "canonical_solution": function["body"],
                "test": f"\n\nMETADATA = {{}}\n\n\ndef check(candidate):\n{checks}",
                "entry_point": function["name"],
            }
        )
    return documents
