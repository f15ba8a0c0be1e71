"""Word problems with worked answers, in the manner of GSM8K.

A problem is a template and its numbers. Number tuples whose hash falls into one residue class are
kept for the suite, those of another for its few-shot examples; training uses the rest.
"""

import random
import zlib

from text import Segments

NAMES = "Mia Tom Ana Ben Eva Leo Ida Max Zoe Sam Amy Dan Lea Jon Kim Pia".split()
ITEMS = "apples books coins cards shells stamps pears pens eggs stones nuts cups".split()
BOXES = "boxes bags baskets jars".split()
CLASSES = 12  # residue 0: suite, 1: few-shot examples, others: training


def _step(left: int, sign: str, right: int) -> tuple:
    value = {"+": left + right, "-": left - right, "*": left * right}[sign]
    shown = f"<<{left}{sign}{right}={value}>>{value}"
    return value, shown


def _change(rng: random.Random, amount: int, who: str, friend: str) -> tuple:
    """An event that adds to or takes from `amount`: (sentence, sign, number)."""
    if amount < 40 and (amount < 8 or rng.random() < 0.5):
        n = rng.randint(2, 20)
        verb = rng.choice(["buys", "finds", "gets"])
        return f"{who} {verb} {n} more.", "+", n
    n = rng.randint(2, min(20, amount - 2))
    return rng.choice([f"{who} gives {n} to {friend}.", f"{who} loses {n}.", f"{who} sells {n}."]), "-", n


def _having(rng, name, friend, items):
    amount = rng.randint(3, 40)
    story, work, numbers = [f"{name} has {amount} {items}."], [], [amount]
    for i in range(rng.choice([1, 2, 2])):
        event, sign, n = _change(rng, amount, name if i == 0 else "Then " + name, friend)
        amount, shown = _step(amount, sign, n)
        story.append(event)
        work.append(f"{name} {'then ' if i else ''}has {shown} {items}.")
        numbers += [sign, n]
    return story, f"How many {items} does {name} have now?", work, amount, numbers


def _boxes(rng, name, friend, items):
    count, each = rng.randint(2, 6), rng.randint(2, 6)
    box = rng.choice(BOXES)
    amount, shown = _step(count, "*", each)
    story = [f"{name} has {count} {box} with {each} {items} each."]
    work = [f"{name} has {shown} {items} in the {box}."]
    numbers = [count, each]
    if rng.random() < 0.6:
        event, sign, n = _change(rng, amount, name, friend)
        amount, shown = _step(amount, sign, n)
        story.append(event)
        work.append(f"{name} then has {shown} {items}.")
        numbers += [sign, n]
    return story, f"How many {items} does {name} have now?", work, amount, numbers


def _price(rng, name, friend, items):
    count, each = rng.randint(2, 6), rng.randint(2, 6)
    cost, first = _step(count, "*", each)
    paid = cost + rng.randint(1, 15)
    change, second = _step(paid, "-", cost)
    story = [f"{name} buys {count} {items} for {each} dollars each and pays with {paid} dollars."]
    work = [f"The {items} cost {first} dollars.", f"{name} gets back {second} dollars."]
    return story, f"How many dollars does {name} get back?", work, change, [count, each, paid]


def _together(rng, name, friend, items):
    amount = rng.randint(6, 30)
    sign = rng.choice("+-")
    n = rng.randint(2, 10) if sign == "+" else rng.randint(2, min(10, amount - 2))
    other, first = _step(amount, sign, n)
    total, second = _step(amount, "+", other)
    word = "more" if sign == "+" else "fewer"
    story = [f"{name} has {amount} {items}.", f"{friend} has {n} {word} {items} than {name}."]
    work = [f"{friend} has {first} {items}.", f"Together they have {second} {items}."]
    return story, f"How many {items} do they have together?", work, total, [amount, sign, n]


TEMPLATES = [_having, _having, _boxes, _price, _together]


def problem(rng: random.Random) -> tuple:
    """(question, answer, residue class)."""
    template = rng.choice(TEMPLATES)
    name, friend = rng.sample(NAMES, 2)
    story, question, work, value, numbers = template(rng, name, friend, rng.choice(ITEMS))
    key = f"{template.__name__}/{numbers}"
    answer = "\n".join(work) + f"\n#### {value}"
    return " ".join([*story, question]), answer, zlib.crc32(key.encode()) % CLASSES


def _of_class(rng: random.Random, wanted) -> tuple:
    while True:
        question, answer, residue = problem(rng)
        if wanted(residue):
            return question, answer


def _drill(rng: random.Random) -> Segments:
    """Steps by themselves."""
    document = Segments()
    for _ in range(rng.randint(8, 16)):
        sign = rng.choice("++--*")
        right = rng.randint(2, 6) if sign == "*" else rng.randint(2, 20)
        left = rng.randint(2, 6) if sign == "*" else rng.randint(2, 45)
        if sign == "-":
            left += right
        value, shown = _step(left, sign, right)
        question = shown[: shown.index("=") + 1]
        document.context(question).answer(shown[len(question) :] + "\n")
    return document


def training_document(rng: random.Random) -> Segments:
    """One to four problems in the few-shot form of the task, or a drill."""
    if rng.random() < 0.25:
        return _drill(rng)
    document = Segments()
    for i in range(rng.choice([1, 2, 3, 3, 4])):
        question, answer = _of_class(rng, lambda residue: residue > 1)
        document.context(f"{chr(10) * 2 if i else ''}Question: {question}\nAnswer:")
        document.answer(" " + answer)
    return document


def suite(size: int, residue: int, rng: random.Random) -> list:
    documents, seen = [], set()
    while len(documents) < size:
        question, answer = _of_class(rng, lambda r: r == residue)
        if question not in seen:
            seen.add(question)
            documents.append({"question": question, "answer": answer})
    return documents
