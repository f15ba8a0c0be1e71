#!/usr/bin/env python3
"""Makes tests/golden/metrics/corpus.jsonl: values and standard errors of bleu, chrf, chrf++ and ter for made-up corpora.

    corpus_golden.py [--count N]     N corpora more at random, to standard output

Needs lm_eval 0.4.13 and sacrebleu 2.6 under Python 3.11 (later versions of Python add numbers in another way). Each
line is {"items": [[references, answer], ...], "expected": {metric: [value, standard error] or null}}. null: the
harness raises an exception.
"""
import argparse
import json
import os
import random
import sys
from pathlib import Path

os.environ["DISABLE_MULTIPROC"] = "1"
from lm_eval.api import metrics  # noqa: E402

METRICS = {"bleu": metrics.bleu, "chrf": metrics.chrf, "chrf++": metrics.chrfpp, "ter": metrics.ter}
WORDS = ["the", "a", "cat", "dog", "sat", "on", "mat", "House", "it's", "3.5", "1,000", "10-20", "e.g.", "U.S.", "(yes)",
         "\"so\"", "well-known", "end.", "what?", "über", "naïve", "ΑΣΟΣ", "İstanbul", "猫は", "座る。", "&quot;", "&amp;lt;", "<skipped>",
         "foo-", "--", "€5", "...", ",", "x", "y", "z"]
SPACES = [" ", " ", " ", " ", "  ", "\t", "\u00a0", "\u3000", "\n"]


def sentence(draw, words):
    text = "".join(draw.choice(words) + draw.choice(SPACES) for _ in range(draw.choice([0, 1, 2, 3, 5, 8, 12, 20, 40])))
    return text if draw.random() < 0.1 else text.rstrip()


def changed(draw, text, words):
    """A copy with words moved, replaced, left out and added."""
    parts = text.split(" ")
    for _ in range(draw.randint(0, 5)):
        at = draw.randrange(len(parts))
        kind = draw.randrange(4)
        if kind == 0:
            end = min(len(parts), at + draw.randint(1, 4))
            moved, rest = parts[at:end], parts[:at] + parts[end:]
            to = draw.randint(0, len(rest))
            parts = rest[:to] + moved + rest[to:]
        elif kind == 1:
            parts[at] = draw.choice(words)
        elif kind == 2 and len(parts) > 1:
            del parts[at]
        else:
            parts.insert(at, draw.choice(words))
    return " ".join(parts)


def corpus(draw):
    words = draw.sample(WORDS, draw.randint(2, len(WORDS)))
    lists, items = draw.random() < 0.35, []
    for _ in range(draw.choice([1, 2, 3, 6, 10])):
        truth = sentence(draw, words)
        answer = changed(draw, truth, words) if draw.random() < 0.8 else sentence(draw, words)
        if not lists:
            items.append([truth, answer])
            continue
        references = [truth] + [changed(draw, truth, words) for _ in range(draw.choice([0, 1, 1, 2, 3]))]
        if draw.random() < 0.1:
            references[draw.randrange(len(references))] = None
        items.append([references, [answer] if draw.random() < 0.05 else answer])
    return items


def fixed():
    long = " ".join(f"w{i % 37}" for i in range(150))
    yield [["the cat sat on the mat", "the cat sat on the mat"]]
    yield [["", ""]]
    yield [["", "something"], ["", "more of it"]]
    yield [["something", ""], ["more of it", ""]]
    yield [[long, " ".join(reversed(long.split()))], [long, " ".join(long.split()[75:] + long.split()[:75])]]
    yield [["one two three", long], [long, "w1 w2 w3"]]
    yield [[[], "a"]]
    yield [[["a", "b"], "a"], [[None, None], "b"]]
    yield [["a b c d", ["a b c d"]], ["e f g h", ["e f g x"]]]
    yield [[["a b", "c d"], "a b"], [["e f"], "e f"], [["g", "h", "i"], "h"]]


def expected(items):
    items = [tuple(item) for item in items]
    values = {}
    for name, function in METRICS.items():
        try:
            error = metrics.stderr_for_metric(function, 100)(items) if len(items) > 1 else "N/A"
            values[name] = [function(items), error]
        except Exception:  # noqa: BLE001 - the harness ends here
            values[name] = None
    return values


def lines(corpora):
    for items in corpora:
        yield json.dumps({"items": items, "expected": expected(items)}, ensure_ascii=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, help="so many corpora, of a seed that is drawn")
    args = parser.parse_args()
    if args.count is not None:
        draw = random.Random()
        for line in lines(corpus(draw) for _ in range(args.count)):
            print(line)
        return
    draw = random.Random(1)
    corpora = [*fixed(), *(corpus(draw) for _ in range(120))]
    path = Path(__file__).resolve().parents[1] / "golden/metrics/corpus.jsonl"
    path.write_text("".join(line + "\n" for line in lines(corpora)), encoding="utf-8")
    print(f"{path}: {len(corpora)} corpora", file=sys.stderr)


if __name__ == "__main__":
    main()
