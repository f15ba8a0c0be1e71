#!/usr/bin/env python3
"""Writes the golden files of table_file_test: tables in Apache's formats, and their rows as the `datasets` library has them.

    table_golden.py FOLDER

Needs `datasets` 5.2 and pyarrow. rows.json has for each file or folder the rows of each split as Python prints them (repr).
"""
import json
import os
import pathlib
import shutil
import sys

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")


def made_rows(count, first=0):
    return [{
        "text": f"Frage {i}: \u00fcber \u4e2d\u6587 \U0001f600 \"'\\ \n\t", "empty": "", "whole": i * 10**15, "small": i - 3,
        "half": i / 7, "yes": i % 2 == 0, "gap": None if i % 3 else f"x{i}", "number_gap": None if i % 2 else i,
        "choices": {"text": [f"a{i}", "b"], "label": ["A", "B"]}, "tags": [f"t{j}" for j in range(i % 3)],
        "nested": [{"k": j, "v": None if j else "v"} for j in range(i % 3)], "label": i % 2,
    } for i in range(first, first + count)]


def typed(datasets, rows):
    made = datasets.Dataset.from_list(rows)
    made = made.cast_column("half", datasets.Value("float32")).cast_column("small", datasets.Value("int8"))
    return made.cast_column("label", datasets.ClassLabel(names=["no", "yes"]))


def main():
    import datasets
    import pyarrow
    import pyarrow.parquet
    folder = pathlib.Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    first, second = typed(datasets, made_rows(7)), typed(datasets, made_rows(5, 7))
    first.to_parquet(folder / "first.parquet")
    second.to_parquet(folder / "second.parquet")
    table = first.data.table
    dictionary = table.set_column(0, "text", table.column("text").dictionary_encode()).replace_schema_metadata(None)
    pyarrow.parquet.write_table(dictionary, folder / "dictionary.parquet", compression="zstd", row_group_size=2)
    with pyarrow.ipc.new_file(folder / "file.arrow", table.schema) as out:
        out.write_table(table)
    datasets.DatasetDict({"test": first, "auxiliary_train": second}).save_to_disk(str(folder / "saved"))
    hub = folder / "hub" / "main"
    hub.mkdir(parents=True)
    first.to_parquet(hub / "test-00000-of-00002.parquet")
    second.to_parquet(hub / "test-00001-of-00002.parquet")
    (folder / "hub" / "README.md").write_text(
        "---\nconfigs:\n- config_name: main\n  data_files:\n  - split: test\n    path: main/test-*\n"
        "dataset_info:\n- config_name: main\n  features: [{name: text, dtype: string}]\n---\n")
    load = lambda kind, *files: list(datasets.load_dataset(kind, data_files={"test": [str(folder / f) for f in files]})["test"])
    rows = {
        "both": load("parquet", "first.parquet", "second.parquet"),
        "dictionary.parquet": load("parquet", "dictionary.parquet"),
        "file.arrow": load("arrow", "file.arrow"),
        "saved test": list(datasets.load_from_disk(str(folder / "saved"))["test"]),
        "saved auxiliary_train": list(datasets.load_from_disk(str(folder / "saved"))["auxiliary_train"]),
        "hub main": list(datasets.load_dataset("parquet", data_files=str(hub / "test-*"))["train"]),
    }
    shown = {name: [repr(row) for row in found] for name, found in rows.items()}
    (folder / "rows.json").write_text(json.dumps(shown, indent=1) + "\n")


if __name__ == "__main__":
    main()
