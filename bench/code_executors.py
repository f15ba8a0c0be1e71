#!/usr/bin/env python3
"""Compares the rate at which evald judges programs with the executors of LiveCodeBench and evalplus, on made-up problems.

    git clone https://github.com/LiveCodeBench/LiveCodeBench
    pip install numpy tqdm pebble ; pip install --no-deps evalplus ; pip install tempdir psutil appdirs termcolor wget multipledispatch
    code_executors.py --evald build/release/evald --livecodebench LiveCodeBench [--problems 200] [--tests 20]

Both sides judge the same programs, in turns (A B A B), with as many processes as there are cores. evald's time is that of the
whole of `evald score`: it reads data and answers, prepares the task, starts its processes, and writes results. The other
sides' time is that of the calls alone, after their imports. Prints a line for each workload.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

READ = "n = int(input())\nvalues = list(map(int, input().split()))\n"
KINDS = [  # (what a program prints, the value)
    ("print(sum(values) + n)", lambda v: sum(v) + len(v)),
    ("print(max(values) - min(values))", lambda v: max(v) - min(v)),
    ("print(*sorted(values))", lambda v: " ".join(map(str, sorted(v)))),
    ("from collections import Counter\nprint(Counter(values).most_common(1)[0][0])", None),
]
CORES = len(os.sched_getaffinity(0))


def inputs(problem, tests):
    return [[(problem * 7 + test * 13 + i * i) % 100 for i in range(3 + test % 5)] for test in range(tests)]


def reading_problem(problem, tests):
    """(answer, [(input, output)])"""
    body, value = KINDS[problem % len(KINDS)]
    pairs = []
    for values in inputs(problem, tests):
        expected = value(values) if value else max(dict.fromkeys(values), key=values.count)
        pairs.append((f"{len(values)}\n{' '.join(map(str, values))}\n", f"{expected}\n"))
    return READ + body + "\n", pairs


def livecodebench(folder):
    """LiveCodeBench's codegen_metrics, without the imports of the rest of that package."""
    for name, path in (("lcb_runner", folder / "lcb_runner"), ("lcb_runner.evaluation", folder / "lcb_runner/evaluation")):
        module = types.ModuleType(name)
        module.__path__ = [str(path)]
        sys.modules[name] = module
    from lcb_runner.evaluation.compute_code_generation_metrics import codegen_metrics
    return codegen_metrics


def quiet(call):
    """(seconds, value)"""
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
        start = time.perf_counter()
        value = call()
        return time.perf_counter() - start, value


