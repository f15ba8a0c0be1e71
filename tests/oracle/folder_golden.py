#!/usr/bin/env python3
"""Writes the golden cases of data_folder_test: local folders as read by load_dataset of the `datasets` library.

    folder_golden.py OUT.jsonl [--random N] [--seed S]

Needs `datasets` 5.2. Each line is a case: the files of a folder `set`, the arguments of load_dataset, and the rows of
each split as Python prints them (repr), or `"error"` if load_dataset refuses the folder. --random instead makes N
folders with made-up names of files, for a wider comparison than the cases that are kept.
"""

import argparse
import json
import logging
import os
import pathlib
import random
import shutil
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")

DAY = '{"q":"2020-01-01"}\n'


def load(case, folder, load_dataset):
    for name, text in case["files"].items():
        path = folder / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    path = case.get("path", str(folder / "set"))
    kwargs = dict(case.get("kwargs", {}))
    os.chdir(folder / "set")
    try:
        found = load_dataset(path, name=case.get("dataset_name"), cache_dir=str(folder / "cache"), **kwargs)
        return {"splits": {split: [repr(row) for row in rows] for split, rows in found.items()}}
    except Exception as error:  # noqa: BLE001
        return {"error": repr(error.__cause__ or error)[:200]}
    finally:
        os.chdir("/")


def row(name):
    return json.dumps({"q": name}) + "\n"


def named(*names):
    return {name: row(name) for name in names}


def card(*configs):
    lines = "".join(f"- {config}\n" for config in configs)
    return {"README.md": f"---\nlicense: mit\nconfigs:\n{lines}---\n# The data\n"}


