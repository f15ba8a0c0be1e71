#!/usr/bin/env python3
"""Writes the golden cases of documents_test: JSON and CSV files as read by load_dataset of the `datasets` library.

    loader_golden.py OUT.jsonl [--random N] [--seed S]

Needs `datasets` 5.2, pyarrow 26 and pandas 3.1. Each line is a case: its files, the split that is read, and the rows as
Python prints them (repr; the first and last two if there are many), or `"error"` if load_dataset refuses the files. A
file is text, or a list of pieces [count, text], in which `%d` becomes the number of the repetition. --random instead
makes up N cases, for a wider comparison than the cases that are kept.
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


def text_of(content):
    if isinstance(content, str):
        return content
    return "".join(piece.replace("%d", str(i)) for count, piece in content for i in range(count))


def load(case, folder, load_dataset):
    files = {}
    for split, contents in case["files"].items():
        files[split] = []
        for i, content in enumerate(contents):
            path = folder / f"{split}{i}.{case['kind']}"
            path.write_bytes(text_of(content).encode("utf-8", "surrogatepass"))
            files[split].append(str(path))
    try:
        rows = load_dataset(case["kind"], data_files=files, cache_dir=str(folder / "cache"))[case["split"]]
        count = len(rows)
        kept = range(count) if count <= 100 else [0, 1, count - 2, count - 1]
        return {"count": count, "rows": [repr(rows[i]) for i in kept]}
    except Exception as error:  # noqa: BLE001
        return {"error": repr(error.__cause__ or error)[:200]}


def lines(*rows):
    return "".join(row + "\n" for row in rows)


PAD = '"p":"' + "z" * 1000 + '"'


def kept_cases():
    one = {
        "whole and fraction": lines('{"x":1}', '{"x":2.5}'),
        "days": lines('{"x":"2020-01-01"}', '{"x":"2021-02-03"}'),
        "days and nulls": lines('{"x":null}', '{"x":"2021-02-03"}', '{"y":1}'),
        "times": lines('{"x":"2020-01-01T10:00:00Z"}', '{"x":"2021-02-03 00:00:01"}', '{"x":"2021-02-03 07"}', '{"x":"2021-02-03T07:08"}'),
        "zones": lines('{"x":"2020-01-01T10:00:00+02:00"}', '{"x":"2020-01-01T10:00:00-0130"}', '{"x":"2020-01-01 10+01"}'),
        "fractions of seconds": lines('{"x":"2020-01-01T10:00:00.123"}', '{"x":"2020-01-01T10:00:00.5"}'),
        "no days": lines('{"x":"2020-1-1"}', '{"x":"2020-01"}'),
        "no day of the month": lines('{"x":"2020-02-30"}'),
        "leap day": lines('{"x":"2020-02-29"}', '{"x":"1900-02-28"}', '{"x":"0001-01-01"}', '{"x":"9999-12-31T23:59:59"}'),
        "hour 24": lines('{"x":"2020-02-20T24:00"}'),
        "second 60": lines('{"x":"2020-02-20T23:59:60"}'),
        "some days": lines('{"x":"2020-01-01"}', '{"x":"hello"}'),
        "empty text and days": lines('{"x":"2020-01-01"}', '{"x":""}'),
        "lists of days": lines('{"x":["2020-01-01","2020-02-03"]}', '{"x":[]}', '{"x":["2021-01-01T10:11:12"]}'),
        "nested days": lines('{"x":{"d":"2020-01-01"}}', '{"x":{"d":"2020-01-02"}}'),
        "boolean and whole": lines('{"x":true}', '{"x":1}'),
        "text and whole": lines('{"x":"a"}', '{"x":1}', '{"x":"2020-01-01"}'),
        "text of JSON and whole": lines('{"x":"5"}', '{"x":1}', '{"x":"true"}', '{"x":"null"}', '{"x":" 7 "}', '{"x":"5 apples"}', '{"x":""}'),
        "text of fractions and whole": lines('{"x":"0.12345678901"}', '{"x":1}', '{"x":"1e5"}', '{"x":"-2.5e-3"}'),
        "object and text": lines('{"x":{"a":1}}', '{"x":"s"}', '{"x":null}', '{"x":[1,2.5]}'),
        "other keys": lines('{"x":{"a":1}}', '{"x":{"b":2}}'),
        "other keys and fractions": lines('{"x":{"a":0.12345678901234},"f":0.12345678901234}', '{"x":{"b":2},"f":1e17}', '{"x":{"b":2},"f":1e-12}', '{"x":{"b":-0.0},"f":-0.0}'),
        "other keys in lists": lines('{"x":[{"a":1},{"b":2}]}', '{"x":[]}'),
        "fewer keys": lines('{"x":{"a":1,"b":2}}', '{"x":{"a":3}}'),
        "keys in another order": lines('{"x":{"a":1,"b":2}}', '{"x":{"b":3,"a":4}}'),
        "columns in another order": lines('{"x":1,"y":2}', '{"y":3,"x":4}'),
        "lacking": lines('{"x":"a","y":1}', '{"x":"b"}'),
        "lacking in the first": lines('{"y":1}', '{"x":"b","y":2}'),
        "lists of whole and fraction": lines('{"x":[1,2.5]}', '{"x":[3]}'),
        "lists of lists": lines('{"x":[[1,2],[3]]}', '{"x":[[],[4.5]]}'),
        "mixed lists": lines('{"x":[1,"a"]}', '{"x":[3]}'),
        "null in a list": lines('{"x":[null,1]}', '{"x":[2]}'),
        "nested whole and fraction": lines('{"x":{"a":1}}', '{"x":{"a":1.5}}'),
        "beyond 53 bits": lines('{"x":9007199254740993}', '{"x":1}'),
        "beyond 53 bits and fraction": lines('{"x":9007199254740993}', '{"x":1.5}'),
        "beyond 63 bits": lines('{"x":12345678901234567890}', '{"x":1}'),
        "beyond 64 bits": lines('{"x":123456789012345678901234567890}', '{"x":1}'),
        "doubled key": lines('{"x":1,"x":2}', '{"x":3}'),
        "doubled nested key": lines('{"x":{"a":1,"a":2}}', '{"x":{"a":3}}'),
        "empty objects": lines('{"x":{}}', '{"x":{}}'),
        "empty lists": lines('{"x":[]}', '{"x":[]}'),
        "empty line": lines('{"x":"a"}', "", '{"x":"b"}', "   "),
        "empty line and other keys": lines('{"x":{"a":1}}', "", '{"x":{"b":2}}'),
        "empty line and mixed": lines('{"x":1}', "", '{"x":"a"}'),
        "byte order mark": "\ufeff" + lines('{"x":"a"}', '{"x":"b"}'),
        "returns": '{"x":"a"}\r\n{"x":"b"}\r\n',
        "lone surrogate": lines('{"x":"\\ud83d z"}'),
        "zero byte": lines('{"x":"a\\u0000b"}'),
        "over lines": '{\n "x":{"a":1}\n}\n{\n "x":{"b":2}\n}\n',
        "on one line": '{"x":"a"}{"x":"b"}\n',
        "one object": '{"x":["a","b"]}',
        "scalars": lines("1", "2"),
        "long fraction": lines('{"x":0.1234567890123456789}', '{"x":1e-7}', '{"x":-0.0}', '{"x":1e16}'),
        "array": '[{"x":"a"},{"x":"b"}]',
        "array of numbers in text": '[{"x":"1"},{"x":"007"}]',
        "array of whole and fraction": '[{"x":1},{"x":2.5}]',
        "array of fractions": '[{"x":0.12345678901234567},{"x":123456789012345678.5},{"x":-0.0},{"x":1e-12},{"x":1e-16},{"x":0.30000000000000004},{"x":5e-11},{"x":0.12345678905},{"x":7.12345678915},{"x":1234.99999999996}]',
        "array of days": '[{"x":"2020-01-01","date":"2020-01-01"},{"x":"2021-01-01","date":"q"}]',
        "array lacking": '[{"x":"a"},{"y":2}]',
        "array of other keys": '[{"x":{"a":1.00000000005}},{"x":{"b":"q"}}]',
        "array of mixed": '[{"x":1},{"x":"a"}]',
        "array of bytes beyond 63 bits": '[{"x":12345678901234567890},{"x":1}]',
        "array over lines": '[\n  {"x": 1,\n   "y": {"z": [1, 2]}},\n  {"x": 2, "y": {"z": [0.5]}}\n]\n',
        "empty array": "[]",
        "days in a later block": [[1000, '{"x":null,' + PAD + "}\n"], [1000, '{"x":"2020-01-01",' + PAD + "}\n"]],
        "text in a later block": [[1000, '{"x":"2020-01-01",' + PAD + "}\n"], [1000, '{"x":"q",' + PAD + "}\n"]],
        "fraction in a later block": [[1000, '{"x":%d,' + PAD + "}\n"], [1, '{"x":1.5,' + PAD + "}\n"]],
        "text of numbers in a later block": [[1000, '{"x":%d,' + PAD + "}\n"], [1000, '{"x":"%d",' + PAD + "}\n"]],
        "boolean in a later block": [[1000, '{"x":%d,' + PAD + "}\n"], [1000, '{"x":true,' + PAD + "}\n"]],
        "other keys in a later block": [[1000, '{"x":{"a":1},' + PAD + "}\n"], [1000, '{"x":{"b":1},' + PAD + "}\n"]],
        "fraction in a later batch": [[12000, '{"x":%d,' + PAD + "}\n"], [1, '{"x":2.5,"p":""}\n']],
        "whole in a later batch": [[12000, '{"x":0.5,' + PAD + "}\n"], [2, '{"x":2,"p":""}\n']],
        "text in a later batch": [[12000, '{"x":"2020-01-01",' + PAD + "}\n"], [1, '{"x":"hello","p":""}\n']],
        "null in a later batch": [[12000, '{"x":1,' + PAD + "}\n"], [1, '{"x":null,"p":""}\n']],
        "column in a later batch": [[12000, '{"x":1,' + PAD + "}\n"], [1, '{"x":2,"p":"","new":1}\n']],
        "fewer keys in a later batch": [[12000, '{"x":{"b":1,"a":2},' + PAD + "}\n"], [2, '{"x":{"a":3},"p":""}\n']],
        "any type in a later batch": [[6000, '{"x":{"a":1},' + PAD + "}\n"], [6000, '{"x":{"b":1},' + PAD + "}\n"], [1, '{"x":"7","p":""}\n']],
    }
    for name, content in one.items():
        yield {"name": name, "kind": "json", "files": {"test": [content]}, "split": "test"}
    two = {
        "text where numbers are": ('{"x":1}\n', '{"x":"a"}\n'),
        "numbers where text is": ('{"x":"a"}\n', '{"x":5}\n{"x":-7}\n'),
        "fractions where text is": ('{"x":"a"}\n', '{"x":5.5}\n{"x":1.0}\n{"x":0.125}\n'),
        "booleans where text is": ('{"x":"a"}\n', '{"x":true}\n'),
        "days where text is": ('{"x":"a"}\n', '{"x":"2020-01-01"}\n'),
        "text where days are": ('{"x":"2020-01-01"}\n', '{"x":"a"}\n'),
        "fractions where numbers are": ('{"x":1}\n', '{"x":2.5}\n'),
        "whole fractions where numbers are": ('{"x":1}\n', '{"x":2.0}\n'),
        "numbers where fractions are": ('{"x":1.5}\n', '{"x":2}\n'),
        "great numbers where fractions are": ('{"x":1.5}\n', '{"x":9007199254740993}\n'),
        "booleans where numbers are": ('{"x":1}\n', '{"x":true}\n'),
        "text where nulls are": ('{"x":null}\n', '{"x":"a"}\n'),
        "nulls where text is": ('{"x":"a"}\n', '{"x":null}\n'),
        "one column more": ('{"x":1}\n', '{"x":1,"y":2}\n'),
        "one column less": ('{"x":1,"y":2}\n', '{"x":1}\n'),
        "one key less": ('{"x":{"a":1,"b":2}}\n', '{"x":{"b":1}}\n'),
        "one key more": ('{"x":{"a":1,"b":2}}\n', '{"x":{"b":1,"c":1}}\n'),
        "any type": ('{"x":{"a":1}}\n{"x":{"b":0.5}}\n', '{"x":{"b":1,"c":0.12345678901234}}\n{"x":"5"}\n{"x":"a"}\n'),
        "mixed where text is": ('{"x":"z"}\n', '{"x":"a"}\n{"x":1}\n'),
        "an array first": ('[{"x":1}]', '{"x":2}\n'),
        "an array of text where numbers are": ('[{"x":1}]', '[{"x":"a"}]'),
        "an array of other keys first": ('[{"x":{"a":1}},{"x":{"b":1}}]', '[{"x":"a"}]'),
        "columns in another order": ('{"x":1,"y":2}\n', '{"y":1,"x":2}\n'),
    }
    for name, (first, second) in two.items():
        yield {"name": "splits, " + name, "kind": "json", "files": {"train": [first], "test": [second]}, "split": "test"}
        yield {"name": "files, " + name, "kind": "json", "files": {"test": [first, second]}, "split": "test"}
    csv = {
        "whole": "x,y\n1,a\n2,b\n",
        "gap": "x,y\n1,a\n,b\n",
        "booleans": "x,y\nTrue,a\nFALSE,b\ntrue,c\n",
        "booleans with a gap": "x,y\nTrue,a\n,b\n",
        "booleans and numbers": "x,y\nTrue,1\n1,1\n",
        "booleans and text": "x,y\nTrue,1\n,1\nfoo,2\n",
        "leading zeros": "x,y\n007,a\n010,b\n",
        "missing values": "x,y\nNA,a\nnull,b\nNone,c\nnan,d\nN/A,e\n<NA>,f\nword,g\n",
        "quotes": 'x,y\n"a ""q"" b",1\n"multi\nline",2\n',
        "spaces": "x,y\n 1 , a\n2,b\n",
        "days stay text": "x,y\n2020-01-01,a\n2020-01-02,b\n",
        "fractions": "x,y\n1.10,a\n2,b\n1e3,c\n-.5,d\n",
        "beyond 63 bits": "x,y\n12345678901234567890,a\n1,b\n",
        "beyond 63 bits and negative": "x\n12345678901234567890\n-1\n",
        "beyond 63 bits with a gap": "x,y\n12345678901234567890,1\n,1\n",
        "beyond 64 bits": "x\n123456789012345678901234567890\n1\n",
        "least and greatest": "x\n9223372036854775807\n-9223372036854775808\n",
        "short rows": "x,y\n1\n2,b\n",
        "long rows": "x,y\n1,a\n2,b,c\n",
        "signs": "x,y\n+1,a\n-2,b\n",
        "infinite": "x,y\ninf,a\n1,b\n",
        "empty and quoted": 'x,y\n"",a\nb,c\n',
        "nothing but gaps": "x,y\n,1\n,2\n",
        "returns and empty lines": "x,y\r\n1,a\r\n\r\n2,b\r\n",
        "blank lines": "q,a,b\nx,1,2\n  \n\t\ny,2,3\n \t \n",
        "blank lines of one column": "x\n1\n  \n2\n",
        "blanks after the last line": "x,y\n1,a\n  ",
        "blank lines with returns": "x,y\r\n1,a\r\n  \r\n2,b\r\n",
        "a blank line before the header": "  \nx,y\n1,a\n",
        "blanks in quotes": 'x,y\n"  ",1\nb,2\n',
        "one column of blanks in quotes": 'x\n"  "\nb\n',
        "lines of other spaces": "x\n1\n\u00a0\n\u000b\n",
        "fraction in a later chunk": [[1, "x,y\n"], [10050, "%d,a\n"], [1, "2.5,b\n"]],
        "whole fraction in a later chunk": [[1, "x,y\n"], [10050, "%d,a\n"], [1, "2.0,b\n"]],
        "gap in a later chunk": [[1, "x,y\n"], [10050, "%d,a\n"], [1, ",b\n"]],
        "text in a later chunk": [[1, "x,y\n"], [10050, "%d,a\n"], [1, "foo,b\n"]],
        "numbers in a later chunk": [[1, "x,y\n"], [10000, "w,a\n"], [3, "0%d,b\n"]],
        "fractions in a later chunk where text is": [[1, "x,y\n"], [10000, "w,a\n"], [3, "1.5%d,b\n"]],
        "booleans in a later chunk": [[1, "x,y\n"], [10000, "True,a\n"], [3, "maybe,b\n"]],
        "whole in a later chunk": [[1, "x,y\n"], [10000, "%d.0,a\n"], [3, "3,b\n"]],
    }
    for text in ("2\u00a0", "\u00a02", "\uff11", "NAN", "nAn", "+nan", "nan ", " nan", "-nan ", "inf ", " inf", "-inf ", "inf", "+inf",
                 "INF", "Infinity", "infinity ", " 2.5 ", "2.5\t", "1_0", "0x10", "1e400"):
        csv[f"{text!r} beside a number"] = f"x,y\n1,a\n{text},b\n"
    csv["odd booleans"] = "x,y\ntRUE,a\nFalse,b\nfaLSE,c\n"
    for name, content in csv.items():
        yield {"name": "csv, " + name, "kind": "csv", "files": {"test": [content]}, "split": "test"}
    for name, first, second in (("fractions", "x\n1\n2\n", "x\n1.5\n"), ("whole fractions", "x\n1\n2\n", "x\n1.0\n"),
                                ("gaps", "x,y\n1,a\n2,b\n", "x,y\n1.0,q\n,b\n"), ("numbers as text", "x\na\n", "x\n007\n"),
                                ("booleans as text", "x\na\n", "x\nTrue\n"), ("a column more", "x\na\n", "x,y\nb,1\n"),
                                ("a column less", "x,y\na,1\n", "x\nb\n"), ("same", "x\n1\n", "x\n2\n")):
        yield {"name": "csv splits, " + name, "kind": "csv", "files": {"train": [first], "test": [second]}, "split": "test"}
        yield {"name": "csv files, " + name, "kind": "csv", "files": {"test": [first, second]}, "split": "test"}


WORDS = ["a", "", "2020-01-01", "2020-01-01 10:00", "2021-12-31T23:59:59Z", "2020-06-01T10:00:00+05:30", "1999-02-28", "5", "word",
         "é🙂", "a b", "x/y", 'q"q', "NA", "2020-13-01"]


def scalar(r, kind):
    if kind == "whole":
        return r.choice([0, 1, -7, 12345, 2**53 + 1, 2**62])
    if kind == "fraction":
        return r.choice([0.5, -2.25, 1e-7, 3.0, 1e20, r.random(), r.random() * 1e6, -r.random() * 1e-5, r.random() * 1e18])
    if kind == "boolean":
        return r.choice([True, False])
    if kind == "day":
        return r.choice([w for w in WORDS if w[:2] in ("20", "19") and "13" not in w])
    if kind == "null":
        return None
    return r.choice(WORDS)


def value(r, kinds, depth):
    pick = r.random()
    if depth > 0 and pick < 0.15:
        return [value(r, kinds, depth - 1) for _ in range(r.randrange(4))]
    if depth > 0 and pick < 0.3:
        keys = r.sample("abc", r.choice([2, 2, 3, 1]))
        return {k: value(r, kinds, depth - 1) for k in keys}
    return scalar(r, r.choice(kinds))


def shaped(r, shape):
    if r.random() < 0.08:
        return None
    if shape[0] == "list":
        return [shaped(r, shape[1]) for _ in range(r.randrange(4))]
    if shape[0] == "struct":
        keys = list(shape[1])
        if r.random() < 0.1:
            r.shuffle(keys)
        return {k: shaped(r, shape[1][k]) for k in keys if r.random() > 0.02}
    return scalar(r, r.choice(shape[1]))


def a_shape(r, depth):
    pick = r.random()
    if depth and pick < 0.2:
        return "list", a_shape(r, depth - 1)
    if depth and pick < 0.4:
        return "struct", {k: a_shape(r, depth - 1) for k in r.sample("abcd", r.randrange(1, 4))}
    return "scalar", r.choice([["whole"], ["fraction"], ["whole", "fraction"], ["day"], ["day", "null"], ["text"], ["boolean"],
                               ["null"], ["whole", "text"], ["boolean", "whole"], ["fraction", "text"], ["day", "text"]])


def random_case(r, number):
    if r.random() < 0.3:
        return random_csv(r, number)
    shapes = {k: a_shape(r, 2) for k in r.sample("xyzw", r.randrange(1, 4))}

    def rows(count):
        return [{k: shaped(r, s) for k, s in shapes.items() if r.random() > 0.05} for _ in range(count)]

    def write(rows):
        dumped = [json.dumps(row, ensure_ascii=r.random() < 0.5) for row in rows]
        if r.random() < 0.25:
            return "[" + ", ".join(dumped) + "]"
        return lines(*dumped) + ("\n" if r.random() < 0.1 else "")

    files = {"test": [write(rows(r.randrange(1, 6)))]}
    if r.random() < 0.3:
        files = {"train": [write(rows(r.randrange(1, 6)))], **files}
    elif r.random() < 0.15:
        files["test"].append(write(rows(r.randrange(1, 4))))
    return {"name": f"random {number}", "kind": "json", "files": files, "split": "test"}


def random_csv(r, number):
    pools = [["1", "-2", "30", "007"], ["1", "2", ""], ["1.5", "2", "1e3"], ["True", "False"], ["True", "FALSE", ""], WORDS,
             ["0.1234567890123456789", "3.14159265358979323846", "1e-320", "123456789.123456789", "9007199254740993.5", ".1e1", "1.e2"],
             ["9223372036854775807", "9223372036854775808"], ["", "NA"], [" 1", "2 "], ["a", "1"], ["True", "1"]]
    columns = [r.choice(pools) for _ in range(r.randrange(1, 4))]

    def write():
        out = ",".join("xyz"[: len(columns)]) + "\n"
        for _ in range(r.randrange(1, 6)):
            fields = [r.choice(pool) for pool in columns]
            quoted = ['"' + f.replace('"', '""') + '"' if set(f) & set(',"\n') else f for f in fields]
            out += ",".join(quoted) + "\n"
        return out

    files = {"test": [write()]}
    if r.random() < 0.2:
        files = {"train": [write()], **files}
    return {"name": f"random {number}", "kind": "csv", "files": files, "split": "test"}


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
    with open(args.out, "w", encoding="utf-8") as out:
        for case in cases:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="loader-golden-"))
            case.update(load(case, folder, datasets.load_dataset))
            shutil.rmtree(folder)
            out.write(json.dumps(case, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
