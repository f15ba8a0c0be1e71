"""Other people's harnesses as tasks of a run: examples/harness, with Inspect and lm-evaluation-harness. Their scores are
those of evald's own tasks.

EVALD_LM_EVAL and EVALD_INSPECT name the programs `lm_eval` (lm-eval[api] 0.4.13) and `inspect` (inspect-ai), EVALD_VLLM
names `vllm`. Without a variable, the one on PATH is used.
"""
import json
import os
import pathlib
import shutil
import unittest

from evald_case import QUICKSTART, SOURCE, EvaldCase

EXAMPLES = SOURCE / "examples"
LM_EVAL = shutil.which(os.environ.get("EVALD_LM_EVAL", "lm_eval"))
INSPECT = shutil.which(os.environ.get("EVALD_INSPECT", "inspect"))
VLLM = shutil.which(os.environ.get("EVALD_VLLM", "vllm"))
MISSING = [name for name, program in (("lm_eval", LM_EVAL), ("inspect", INSPECT)) if program is None]


class Example(EvaldCase):
    def run_example(self, engine):
        """(results, results of the harness's own) of the example on a checkpoint with a chat template."""
        checkpoint = self.folder / "with-template"
        shutil.copytree(QUICKSTART / "checkpoints" / "step-00350", checkpoint)
        shutil.copy(EXAMPLES / "endpoint" / "chat_template.jinja", checkpoint)
        folders = [str(pathlib.Path(program).parent) for program in (LM_EVAL, INSPECT)]
        environment = {**os.environ, "PATH": os.pathsep.join([*folders, os.environ["PATH"]]),
                       "HF_HOME": str(self.folder / "hf")}
        settings = {"checkpoint": checkpoint, "engine": json.dumps(engine), "output.dir": self.folder / "runs",
                    "cache_dir": self.folder / "cache", "state_dir": self.folder / "state",
                    "staging.root": self.folder / "staging"}
        results = self.run_done(EXAMPLES / "harness" / "eval.yaml", *[
            word for key, value in settings.items() for word in ("--set", f"{key}={value}")], env=environment, timeout=1500)
        written, = self.only_run().glob("commands/harness/*/lm_eval/*/results_*.json")
        return results["results"], json.loads(written.read_text())["results"]

    @unittest.skipIf(MISSING, f"not there: {', '.join(MISSING)}; EVALD_LM_EVAL and EVALD_INSPECT may name them")
    def test_on_evald_s_own_engine_scores_are_evald_s_own(self):
        results, harness = self.run_example({"name": "native"})
        self.assertEqual(results["inspect_math"]["accuracy,none"], results["math_first"]["exact_match,strict-match"])
        self.assertGreater(results["inspect_math"]["accuracy,none"], 0)
        self.assertAlmostEqual(results["harness"]["choice,none"], results["quickstart_choice"]["acc,none"], places=12)
        self.assertEqual(results["harness"]["choice,none"], harness["quickstart_choice"]["acc,none"])
        self.assertEqual(results["harness"]["math,none"], harness["quickstart_math"]["exact_match,strict-match"])
        self.assertLess(results["harness"]["choice,none"], 0.9, "a test that a constant passes")

    @unittest.skipIf(MISSING or VLLM is None, f"not there: {', '.join([*MISSING, *([] if VLLM else ['vllm'])])}")
    def test_on_vllm_they_ask_its_own_api(self):
        results, harness = self.run_example({"name": "vllm", "command": [VLLM], "parity_seconds": 0})
        # bf16 on both sides, in other batches: near answers may differ.
        self.assertAlmostEqual(results["inspect_math"]["accuracy,none"], results["math_first"]["exact_match,strict-match"],
                               delta=0.05)
        self.assertAlmostEqual(results["harness"]["choice,none"], results["quickstart_choice"]["acc,none"], delta=0.02)
        self.assertEqual(results["harness"]["choice,none"], harness["quickstart_choice"]["acc,none"])


if __name__ == "__main__":
    unittest.main()
