#!/usr/bin/env python3
"""Compares evald with an installed lm-evaluation-harness 0.4.13 over its whole library, on made-up documents and answers.

    library_compare.py --evald build/release/evald [--per-family 8] [--count N] [--report FILE.json] [NAME...]

Without names, tasks are picked from all families: up to --per-family of each, and each task that has a function whose source
no task before had. For each task the script makes up documents (made_up_rows.py) until the harness can use them. Seeded
answers take the place of a model: the harness gets them from a model class (library_harness.py), evald from its engine
`replay`. Scores, standard errors, versions, numbers of examples and documents are compared to the last bit, and the samples
files, which hold requests, answers, filtered answers, hashes and the values of each document, byte by byte, but for evald's
own member `evald_detail`.

A task that differs is evaluated again by the harness, which now finds in the cache of `datasets` what functions made of the
rows: `equal, second` is a task that is equal to this run. `equal, text` is a task that differs only by how
the samples file writes single values of numpy's arrays, and NaN. If it still differs, the harness evaluates the task once more with
other seeds and another order of Python's sets. If the harness then differs from itself, its value is not defined, and the task
counts as `undefined`.

The task files are the harness's own, of the Python that runs this script, which also runs the functions for evald; nothing of
them is kept. Prints a line for each task that is not equal, and the sums by family and reason. Exit status 1 if a task differs
that docs/library.md does not explain. --again reads a report, and leaves out the tasks that are equal in it.
"""

import argparse
import collections
import hashlib
import json
import math
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import library_harness
import made_up_rows

BATCH = 50

# ---------------------------------------------------------------- picking tasks


def leaf_files(tasks):
    """(name, file) of every task whose file is YAML, in the order of the names."""
    from lm_eval.tasks import TaskManager
    index = TaskManager(include_defaults=False, include_path=str(tasks))._index
    leaves = [(name, Path(entry.yaml_path)) for name, entry in index.items()
              if entry.kind.name == "TASK" and entry.yaml_path and Path(entry.yaml_path).exists()]
    return sorted(leaves)


def family(tasks, file):
    return file.relative_to(tasks).parts[0]


def digest_of_functions(config):
    sources = {made_up_rows.source_of(function) for function in made_up_rows.functions_of(config)}
    return {hashlib.sha256(source.encode()).hexdigest() for source in sources if source}


def picked(tasks, per_family, count):
    """The tasks to compare: (name, file)."""
    from lm_eval.tasks._yaml_loader import load_yaml
    seen, families, chosen, missing = set(), collections.Counter(), [], []
    for name, file in leaf_files(tasks):
        group = family(tasks, file)
        try:
            config = load_yaml(file)
        except BaseException as error:  # an import that is missing here
            missing.append((name, file, made_up_rows.error_line(error)))
            continue
        if config.get("doc_to_image") or config.get("doc_to_audio"):
            missing.append((name, file, "pictures or sound"))
            continue
        functions = digest_of_functions(config)
        if functions <= seen and families[group] >= per_family:
            continue
        seen |= functions
        families[group] += 1
        chosen.append((name, file))
    random.Random("order").shuffle(chosen)
    return chosen[:count], missing, len(seen)


# ---------------------------------------------------------------- evald


class Evald:
    """Runs of evald in a folder, with the tasks below the folder `tasks`."""

    def __init__(self, args, tasks, folder):
        self.args, self.tasks, self.folder, self.runs = args, tasks, folder, 0

    def run(self, names):
        """({task: (results, others, samples file)}, error lines) for those of the tasks that have results."""
        self.runs += 1
        run = self.folder / "runs" / f"run-{self.runs}"
        config = {"tasks": names, "task_dirs": self.tasks, "task_code": "allow", "task_python": self.args.python,
                  "bootstrap_iters": library_harness.BOOTSTRAPS,
                  "engine": {"name": "replay", "generations": str(self.folder / "generations")},
                  "output": {"dir": str(self.folder / "runs"), "name": run.name}, "cache_dir": str(self.folder / "cache"),
                  "state_dir": str(self.folder / "state")}
        path = self.folder / f"eval-{self.runs}.yaml"
        path.write_text(json.dumps(config))
        done = subprocess.run([self.args.evald, "run", path, "--quiet"], capture_output=True, text=True)
        lines = [line for line in done.stderr.splitlines() if "warning" not in line]
        for file in (run / "results.json", run / "results.incomplete.json"):
            if file.exists():
                found = json.loads(file.read_text())
                return {name: (found["results"][name], {key: found[key].get(name) for key in library_harness.COMPARED},
                               run / f"samples_{quote(name, safe='')}.jsonl") for name in names if name in found["results"]}, lines
        return {}, lines

    def run_all(self, names):
        """(what run() gives, {task: error}) over several runs: a run that refuses a task before anything is computed is
        repeated without this task."""
        found, errors, groups = {}, {}, [names] if names else []
        while groups:
            group = groups.pop()
            some, lines = self.run(group)
            found.update(some)
            rest = [name for name in group if name not in some]
            named = {name: "\n".join(line for line in lines if mentions(line, name)) for name in rest}
            if len(group) == 1 and rest:
                errors[group[0]] = "\n".join(lines)
            elif some:  # errors of tasks that ended without results
                errors.update({name: named[name] for name in rest if named[name]})
                groups += [[name] for name in rest if not named[name]]
            elif any(named.values()):
                errors.update({name: line for name, line in named.items() if line})
                groups += [[name for name in rest if not named[name]]] if not all(named.values()) else []
            else:
                middle = len(group) // 2
                groups += [group[:middle], group[middle:]]
        return found, errors


