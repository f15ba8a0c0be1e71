"""The metric math_verify, from the check before the run to the results. A package that stands for math-verify says what the
test needs; tests/unit/metrics/math_comparer_test.cc has the comparisons themselves."""
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

from evald_case import EvaldCase

# An even target is equal to any answer; the target 7 takes for ever.
PACKAGE = """
def parse(text, parsing_timeout=5):
    return [text]

def verify(gold, target, float_rounding=6, numeric_precision=15, strict=True, allow_set_relation_comp=False, timeout_seconds=5):
    if gold == ["\\\\boxed{7}"]:
        while True:
            pass
    return gold[0][-2] in "02468"
"""

TASK = """task: values
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 8}
metric_list: [{metric: math_verify}]
"""


class MathVerify(EvaldCase):
    def setUp(self):
        super().setUp()
        # Not in /tmp: a process in the sandbox has a /tmp of its own.
        self.venv = pathlib.Path(tempfile.mkdtemp(prefix="evald-math-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.venv, ignore_errors=True)
        (self.venv / "bin").mkdir()
        (self.venv / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
        (self.venv / "bin" / "python").symlink_to("/usr/bin/python3")
        (self.tasks / "rows.jsonl").write_text("".join(
            json.dumps({"question": f"{i} + 0?", "answer": str(i)}) + "\n" for i in range(8)))
        (self.tasks / "values.yaml").write_text(TASK)

    def install(self):
        for minor in range(9, sys.version_info.minor + 5):
            packages = self.venv / "lib" / f"python3.{minor}" / "site-packages"
            (packages / "math_verify").mkdir(parents=True)
            (packages / "math_verify" / "__init__.py").write_text(PACKAGE)
            (packages / "math_verify-9.9.dist-info").mkdir()
            (packages / "math_verify-9.9.dist-info" / "METADATA").write_text(
                "Metadata-Version: 2.1\nName: math-verify\nVersion: 9.9\n")

    def config(self, **changes):
        return self.write_config(tasks=["values"], engine={"name": "emulated", "concurrency": 4},
                                 task_python=str(self.venv / "bin" / "python"), **changes)

    def verdicts(self):
        return sorted(line for path in (self.folder / "cache" / "math").glob("*/*.txt") for line in path.read_text().splitlines())

    def test_the_package_is_missed_before_the_run(self):
        done = self.evald("run", self.config(), "--quiet")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"the metric math_verify takes the Python package math-verify, which {self.venv}/bin/python does not have",
                      done.stderr)
        self.assertIn(f"{self.venv}/bin/python -m pip install math-verify", done.stderr)
        self.assertEqual(list((self.folder / "runs").glob("*/generations/*/*")), [])

    def test_pairs_are_compared_once_and_given_up_in_time(self):
        self.install()
        first = self.run_done(self.config())
        self.assertEqual(first["results"]["values"]["math_verify,none"], 0.5)
        self.assertEqual(first["evald"]["fallbacks"], {"values": {"none": {"math_verify: time limit": 1}}})
        self.assertEqual(first["evald"]["math_verify"]["values"]["packages"], {"math-verify": "9.9"})
        kept = self.verdicts()
        self.assertEqual(len(kept), 8)
        self.assertEqual(sorted(line.split()[1] for line in kept), ["equal"] * 4 + ["limit"] + ["unequal"] * 3)
        again = self.evald("run", self.config(output={"dir": "again"}))
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("values, filter none: 1 answer was counted as wrong without a comparison (math_verify: time limit 1)",
                      again.stdout)
        self.assertEqual(self.verdicts(), kept)


if __name__ == "__main__":
    unittest.main()
