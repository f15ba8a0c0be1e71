#!/usr/bin/env python3
"""Makes the rows, answers, results and samples of tests/golden/library by lm-evaluation-harness 0.4.13.

    VENV/bin/python tests/oracle/library_golden.py [--out tests/golden/library]

The tasks and their functions are written by hand. Rows and answers are those of library_compare.py. A test runs evald on them.
"""

import argparse
import json
import os
from pathlib import Path

import library_harness
import made_up_rows

HERE = Path(__file__).resolve().parents[1]


def write_rows(file, config):
    form = made_up_rows.Form.of(config["task"], config)
    error = made_up_rows.refine(form, lambda form: library_harness.check_in_memory(config, form), library_harness.SEARCH_SECONDS)
    if error is not None:
        raise error
    for split, name in config["dataset_kwargs"]["data_files"].items():
        rows = form.rows(split, library_harness.DOCUMENTS)
        (file.parent / name).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def evaluate(file, out):
    """Writes the task's answers and samples. Returns the rest of what the harness finds."""
    from lm_eval.tasks._yaml_loader import load_yaml
    config = load_yaml(file)
    name = config["task"]
    library_harness.in_fork(write_rows, file, config, seconds=60)  # what the functions keep is forgotten
    found, lines = library_harness.evaluated(config, library_harness.BOOTSTRAPS)
    (out / "generations" / f"{name}.jsonl").write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    samples = library_harness.samples_file(name, found["samples"][name], out)
    samples.rename(out / f"samples_{name}.jsonl")
    samples.parent.rmdir()
    return {key: found[key][name] for key in ("results", *library_harness.COMPARED)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "golden" / "library")
    out = parser.parse_args().out.resolve()
    library_harness.import_everything()
    (out / "generations").mkdir(exist_ok=True)
    os.chdir(out / "tasks")  # from which the harness reads relative paths
    found = {file.stem: evaluate(file, out) for file in sorted(out.glob("tasks/*.yaml"))}
    text = json.dumps(found, indent=1, default=library_harness.plain, sort_keys=True)
    (out / "results.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
