"""Data in tables (parquet, arrow) and in copies of hub datasets, from the file to the score. Needs a Python with pyarrow."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from evald_case import EvaldCase

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PYTHON = pathlib.Path(os.environ.get("EVALD_ARROW_PYTHON", SOURCE / "build" / "schemathesis" / "bin" / "python"))
TASK = """task: table
dataset_path: PATH
dataset_name: main
output_type: generate_until
test_split: test
doc_to_text: "{{text}} {{half}} {{nested}}"
doc_to_target: "{{label}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 4}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


def has_arrow(python):
    return python.exists() and subprocess.run([python, "-c", "import pyarrow"], capture_output=True).returncode == 0


@unittest.skipUnless(has_arrow(PYTHON), f"{PYTHON} has no pyarrow (scripts/install-packages --with-schema-tester)")
class Tables(EvaldCase):
    def config(self, path="owner/name", part="main", **changes):
        (self.tasks / "table.yaml").write_text(TASK.replace("PATH", path).replace("main", part))
        return self.write_config(tasks=["table"], data_dir="data", task_python=str(PYTHON), **changes)

    def make(self, code, place="table/test.parquet"):
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([PYTHON, "-c", "import pyarrow as pa, pyarrow.parquet as pq, datetime\n" + code, path], check=True)

    def test_a_cached_hub_dataset_is_evaluated(self):
        snapshot = self.folder / "data" / "hub" / "datasets--owner--name" / "snapshots" / "0123abcd"
        shutil.copytree(SOURCE / "tests" / "golden" / "datasets" / "tables" / "hub", snapshot)
        config = self.config()
        document = self.run_done(config)
        self.assertEqual(document["n-samples"]["table"], {"original": 12, "effective": 12})
        samples = [json.loads(line) for line in self.samples(self.only_run())["samples_table.jsonl"].splitlines()]
        rows = json.loads((SOURCE / "tests/golden/datasets/tables/rows.json").read_text())["hub main"]
        self.assertEqual([repr(sample["doc"]) for sample in samples], rows)
        again = self.evald("run", config, "--quiet", "--set", "output.name=again")
        self.assertEqual(again.returncode, 0, again.stderr)

    def test_what_is_wrong_is_named(self):
        (self.folder / "data").mkdir()
        wrong = (
            ("pq.write_table(pa.table({'at': [datetime.datetime(2020, 1, 1)]}), __import__('sys').argv[1])",
             r"test.parquet: cannot be read as a table: TypeError: the column 'at' has values of the type timestamp"),
            ("pq.write_table(pa.table({'list': [[{'raw': b'x'}]]}), __import__('sys').argv[1])",
             r"the column 'list.raw' has values of the type binary"),
            ("pq.write_table(pa.table({'n': [0.5, float('nan')]}), __import__('sys').argv[1])",
             r"test.parquet: cannot be read as a table: ValueError: row 1, column 'n': nan is or holds a value that JSON has not"),
            ("pq.write_table(pa.table({'n': [[2**63]]}, schema=pa.schema([('n', pa.list_(pa.uint64()))])), __import__('sys').argv[1])",
             r"row 0, column 'n': \[9223372036854775808\]"),
            ("pq.write_table(pa.table({'text': pa.array([], pa.string())}), __import__('sys').argv[1])",
             r"test.parquet: the file has no documents"),
            ("open(__import__('sys').argv[1], 'wb').write(b'PAR1' * 1000)", r"test.parquet: cannot be read as a table"),
        )
        for code, message in wrong:
            with self.subTest(message=message):
                self.make(code)
                refused = self.evald("run", self.config(str(self.folder / "table"), "default"), "--quiet")
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertRegex(refused.stderr, message)


if __name__ == "__main__":
    unittest.main()