class Score:
    """`evald score` of one task in a folder of its own."""

    def __init__(self, evald, folder, task, dataset, rows, answers):
        data = folder / "data" / dataset
        data.mkdir(parents=True)
        (data / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        lines = [{"doc_id": i, "idx": 0, "repeat": 0, "text": answer, "finish": "stop", "tokens_in": 1, "tokens_out": 1, "truncated": 0} for i, answer in enumerate(answers)]
        (folder / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.command = [evald, "score", "--task", task, "--generations", folder / "answers.jsonl", "--data-dir", folder / "data",
                        "--json"]
        self.folder = folder

    def seconds(self):
        """(seconds, share of programs that pass)"""
        with tempfile.TemporaryDirectory(dir=self.folder) as home:
            env = {**os.environ, "XDG_CACHE_HOME": home, "XDG_STATE_HOME": home}
            start = time.perf_counter()
            done = subprocess.run([*map(str, self.command), "--output", f"{home}/out"], env=env, capture_output=True, text=True)
            taken = time.perf_counter() - start
        assert done.returncode == 0, done.stderr
        results = next(iter(json.loads(done.stdout)["results"].values()))
        return taken, next(value for key, value in results.items() if key.startswith("pass@1,"))


def compare(name, programs, tests, ours, theirs, expected):
    seconds = {"evald": [], "baseline": []}
    for _ in range(2):
        for side, call in (("evald", ours), ("baseline", theirs)):
            taken, share = call()
            assert abs(share - expected) < 1e-9, f"{name}: {side}: {share} of the programs pass, expected {expected}"
            seconds[side].append(taken)
    rates = {side: 2 * programs / sum(taken) for side, taken in seconds.items()}
    print(f"{name}: {programs} programs, {tests} tests each: evald {rates['evald']:.1f} programs/s, baseline "
          f"{rates['baseline']:.1f} programs/s, {rates['evald'] / rates['baseline']:.1f} times", flush=True)


def run_livecodebench(arguments, folder, wrong_from, name):
    """Programs that read and write. Of those from `wrong_from` on the last test fails."""
    metrics = livecodebench(arguments.livecodebench)
    rows, answers, samples = [], [], []
    for problem in range(arguments.problems):
        answer, pairs = reading_problem(problem, arguments.tests)
        if problem >= wrong_from:
            pairs[-1] = (pairs[-1][0], "no number\n")
        tests = [{"input": given, "output": expected, "testtype": "stdin"} for given, expected in pairs]
        rows.append({"question_id": str(problem), "question_content": "", "starter_code": "", "metadata": "{}",
                     "public_test_cases": json.dumps(tests), "private_test_cases": "[]"})
        answers.append(f"```python\n{answer}```")
        samples.append({"input_output": json.dumps({"inputs": [p[0] for p in pairs], "outputs": [p[1] for p in pairs]})})
    codes = [[answer[len("```python\n"):-len("```")]] for answer in answers]
    score = Score(arguments.evald, folder, "livecodebench", "code_generation_lite", rows, answers)

    def theirs():
        seconds, value = quiet(lambda: metrics(samples, codes, k_list=[1], num_process_evaluate=CORES, timeout=6))
        return seconds, value[0]["pass@1"]

    compare(name, arguments.problems, arguments.tests, score.seconds, theirs, min(wrong_from, arguments.problems) / arguments.problems)


def check_evalplus(task):
    from evalplus.eval import PASS, untrusted_check
    code, given, expected = task
    verdict, _ = untrusted_check("humaneval", code, given, "solve", expected, 0, [0.01] * len(given), fast_check=True)
    return verdict == PASS


def run_evalplus(arguments, folder):
    """Functions that are called with many inputs."""
    count, tests = arguments.problems, arguments.tests
    head = "def solve(values):\n"
    body = "    return sorted(values)[::-1] + [sum(values)]\n"
    rows, tasks = [], []
    for problem in range(count):
        given = [[values] for values in inputs(problem, tests)]
        expected = [sorted(values)[::-1] + [sum(values)] for (values,) in given]
        test = f"inputs = {given}\nresults = {expected}\ndef check(candidate):\n    for i, wanted in zip(inputs, results):\n        assert candidate(*i) == wanted\n"
        rows.append({"task_id": f"HumanEval/{problem}", "prompt": head, "canonical_solution": body, "test": test, "entry_point": "solve"})
        tasks.append((head + body, given, expected))
    score = Score(arguments.evald, folder, "humaneval_plus", "humanevalplus", rows, [body] * count)

    def theirs():
        with ThreadPoolExecutor(CORES) as pool:
            seconds, passed = quiet(lambda: list(pool.map(check_evalplus, tasks)))
        return seconds, sum(passed) / count

    compare("evalplus", count, tests, score.seconds, theirs, 1.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evald", type=Path, required=True)
    parser.add_argument("--livecodebench", type=Path)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--tests", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.livecodebench:
            run_livecodebench(arguments, Path(scratch) / "right", arguments.problems, "LiveCodeBench, right programs")
            run_livecodebench(arguments, Path(scratch) / "wrong", 0, "LiveCodeBench, programs that fail the last test")
        run_evalplus(arguments, Path(scratch) / "plus")


if __name__ == "__main__":
    main()
