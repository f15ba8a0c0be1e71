#!/usr/bin/env python3
"""Writes the three worked examples of each BIG-Bench Hard task, which its authors' repository holds as prompts.

    git clone https://github.com/suzgunmirac/BIG-Bench-Hard
    python3 examples/suite/bbh_examples.py BIG-Bench-Hard/cot-prompts DATA

DATA is the data_dir of eval.yaml: the examples become DATA/bbh/<task>/fewshot.jsonl, with the columns input and target.
"""
import json
import pathlib
import sys

RULE = "-----\n"
ANSWER = "\nA: Let's think step by step."


def examples_of(text, name):
    """The (input, target) pairs of a prompt: a remark, a rule, the task's description, then questions with answers."""
    prompt = text.split(RULE, 1)[-1].strip("\n")
    pairs = []
    for part in prompt.split("\n\nQ: ")[1:]:
        question, answer, target = part.partition(ANSWER)
        if not answer:
            raise SystemExit(f"{name}: an example has no line {ANSWER.strip()!r}: {part[:80]!r}")
        pairs.append((question, target.strip()))
    if len(pairs) != 3:
        raise SystemExit(f"{name}: found {len(pairs)} examples, expected 3")
    return pairs


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    prompts, data = map(pathlib.Path, sys.argv[1:])
    files = sorted(prompts.glob("*.txt"))
    if not files:
        raise SystemExit(f"{prompts}: found no prompts (*.txt); expected the folder cot-prompts of the repository")
    for file in files:
        out = data / "bbh" / file.stem / "fewshot.jsonl"
        out.parent.mkdir(parents=True, exist_ok=True)
        rows = [{"input": question, "target": target} for question, target in examples_of(file.read_text("utf-8"), file)]
        out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