def kept_cases():
    yield {"name": "by files", "files": named("test.jsonl", "train.jsonl")}
    yield {"name": "dates become dates", "files": {"test.jsonl": DAY}}
    yield {"name": "the first split decides the types", "files": {"test.jsonl": '{"q":1}\n', "train.jsonl": '{"q":1.5}\n'}}
    yield {"name": "other words for splits", "files": named("dev.jsonl", "training.jsonl", "evaluation.jsonl")}
    yield {"name": "words within names", "files": named("my-test.jsonl", "a_train_1.jsonl", "latest.jsonl", "val2.jsonl")}
    yield {"name": "two patterns for one file", "files": named("train-train.jsonl")}
    yield {"name": "two splits for one file", "files": named("train-test.jsonl")}
    yield {"name": "folders", "files": named("test/a.jsonl", "test/b/c.jsonl", "train.jsonl")}
    yield {"name": "folders with words", "files": named("x-test 2/a.jsonl", "train_1/b.jsonl", "other/c.jsonl")}
    yield {"name": "files in folders", "files": named("a/test.jsonl", "b/test.jsonl", "b/train.jsonl")}
    yield {"name": "shards", "files": named("data/test-00000-of-00002.jsonl", "data/test-00001-of-00002.jsonl", "data/extra-00000-of-00001.jsonl", "train.jsonl")}
    yield {"name": "no split by name", "files": named("b.jsonl", "a.jsonl", "c/d.jsonl")}
    yield {"name": "hidden files", "files": {**named("test.jsonl", ".test.jsonl", ".x/test.jsonl", "__x/test.jsonl", "__test.jsonl")}}
    yield {"name": "files beside the data", "files": {**named("test.jsonl"), "README.md": "# x\n", "config.json": "{}", "test.py": "x = 1\n", "LICENSE": "y\n"}}
    yield {"name": "a header without data", "files": {**named("a.jsonl"), "README.md": "---\nlicense: mit\n---\n"}}
    yield {"name": "a header with configs", "files": {**named("a.jsonl"), "README.md": "---\nconfigs:\n- config_name: x\n  data_files: [{split: test, path: a.jsonl}]\n---\n"}}
    parts = card('{config_name: x, data_files: [{split: test, path: "x/*.jsonl"}, {split: more, path: [b.jsonl, "x/b.jsonl"]}]}',
                 '{config_name: y, data_files: "[ab].jsonl", default: true}', '{config_name: z, data_dir: x}',
                 '{config_name: all, data_files: [{split: test, path: "**/b*"}, {split: train, path: "x/**"}]}',
                 '{config_name: below, data_dir: x, data_files: [{split: test, path: "?.jsonl"}]}')
    names = named("a.jsonl", "b.jsonl", "c.jsonl", "x/a.jsonl", "x/b.jsonl", "x/y/b2.jsonl", "x/.hidden.jsonl")
    for part in (None, "x", "y", "z", "all", "below", "w"):
        yield {"name": f"a part by its name: {part}", "files": {**names, **parts}, **({"dataset_name": part} if part else {})}
    yield {"name": "parts without a default one", "files": {**names, **card('{config_name: x, data_files: a.jsonl}', '{config_name: y, data_files: b.jsonl}')}}
    yield {"name": "a part called default", "files": {**names, **card('{config_name: x, data_files: a.jsonl}', '{config_name: default, data_files: b.jsonl}')}}
    yield {"name": "a script", "files": {**named("a.jsonl"), "set.py": "x = 1\n"}}
    yield {"name": "csv", "files": {"test.csv": "q,n\na,1\nb,\n"}}
    yield {"name": "tabs", "files": {"test.tsv": "q\tn\na,b\t1\n"}}
    yield {"name": "text", "files": {"test.txt": "one\n\ntwo\r\nthree\rfour \n2020-01-01"}}
    yield {"name": "text with a mark", "files": {"test.txt": "\ufeffone\ntwo\n"}}
    yield {"name": "one array", "files": {"test.json": '[{"q":0.12345678901234}]'}}
    yield {"name": "ndjson", "files": named("test.ndjson")}
    yield {"name": "two formats", "files": {**named("test.jsonl"), "train.csv": "q\na\n"}}
    yield {"name": "an unknown format", "files": {**named("test.jsonl"), "train.foo": "q\na\n"}}
    yield {"name": "two formats in a split", "files": {**named("a.jsonl"), "b.csv": "q\na\n"}}
    yield {"name": "nothing", "files": {"LICENSE": "y\n"}}
    yield {"name": "a name", "files": named("test.jsonl"), "dataset_name": "foo"}
    yield {"name": "the default name", "files": named("test.jsonl"), "dataset_name": "default"}
    yield {"name": "files of the folder", "files": named("test.jsonl", "x.jsonl"), "kwargs": {"data_files": {"test": "x.jsonl"}}}
    yield {"name": "a part of the folder", "files": named("a/test.jsonl", "b/test.jsonl"), "kwargs": {"data_dir": "b"}}
    yield {"name": "a part and files", "files": named("a/test.jsonl", "b/x.jsonl"), "kwargs": {"data_dir": "b", "data_files": {"test": "x.jsonl"}}}
    yield {"name": "an absolute part", "files": named("a/test.jsonl"), "kwargs": {"data_dir": "/a"}}
    yield {"name": "json with data_dir", "path": "json", "files": named("a/test.jsonl", "a/train.jsonl", "b/test.jsonl"), "kwargs": {"data_dir": "a"}}
    yield {"name": "json with data_dir, another ending", "path": "json", "files": named("a/test.rows"), "kwargs": {"data_dir": "a"}}
    yield {"name": "json with data_dir and files", "path": "json", "files": named("a/x.jsonl"), "kwargs": {"data_dir": "a", "data_files": {"test": "x.jsonl"}}}
    yield {"name": "text files", "path": "text", "files": {"x.txt": "line one\nline two\n\nlast"}, "kwargs": {"data_files": {"test": "x.txt"}}}
    yield {"name": "several text files", "path": "text", "files": {"x": "a\n", "y": "b"}, "kwargs": {"data_files": {"test": ["x", "y"]}}}
    yield {"name": "text with data_dir", "path": "text", "files": {"a/test.txt": "1\n2\n"}, "kwargs": {"data_dir": "a"}}


def random_case(r, number):
    words = ["train", "training", "test", "testing", "eval", "evaluation", "validation", "valid", "dev", "val", "data",
             "a", "latest", "extra", "train-00000-of-00001", "test-00000-of-00002", "x-00001-of-00002"]

    def part():
        return r.choice(["", "", "", "my", "x1", "2"]) + r.choice(["", "", "-", "_", ".", " ", "0"]) + r.choice(words) + r.choice(["", "", "-", "_", " ", "3", "v2", "_b"])

    names = set()
    for _ in range(r.randrange(1, 5)):
        depth = r.choice([0, 0, 0, 1, 1, 2])
        folders = [r.choice(["data", "data", part()]) for _ in range(depth)]
        names.add("/".join([*folders, part() + r.choice([".jsonl"] * 8 + [".py", ""])]))
    return {"name": f"random {number}", "files": named(*sorted(n for n in names if not any(o.startswith(n + "/") for o in names)))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    import datasets

    datasets.disable_progress_bars()
    logging.disable(logging.CRITICAL)
    r = random.Random(args.seed)
    cases = (random_case(r, i) for i in range(args.random)) if args.random else kept_cases()
    out_path = pathlib.Path(args.out).resolve()
    with open(out_path, "w", encoding="utf-8") as out:
        for case in cases:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="folder-golden-"))
            case.update(load(case, folder, datasets.load_dataset))
            shutil.rmtree(folder)
            out.write(json.dumps(case, ensure_ascii=True).replace(str(folder), "FOLDER") + "\n")


if __name__ == "__main__":
    main()
