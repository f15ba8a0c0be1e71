#!/usr/bin/env python3
"""Makes tests/golden/metrics/math_verify.jsonl: whether math-verify takes 1,000 made-up pairs of a gold answer and an answer for
equal. Numbers, fractions, roots, powers, intervals, sets, tuples, equations, units and percentages, in several spellings, in
boxes, between dollars and in sentences; some are no mathematics at all.

    math_verify_golden.py > tests/golden/metrics/math_verify.jsonl

It needs math-verify, and calls it without evald: verify(parse(gold), parse(answer)), where a gold answer without marks stands
in a box.
"""
import json
import logging
import random
from importlib.metadata import version

from math_verify import parse, verify

logging.disable(logging.CRITICAL)
PAIRS = 1000
PACKAGES = ("math-verify", "latex2sympy2_extended", "sympy", "antlr4-python3-runtime")


def number(rng):
    return rng.choice([rng.randint(-20, 20), rng.randint(0, 999), rng.randint(1000, 99999)])


def spelled(rng, value):
    """A spelling of a whole number."""
    return rng.choice([str(value), f"{value}.0", f"{value:,}", f"+{value}" if value >= 0 else str(value), f"\\frac{{{2 * value}}}{{2}}",
                       f"{{{value}}}", f"{value}\\%", f"{value} \\text{{ cm}}", f"{value}^\\circ", f"\\${value}"])


def pair(rng):
    """Two expressions, equal or not, without marks."""
    n, m = number(rng), rng.randint(2, 12)
    kind = rng.randrange(12)
    if kind == 0:
        return str(n), spelled(rng, n if rng.randrange(3) else n + 1)
    if kind == 1:
        k = rng.randint(1, 4)
        return f"\\frac{{{n}}}{{{m}}}", rng.choice([f"\\frac{{{n * k}}}{{{m * k}}}", f"{n}/{m}", f"\\dfrac{n % 10}{m % 10}", str(n / m),
                                                  f"{n / m:.3f}", f"-\\frac{{{-n}}}{{{m}}}", f"\\frac{n % 10}{m % 10}"])
    if kind == 2:
        k = rng.randint(2, 5)
        return f"{k}\\sqrt{{{m}}}", rng.choice([f"\\sqrt{{{k * k * m}}}", f"{k}\\sqrt{m % 10}", f"{k} \\cdot \\sqrt{{{m}}}", f"\\sqrt{{{m}}}"])
    if kind == 3:
        return f"x^2 + {m}x", rng.choice([f"{m}x + x^2", f"x(x+{m})", f"x(x-{m})", f"x^{{2}}+{m} x", f"y = x^2+{m}x"])
    if kind == 4:
        return f"({n}, {m})", rng.choice([f"({n},{m})", f"\\left({n}, {m}\\right)", f"({m}, {n})", f"[{n}, {m}]", f"x={n}, y={m}"])
    if kind == 5:
        low, high = sorted((n, n + m))
        return f"[{low}, {high})", rng.choice([f"[{low},{high})", f"{low} \\le x < {high}", f"({low}, {high})", f"\\left[{low}, {high}\\right)"])
    if kind == 6:
        return f"\\{{{n}, {m}\\}}", rng.choice([f"\\{{{m}, {n}\\}}", f"{n}, {m}", f"{m},{n}", f"\\{{{n}\\}}", f"{n} \\text{{ and }} {m}"])
    if kind == 7:
        return f"{m}\\%", rng.choice([f"{m / 100}", f"{m}", f"\\frac{{{m}}}{{100}}", f"{m} percent"])
    if kind == 8:
        return f"{m}\\pi", rng.choice([f"{m}*\\pi", f"\\pi {m}", f"{m * 3.14159265:.6f}", f"{m}\\pi \\text{{ cm}}^2", f"{m + 1}\\pi"])
    if kind == 9:
        return f"\\begin{{pmatrix}} {n} \\\\ {m} \\end{{pmatrix}}", rng.choice([
            f"\\begin{{pmatrix}} {n} \\\\ {m} \\end{{pmatrix}}", f"\\begin{{bmatrix}}{n}\\\\{m}\\end{{bmatrix}}", f"({n},{m})"])
    if kind == 10:
        return rng.choice(["\\text{Monday}", "\\text{(A)}", "A", "\\text{even}", "x > 3"]), rng.choice(
            ["Monday", "\\text{Monday}", "A", "(A)", "\\text{(A)}", "even", "x>3", "3<x", "x \\geq 3"])
    return f"{m}^{{{rng.randint(2, 30)}}}", rng.choice([str(m ** 2), f"{m}^2", f"{m}^{{{rng.randint(2, 30)}}}", f"{m} \\times {m}"])


def answered(rng, expression):
    """An answer of a model."""
    return rng.choice([
        f"\\boxed{{{expression}}}", f"${expression}$", f"The final answer is ${expression}$. I hope it is correct.",
        f"So we get $1+1=2$, and therefore $$\\boxed{{{expression}}}$$.", f"First I thought \\boxed{{7}}.\n\nNo: \\boxed{{{expression}}}",
        f"\\[{expression}\\]", f"\\({expression}\\)", expression, f"Answer: {expression}", f"**{expression}**",
        f"The answer is {expression}", ""])


def main():
    rng = random.Random(20261127)
    print(json.dumps({"packages": {name.replace("_", "-"): version(name) for name in PACKAGES}}))
    for _ in range(PAIRS):
        gold, expression = pair(rng)
        if rng.randrange(6) == 0:
            gold = rng.choice([f"${gold}$", f"We have $2+2=4$. Thus \\boxed{{{gold}}}."])
        answer = answered(rng, expression)
        marked = gold if "\\boxed" in gold or "$" in gold else "\\boxed{" + gold + "}"
        print(json.dumps({"gold": gold, "answer": answer, "equal": verify(parse(marked), parse(answer))}, ensure_ascii=False))


main()
