#!/usr/bin/env python3
"""Makes tests/golden/metrics/generated.json: what process_results of lm-evaluation-harness 0.4.13 gives for answers of
generate_until, with metrics that pass on what they get, with flags of exact_match that are no booleans, and with functions of
a task's own. Gold answers and responses are made up, and odd.

    generated_metrics_golden.py > tests/golden/metrics/generated.json
"""
import json
import logging
import random
import sys
from types import SimpleNamespace

logging.disable(logging.CRITICAL)
from lm_eval.api.registry import get_metric  # noqa: E402
from lm_eval.api.task import ConfigurableTask  # noqa: E402

OWN = '''
def near(predictions, references, least=1):
    return float(predictions[0][:least] == references[0][:least])

def length(predictions, references, **settings):
    return len(predictions[0]) + len(settings)

def passed(items):
    return items

def inside(items):
    return items[0] in items[1]

def mapped(references, predictions):
    return {"mapped": len(references[0])}

def faulty(references, predictions):
    return references[0] + 1

def exact_match(references, predictions):
    return {"exact_match": sum(a == b for a, b in zip(references, predictions))}
'''
functions = {}
exec(OWN, functions)

TEXTS = ["a", "A", "abc", "The cat.", "the cat", "", " a ", "1,000", "1000", "12", "12.", "ß", "日本", "a\0", "$5 .", "x_y", "True"]


def answer(draw, depth=0):
    kind = draw.random()
    if kind < 0.8 or depth > 1:
        return draw.choice(TEXTS)
    if kind < 0.97:
        return [answer(draw, depth + 1) for _ in range(draw.randrange(4))]
    return draw.choice([None, 7, 1.5, True])


def gold_of(draw, several):
    if several:
        return [draw.choice(TEXTS) for _ in range(draw.randrange(4))]
    return draw.choice(TEXTS) if draw.random() < 0.85 else draw.choice([12, 1.0, None, True, ["a", "b"]])


FLAGS = [True, False, "false", "", "true - \".\"", 1, 0, 0.0, 2.5, None, ["x"], [], {}]
BUILT_IN = ["acc", "acc_norm", "acc_bytes", "f1", "mcc", "bleu", "ter"]


def metrics_of(draw, own, several):
    if own:
        name = draw.choice(["near", "length", "passed", "inside", "mapped", "faulty", "exact_match"])
        settings = draw.choice([{}, {}, {"least": 2}, {"other": "x"}])
        return [{"metric": name, "kwargs": settings, "function": True}]
    listed = [{"metric": name, "kwargs": draw.choice([{}, {"ignore_case": True}])} for name in draw.sample(BUILT_IN, draw.randint(0, 2))]
    if draw.random() < 0.6 or not listed:
        flags = {name: draw.choice(FLAGS) for name in ("ignore_case", "ignore_punctuation", "ignore_numbers") if draw.random() < 0.5}
        listed.append({"metric": "exact_match", "kwargs": flags})
        draw.shuffle(listed)
    return listed


def by_harness(metrics, several, gold, result):
    task = ConfigurableTask.__new__(ConfigurableTask)
    task._config = SimpleNamespace(process_results=None, doc_to_choice=None)
    task.OUTPUT_TYPE = "generate_until"
    task.multiple_target = several
    task.doc_to_target = lambda doc: gold
    task._metric_fn_list = {m["metric"]: functions[m["metric"]] if m.get("function") else get_metric(m["metric"]) for m in metrics}
    task._metric_fn_kwargs = {m["metric"]: m["kwargs"] for m in metrics}
    task._aggregation_list, task._higher_is_better = {}, {}
    return task.process_results({}, [result])


def plain(value):
    value = value.item() if hasattr(value, "item") else value
    return "nan" if value != value else value


def main():
    cases = []
    for number in range(1200):
        draw = random.Random(number)
        own, several = number % 3 == 0, draw.random() < 0.3
        case = {"metrics": metrics_of(draw, own, several), "several": several, "gold": gold_of(draw, several), "result": answer(draw)}
        try:
            values = by_harness(case["metrics"], case["several"], case["gold"], case["result"])
            case["values"] = {name: plain(value) for name, value in values.items()}
        except Exception as error:
            case["error"] = type(error).__name__
        cases.append(case)
    json.dump({"own": OWN, "cases": cases}, sys.stdout, ensure_ascii=True, indent=None, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
