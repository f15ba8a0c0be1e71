#!/usr/bin/env python3
"""Writes the golden cases of yaml_test: scalars as read by PyYAML.

    yaml_golden.py OUT.jsonl

Needs PyYAML 6 with libyaml, with which lm-evaluation-harness 0.4.13 reads task files. Each line is a text and its value
under the key `a`, or `"error"` if PyYAML refuses the text, or `"special"` for dates, infinities and NaN.
"""

import itertools
import json
import math
import random
import sys

import yaml

NUMBERS = """-.5 +.5 .5 -.5e+3 .5e+3 .5e3 1.5e+3 1.5e3 1e5 1e+5 1.e+3 1. -1. +1.5 1_0.5 1._5 ._5 . -. .e+3 ..5 1.2.3 1:30 -1:30 1:5:09 1:60 01:30
0:30 190:20:30 1:30.5 -1:30.25 190:20:30.15 20:30:40:50. 1_0:30 1:3_0 0 -0 +0 00 0_ 0_7 010 -010 08 0o10 0x1f -0x1F 0x_1 0xG 0b101 0b1_0 0b2 0b_
1_000 1__0 _1 1_ +1 --1 9223372036854775807 -9223372036854775807 1,000 12e03 685_230.15 0. 0.0 -0.0 1e400 1.0e+400 .inf -.inf +.Inf .INF .iNF .nan .NaN
.NAN -.nan inf nan 2020-01-01 2020-1-1 2020-01-1 2020-01-01T10:00:00 2020-1-1T1:00:00 2020-01-01 2020-13-45 2020-01 20200101 1999-12-31T23:59:59Z
yes Yes YES yEs no off Off on ON true True TRUE tRue y n null Null NULL nULL ~ = << < > - ? | 5% 1/2 1-2 +a -a .a 0x 0b e5 1e 1e+ 1.5e+ 1.5e""".split()

TAGGED = ["!!float 3", "!!float 1e5", "!!float -.5", "!!float '2.5'", "!!float 1:30", "!!float abc", "!!float", "!!float .inf", "!!int '3'", "!!int 010",
          "!!int 0x1f", "!!int 1:30", "!!int 3.5", "!!int abc", "!!int -7", "!!int ''", "!!bool yes", "!!bool 'True'", "!!bool oN", "!!bool 1", "!!null x",
          "!!null ''", "!!str 3", "!!str", "!!str yes", "! 3", "! x", "!!float |\n  3\n", "!!int >\n  3\n"]

LINES = ["x", "{{q}}", "  y", " z", "", "", "   ", "x:", "- a", "# c", '"q"', "'s'", "é", "\ttab", "x  ", "A. {{c}}"]


def block(r):
    indent = r.choice([2, 2, 3, 1])
    head = r.choice("|>") + r.choice(["", "-", "+"]) + r.choice(["", "", " # comment"])
    if r.random() < 0.1:
        head = head[0] + str(indent) + head[1:]
    body = []
    for _ in range(r.randrange(0, 6)):
        line = r.choice(LINES)
        body.append(" " * indent + line if line.strip() or r.random() < 0.4 else line[: r.choice([0, 1, 2])])
    return "\n".join([head, *body, *[""] * r.choice([0, 0, 1, 2, 3])])


def texts():
    for number in NUMBERS + TAGGED:
        yield f"a: {number}\n"
        if not number.startswith("!") and number not in "-?|<>":
            yield f"a: [{number}, x]\n"
    for word in ("2020-01-01 10:00:00", "2020-01-01 1:00:00.5 +5:30", "2020-01-01 10:00", "1 000", "x = y"):
        yield f"a: {word}\n"
    for head, tail in itertools.product((">", ">-", ">+", "|", "|-", "|+"), ("", "\n", "\n\n", "\n\n\n", "\n  ", "\n   ", "\n  \n", "\n\n  ", "\n ", "\n    \n\n")):
        yield f"a: {head}\n  x\n  y{tail}"
        yield f"a: {head}{tail}"
        yield f"b:\n- {head}\n x\n y{tail}\na:\n- k: {head}\n   z{tail}\n"
    r = random.Random(5)
    for _ in range(400):
        text = "a: " + block(r)
        if r.random() < 0.5:
            text += "\nb: " + block(r)
        if r.random() < 0.2:
            text = "k:\n  - a\na:\n  - " + block(r).replace("\n", "\n  ")
        yield text + r.choice(["\n", "", "\n\n"])


def is_special(value):
    if isinstance(value, (list, dict)):
        return any(map(is_special, value.values() if isinstance(value, dict) else value))
    return (isinstance(value, float) and not math.isfinite(value)) or not isinstance(value, (str, int, float, bool, type(None)))


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        for text in texts():
            case = {"text": text}
            try:
                value = yaml.load(text, Loader=yaml.CSafeLoader)["a"]
                case.update({"special": True} if is_special(value) else {"value": value})
            except Exception:  # noqa: BLE001
                case["error"] = True
            out.write(json.dumps(case) + "\n")


if __name__ == "__main__":
    main()
