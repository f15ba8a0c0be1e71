"""Compares evald's scores, aggregation and standard errors with lm_eval 0.4.13's, to the last digit.

    results.py real --data DIR --dump score_dump [--limit N] [--seed S] [--keep DIR]
        Random answers (gold answers, near misses, odd Unicode, random log-likelihoods) to humaneval,
        mbpp, gsm8k and mmlu over the real data. They are scored by lm_eval's own filters, process_results
        and aggregation, and by evald through `score_dump` (tests/unit/metrics). Compares results, groups,
        standard errors and every sample. Exit status 1 if anything differs.
    results.py synthetic --out tests/golden/metrics/suite.json
        Small made-up tasks that reach every metric, filter and aggregation.
    results.py recipe --data DIR --out tests/golden/metrics/real.json
        lm_eval's results for answers that the unit test can make again from the real data.

Needs lm_eval 0.4.13, scikit-learn and a `python3` for the code tasks (--python).
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile

sys.path.append(sys.path.pop(0))  # this folder comes last, so that its file names hide no packages
import results_harness as harness

ODD = ["", " ", "\n", "#### 1,234.", "$5.", "٣ ½ ²", "İ Σ ß ﬁ", "\u200d\ufeff", "no number", "#### -7 and 8", "\x00", "𝟙𝟚 1",
       "The answer is $1,000.50.", "...", "-", "$", "#### .", "\x1c#### 4\x85"]


def near_misses(rng, task, doc, gold):
    if task == "gsm8k":
        number = gold.split("#### ")[-1]
        return rng.choice([gold, number, f"#### {number}", f"#### {number}.", f"#### ${number}", f"so {number} dollars.",
                           f"#### {number}1", f"x\n#### {number}\n#### 3", f"{number}.00", number.replace(",", ""), *ODD])
    if task == "humaneval":
        body = doc["canonical_solution"]
        return rng.choice([body, body, body, body.replace("return", "return not", 1), "    pass\n", body + "\n\nprint('é')\n",
                           "    return None\n", "syntax error here", body[: len(body) // 2], *ODD])
    body = doc["code"]
    return rng.choice([body, body, body, body.replace("return", "return not", 1), f"```python\n{body}\n```", "pass",
                       body.replace("\r\n", "\n"), body[: len(body) // 2], *ODD])


def random_answers(seed):
    def answer(task, doc, doc_id, idx, repeat, kind):
        rng = random.Random(f"{seed}/{task}/{doc_id}/{idx}/{repeat}")
        if kind == "generate_until":
            return near_misses(rng, task, doc, doc.get("answer", ""))
        value = rng.choice([-rng.random() * 20, -float(rng.randrange(4)), -rng.random() * 1e-3, float("-inf")])
        return value, rng.random() < 0.5

    return answer


def load(names):
    from lm_eval.tasks import TaskManager

    return TaskManager().load(names)


def real(args):
    harness.patch(args.data, args.python)
    results, suite = harness.evaluate(load(["humaneval", "mbpp", "gsm8k", "mmlu"]), random_answers(args.seed), args.limit, 100000)
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or scratch
        harness.write_suite(suite, os.path.join(folder, "suite"))
        subprocess.run([args.dump, os.path.join(folder, "suite"), os.path.join(folder, "out"), args.python], check=True)
        with open(os.path.join(folder, "out", "results.json"), encoding="utf-8") as f:
            ours = json.load(f)
        differences = harness.compare(ours, results)
        for name, samples in results["samples"].items():
            differences += compare_samples(name, os.path.join(folder, "out", f"samples_{name}.jsonl"), samples)
    documents = sum(n["effective"] for n in results["n-samples"].values())
    print(f"{len(results['results'])} tasks and groups, {documents} documents: {differences} differences")
    return 1 if differences else 0


def compare_samples(name, path, samples):
    """The sample lines in the form of EvaluationTracker.save_results_samples."""
    from lm_eval.utils import handle_non_serializable, sanitize_list

    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")[:-1]
    differences = abs(len(lines) - len(samples))
    for line, sample in zip(lines, samples):
        sample = dict(sample)
        sample["arguments"] = {f"gen_args_{i}": {f"arg_{j}": a for j, a in enumerate(arg)} for i, arg in enumerate(sample["arguments"])}
        sample["resps"], sample["filtered_resps"] = sanitize_list(sample["resps"]), sanitize_list(sample["filtered_resps"])
        sample["target"] = str(sample["target"])
        wanted = json.dumps(sample, default=handle_non_serializable, ensure_ascii=False)
        if line != wanted:
            differences += 1
            if differences < 4:
                at = next((i for i, (a, b) in enumerate(zip(line, wanted)) if a != b), min(len(line), len(wanted)))
                print(f"DIFFERS samples_{name}, doc {sample['doc_id']}, at {at}:\n  evald   {line[max(0, at - 60):at + 60]!r}"
                      f"\n  lm_eval {wanted[max(0, at - 60):at + 60]!r}", file=sys.stderr)
    return differences


def recipe_answer(task, doc, doc_id, idx, repeat, kind):
    """The same as RecipeAnswer of tests/unit/metrics/real_data_test.cc."""
    if kind == "loglikelihood":
        rng = random.Random(doc_id * 4 + idx)
        return -20 * rng.random(), rng.random() < 0.5
    if task == "humaneval":
        return doc["canonical_solution"] if doc_id % 3 else "    pass\n"
    number = doc["answer"].split("#### ")[-1]
    return [doc["answer"], f"The answer is {number}.", "#### 0", f"{number}\n#### ${number}"][doc_id % 4]


def recipe(args):
    harness.patch(args.data, args.python)
    results, _ = harness.evaluate(load(["gsm8k", "humaneval", "mmlu"]), recipe_answer, None, 100000)
    kept = {key: results[key] for key in ("results", "groups", "n-samples", "group_subtasks")}
    with open(args.out, "w", encoding="utf-8") as f:
        json.dump(kept, f, indent=0)
    return 0


def synthetic(args):
    import results_synthetic

    harness.patch("", args.python)
    results, suite = results_synthetic.run()
    kept = {k: results[k] for k in ("results", "groups", "n-samples", "higher_is_better", "group_subtasks", "versions", "n-shot") if k in results}
    samples = {name: [[s["filter"], s["doc_id"], harness_text(s["filtered_resps"])] for s in rows] for name, rows in results["samples"].items()}
    with open(args.out, "w", encoding="utf-8") as f:
        json.dump({"suite": suite, "expected": without_nan(kept), "filtered": samples}, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")
    return 0


def without_nan(value):
    """NaN becomes text, since JSON has no NaN."""
    if isinstance(value, dict):
        return {k: without_nan(v) for k, v in value.items()}
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def harness_text(filtered):
    from lm_eval.utils import sanitize_list

    return sanitize_list(filtered)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="/usr/bin/python3", help="interpreter that runs the programs of code tasks")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("real")
    command.add_argument("--data", required=True)
    command.add_argument("--dump", required=True)
    command.add_argument("--limit", type=int)
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--keep")
    command.set_defaults(run=real)
    command = commands.add_parser("recipe")
    command.add_argument("--data", required=True)
    command.add_argument("--out", required=True)
    command.set_defaults(run=recipe)
    command = commands.add_parser("synthetic")
    command.add_argument("--out", required=True)
    command.set_defaults(run=synthetic)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