def mentions(line, name):
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", line) is not None


# ---------------------------------------------------------------- comparing


def equal(a, b):
    """Equality of values; the harness's NaN and infinities are text in evald's JSON."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, float) and not math.isfinite(a):
        return b == str(a) or (isinstance(b, float) and repr(a) == repr(b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return a == b


def score_differences(theirs, ours):
    for key, value in theirs["results"].items():
        if not equal(value, ours[0].get(key)):
            yield f"{key}: harness {value!r}, evald {ours[0].get(key)!r}"
    for key, value in theirs["others"].items():
        if not equal(value, ours[1][key]):
            yield f"{key}: harness {value!r}, evald {ours[1][key]!r}"


def as_the_harness_has(line):
    """evald's line without its own member of the details of a program's tests, or of a judge (docs/formats.md)."""
    begin, end = line.find(', "evald_detail": '), line.rfind(', "filtered_resps": ')
    return line if begin < 0 else line[:begin] + line[end:]


OTHER_TEXT = "other text: "


def only_other_text(mine, yours):
    """Whether values of a samples file differ only by how they are written: the harness writes a single value in an array of
    numpy as text, and NaN as no JSON; evald the first as a value, and the second as text."""
    if isinstance(mine, list) and isinstance(yours, list):
        return len(mine) == len(yours) and all(map(only_other_text, mine, yours))
    if isinstance(mine, float) and not math.isfinite(mine):
        return yours == str(mine)
    return json.dumps(mine) == json.dumps(yours) or (isinstance(mine, str) and isinstance(yours, bool | float) and mine == str(yours))


def line_differences(mine, yours):
    yours = as_the_harness_has(yours)
    if mine == yours:
        return
    one, other = json.loads(mine), json.loads(yours)
    before = 0
    for key in {**one, **other}:
        if key not in one or key not in other or json.dumps(one[key]) != json.dumps(other[key]):
            before += 1
            mark = OTHER_TEXT if only_other_text(one.get(key), other.get(key)) else ""
            yield (f"{mark}document {one['doc_id']}, filter {one['filter']}, {key}: harness {one.get(key, 'nothing')!r}, "
                   f"evald {other.get(key, 'nothing')!r}")
    if before == 0:
        at = next((i for i, (a, b) in enumerate(zip(mine, yours)) if a != b), min(len(mine), len(yours)))
        yield f"document {one['doc_id']}, filter {one['filter']}, bytes: harness {mine[at - 40:at + 40]!r}, evald {yours[at - 40:at + 40]!r}"


def sample_differences(mine, yours):
    mine, yours = (file.read_text(encoding="utf-8").split("\n") for file in (mine, yours))
    if len(mine) != len(yours):
        yield f"{len(mine)} lines of samples of the harness, {len(yours)} of evald"
    for one, other in zip(mine, yours):
        yield from line_differences(one, other)


def differences(theirs, ours):
    yield from score_differences(theirs, ours)
    yield from sample_differences(Path(theirs["samples"]), ours[2])


def differs_from_itself(found, folder):
    again = library_harness.once_more(found, folder)
    if "why" in again:
        return f"the harness ends with {again['why']}"
    ours = (again["results"], again["others"], Path(again["samples"]))
    return next(differences(found, ours), "")


def judged(theirs, ours, folder):
    """(state, problems) of a task that both sides have evaluated."""
    problems = list(differences(theirs, ours))
    if not problems:
        return "equal", []
    if all(problem.startswith(OTHER_TEXT) for problem in problems):
        return "equal, text", problems
    second = library_harness.second_run(theirs, folder)
    if "why" not in second and not any(differences(second, ours)):
        return "equal, second", problems
    if itself := differs_from_itself(theirs, folder):
        return "undefined", [f"the harness against itself: {itself}", *problems]
    return "different", problems


def compare_batch(args, tasks, chosen, folder):
    """(name, state, problems) for each task: equal, equal to the harness's second run, different, undefined, refused by
    evald, or without documents."""
    theirs = {name: library_harness.by_harness(name, file, folder) for name, file in chosen}
    rows = {name: ("no documents", [found["why"], found.get("trace", "")]) for name, found in theirs.items() if "why" in found}
    usable = {found["own"]: name for name, found in theirs.items() if "own" in found}
    roots = sorted({str(tasks / family(tasks, file)) for name, file in chosen if name not in rows})
    ours, errors = Evald(args, roots, folder).run_all(list(usable))
    for own, name in usable.items():
        if own not in ours:
            rows[name] = ("refused", [errors[own]])
            continue
        rows[name] = judged(theirs[name], ours[own], folder)
    return [(name, *rows[name]) for name, _ in chosen]


# ---------------------------------------------------------------- the report

# Differences that docs/library.md explains, by the task's name.
EXPLAINED = re.compile(r"^webqs$")
# Why a task was not compared, by the first problem of its row.
REASONS = [
    (r"swipl", "a function that starts a program"),
    (r"\bpunkt\b", "data of nltk"),
    (r"of the hub|'NoneType' object is not callable|No module named 'evaluate|evaluation metrics", "a metric of the hub"),
    (r"on the Hub|load_dataset", "data of the hub, read by a function"),
    (r"pictures or sound|multimodal", "pictures or sound"),
    (r"ImportError|ModuleNotFoundError|SystemExit|NameError|OSError: .E050|ATN with version", "a package that is missing, or another version of it"),
    (r"has no function|Context is not a string|KeyError: None|'float' object is not iterable", "no document can be right for the harness"),
    (r"num_beams", "beam search"),
    (r"unsafe_code", "a metric of its own that runs programs"),
    (r"expected (text|a list|a label|as )|compare the task's data", "documents that the task's data set would not have"),
    (r"_API_KEY", "a service on the web"),
    (r"out of bounds for size 0", "process_docs leaves no made-up document"),
]


def reason(row):
    """The class of a row that is not equal."""
    found = next((text for pattern, text in REASONS if re.search(pattern, row["problems"][0])), None)
    return found or {"no documents": "its functions take no made-up document"}.get(row["state"], row["problems"][0][:150])


def print_sums(rows):
    sums = collections.defaultdict(collections.Counter)
    for row in rows:
        sums[row["family"]][row["state"]] += 1
    for name, counts in sorted(sums.items()):
        print(name, *(f"{state} {count}" for state, count in sorted(counts.items())), sep="  ")
    for state in ("not tried", "no documents", "refused"):
        for why, count in collections.Counter(reason(row) for row in rows if row["state"] == state).most_common():
            print(f"{state}: {count:4}  {why}")
    for state in ("equal, second", "equal, text", "undefined", "different"):
        print(f"{state}:", *(row["task"] for row in rows if row["state"] == state))
    total = sum(sums.values(), collections.Counter())
    print(f"all {len(sums)} families", *(f"{state} {count}" for state, count in sorted(total.items())), sep="  ")
    return total


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evald", required=True, type=Path)
    parser.add_argument("--python", default=sys.executable, help="the Python that runs functions for evald")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--per-family", type=int, default=8)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--again", type=Path, action="append", default=[], help="a report of an earlier run; may be repeated")
    parser.add_argument("--keep", type=Path, help="keep documents, samples and runs in this folder")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    args.evald = args.evald.resolve()
    return args


def choose(args, tasks):
    """The tasks to compare, and rows of the report for others."""
    if args.names:
        return [(name, file) for name, file in leaf_files(tasks) if name in args.names], []
    chosen, missing, functions = picked(tasks, args.per_family, args.count)
    rows = [{"task": name, "family": family(tasks, file), "state": "not tried", "problems": [why]} for name, file, why in missing]
    known = {row["task"]: row for report in args.again for row in json.loads(report.read_text()) if row["state"].startswith("equal")}
    rows += known.values()
    chosen = [(name, file) for name, file in chosen if name not in known]
    print(f"{functions} functions", flush=True)
    return chosen, rows


def compare_all(args, scratch, tasks):
    """The rows of the report."""
    began = time.monotonic()
    chosen, rows = choose(args, tasks)
    print(f"{len(chosen)} tasks", flush=True)
    for begin in range(0, len(chosen), BATCH):
        folder = scratch / f"batch-{begin}"
        folder.mkdir()
        batch = chosen[begin:begin + BATCH]
        for (name, state, problems), (_, file) in zip(compare_batch(args, tasks, batch, folder), batch):
            rows.append({"task": name, "family": family(tasks, file), "state": state, "problems": problems[:5]})
            if state != "equal":
                print(f"{state:13} {name}", *(problem[:400] for problem in problems[:3]), sep="\n      ", flush=True)
        print(f"{begin + len(batch)} of {len(chosen)}, {time.monotonic() - began:.0f} s", flush=True)
        if not args.keep:
            shutil.rmtree(folder)
        if args.report:
            args.report.write_text(json.dumps(rows, indent=1))
    return rows


def main():
    args = parsed()
    import lm_eval
    library_harness.import_everything()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = (args.keep or Path(scratch)).resolve()
        scratch.mkdir(exist_ok=True)
        scratch.chmod(0o755)
        tasks = scratch / "lm_eval" / "tasks"
        shutil.copytree(Path(lm_eval.__file__).parent / "tasks", tasks)
        rows = compare_all(args, scratch, tasks)
    print_sums(rows)
    return 1 if any(row["state"] == "different" and not EXPLAINED.match(row["task"]) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
