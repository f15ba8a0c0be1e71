"""Tasks of many kinds, with functions of their own, held against lm-evaluation-harness: scores, standard errors and samples
files are those that tests/oracle/library_golden.py had of the harness, to the last byte. Answers come from the engine replay.
Python has no packages here, so that the functions run with evald's stand-ins for the harness's modules."""
import json
import pathlib
import unittest

from evald_case import SOURCE, EvaldCase

GOLDEN = SOURCE / "tests" / "golden" / "library"
COMPARED = ("results", "versions", "n-shot", "higher_is_better", "n-samples")


class Library(EvaldCase):
    def test_scores_and_samples_are_the_harness_s(self):
        expected = json.loads((GOLDEN / "results.json").read_text())
        config = self.write_config(
            tasks=list(expected), task_dirs=[str(GOLDEN / "tasks")], task_code="allow", bootstrap_iters=100, workers=None,
            engine={"name": "replay", "generations": str(GOLDEN / "generations")}, metrics=None)
        run = pathlib.Path(self.run_done(config)["run_directory"])
        results = json.loads((run / "results.json").read_text())
        for task, found in expected.items():
            for key in COMPARED:
                with self.subTest(task=task, key=key):
                    self.assertEqual(json.dumps(results[key][task], sort_keys=True), json.dumps(found[key], sort_keys=True))
            with self.subTest(task=task):
                name = f"samples_{task}.jsonl"
                self.assertEqual((run / name).read_text().split("\n"), (GOLDEN / name).read_text().split("\n"))


if __name__ == "__main__":
    unittest.main()
