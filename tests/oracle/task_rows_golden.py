#!/usr/bin/env python3
"""What datasets.Dataset answers to the operations of tests/task_code/row_operations.py: tests/golden/task_code/rows.json.

    task_rows_golden.py [OUT]

Needs datasets 5.2 (pyarrow 26).
"""
import json
import pathlib
import sys

import datasets

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "task_code"))
from row_operations import DRAWN, OPERATIONS, shown, tables  # noqa: E402

SEED, COUNT = 1, 60


def main():
    datasets.disable_progress_bars()
    cases = []
    for rows in tables(SEED, COUNT):
        table = datasets.Dataset.from_list(rows)
        answers = {name: shown(lambda: operation(table)) for name, operation in {**OPERATIONS, **DRAWN}.items()}
        cases.append({"rows": rows, "answers": answers})
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else TESTS / "golden" / "task_code" / "rows.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n")
    print(f"{len(cases)} tables, {sum(len(case['answers']) for case in cases)} answers: {out}")


if __name__ == "__main__":
    main()
