"""Writes the three suites and gives the training text, which is disjoint from them."""

import argparse
import json
import pathlib
import random

import arithmetic
import programs
import world as facts

SEED = 20240713
CODE_SIZE, MATH_SIZE, CHOICE_SIZE = 80, 80, 80


def make_suites(seed: int) -> dict:
    """File name -> documents. Depends on the seed alone."""
    world = facts.World(seed)
    return {
        "code/test.jsonl": programs.suite(CODE_SIZE, random.Random(f"{seed}/code")),
        "math/train.jsonl": arithmetic.suite(20, 1, random.Random(f"{seed}/math/train")),
        "math/test.jsonl": arithmetic.suite(MATH_SIZE, 0, random.Random(f"{seed}/math/test")),
        "choice/dev.jsonl": facts.examples(world, 5, random.Random(f"{seed}/choice/dev")),
        "choice/test.jsonl": facts.suite(world, CHOICE_SIZE, random.Random(f"{seed}/choice/test")),
    }


def training_documents(seed: int, count: int):
    """Yields `count` training documents; the order is part of the seed."""
    rng = random.Random(f"{seed}/training")
    world = facts.World(seed)
    for _ in range(count):
        kind = rng.choices(["code", "math", "facts"], [3, 5, 10])[0]
        if kind == "code":
            yield programs.training_document(rng)
        elif kind == "math":
            yield arithmetic.training_document(rng)
        else:
            yield facts.training_document(world, rng)


def assert_disjoint(suites: dict, texts: list) -> None:
    """No prompt, docstring summary or question of a test split occurs in a training text."""
    whole = "\n".join(texts)
    for document in suites["code/test.jsonl"]:
        summary = document["prompt"].split('"""')[1].split("\n")[0]
        assert document["prompt"] not in whole and summary not in whole, document["task_id"]
    for name in ("math/test.jsonl", "choice/test.jsonl"):
        for document in suites[name]:
            assert document["question"] not in whole, document["question"]


def write(suites: dict, folder: pathlib.Path) -> None:
    for name, documents in suites.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(d) + "\n" for d in documents))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parents[1] / "data")
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    write(make_suites(arguments.seed), arguments.out)
