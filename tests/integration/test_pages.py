"""The commands of README.md and docs/from-lm-eval.md, as they stand there. A block that is neither run here nor named
with a reason fails the test."""
import json
import subprocess
import sys
import unittest

from evald_case import QUICKSTART, SOURCE
from page_case import PageCase, fences

TABLE_NOISE = 2  # a table's last lines tell times


class Readme(PageCase):
    PAGE = "README.md"
    RUN = ["Task", "# eval.yaml", "evald validate eval.yaml", "evald serve"]
    NOT_RUN = {"./scripts/quickstart": "both install packages by apt and build evald; .ci/run begins with them"}

    def block(self, first):
        return next(text for _, text in fences(self.PAGE) if text.startswith(first))

    def test_every_block_is_known(self):
        self.check_all_known(self.PAGE, self.RUN, self.NOT_RUN)
        for script in ("quickstart", "test"):
            self.assertIn(f"./scripts/{script}", (SOURCE / ".ci/run").read_text())

    def test_the_table_is_that_of_the_example(self):
        said = self.shell(f"evald run examples/quickstart/eval.yaml --set output.dir={self.folder}/runs")
        for line in self.block("Task").splitlines()[:-TABLE_NOISE]:
            self.assertIn(line, said)

    def test_evaluate_a_checkpoint(self):
        """The folders /checkpoints and /benchmarks are made up; the commands are those of the page."""
        here = lambda text: text.replace("/checkpoints/", f"{self.folder}/checkpoints/").replace("/benchmarks", f"{self.folder}/benchmarks")
        (self.folder / "checkpoints").mkdir()
        for name, of in (("step-3000", "step-01200"), ("step-2000", "step-00600")):
            (self.folder / "checkpoints" / name).symlink_to(QUICKSTART / "checkpoints" / of)
        subprocess.run([sys.executable, SOURCE / "examples/suite/make_data.py", self.folder / "benchmarks", "--documents", "6"], check=True)
        work = self.folder / "work"
        work.mkdir()
        (work / "eval.yaml").write_text(here(self.block("# eval.yaml")))
        (work / "gates.yaml").write_text(json.dumps({"rules": [{"task": "mmlu", "metric": "acc", "min": 0}]}))
        self.shell(f"evald run eval.yaml --checkpoint {self.folder}/checkpoints/step-2000", cwd=work)  # the baseline of long ago
        said = {}
        for line in self.block("evald validate").splitlines():
            if "--resume" in line:  # there has to be an interrupted run
                self.shell("EVALD_FAIL_POINT=evald/run.generations_committed:1 evald run eval.yaml", cwd=work, statuses=(-9, 137))
            if line.startswith("evald fetch"):  # there is no hub here
                line = line.split("  #")[0] + " --list"
            said[line.split()[1]] = self.shell(here(line), cwd=work, statuses=(0, 3) if line.startswith("evald doctor") else (0,))
        self.assertIn("mmlu", said["validate"])
        self.assertIn("1 of 1 gates met", said["run"])  # the last of them
        self.assertIn("humaneval", said["compare"])
        self.assertIn('tasks: ["mmlu"]', said["translate"])
        self.assertIn("130 of 130 tasks have all that they need", said["tasks"])

    def test_a_service_beside_the_training_run(self):
        commands = [self.on_own_port(line) for line in self.block("evald serve").splitlines()]
        for forever in commands[:2]:
            process = subprocess.Popen(["bash", "-c", "exec " + forever], cwd=SOURCE, env=self.env, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.terminate)
            self.wait_for("the service", lambda: self.answers(), 60)
        self.wait_for("the checkpoints", lambda: self.shell(commands[3]).count('"state":"done"') == 4, 120)
        self.assertIn("step-01200", self.shell(commands[2]))

    def answers(self):
        return subprocess.run(["evald", "status", "--once"], env=self.env, capture_output=True).returncode == 0


class FromLmEval(PageCase):
    PAGE = "docs/from-lm-eval.md"
    RUN = ["evald translate lm_eval --model hf --model_args pretrained=checkpoints/step-600,dtype=bfloat16 \\", 'checkpoint: "checkpoints/step-600"']

    def test_every_block_is_known(self):
        self.check_all_known(self.PAGE, self.RUN, {})

    def test_the_translation_is_the_one_on_the_page(self):
        (_, command), (_, expected) = fences(self.PAGE)
        (self.folder / "checkpoints").mkdir()
        (self.folder / "checkpoints" / "step-600").symlink_to(QUICKSTART / "checkpoints" / "step-00600")
        self.shell(command, cwd=self.folder)
        self.assertEqual((self.folder / "eval.yaml").read_text(), expected)

    def test_the_same_without_a_file(self):
        """`evald run checkpoints/step-600 --tasks …` takes the words that the page gives."""
        page = (SOURCE / self.PAGE).read_text()
        words = page.split("Without a file the same is `", 1)[1].split("`", 1)[0]
        (self.folder / "checkpoints").mkdir()
        (self.folder / "checkpoints" / "step-600").symlink_to(QUICKSTART / "checkpoints" / "step-00600")
        data = self.folder / "DATASETS"
        subprocess.run([sys.executable, SOURCE / "examples/suite/make_data.py", data, "--documents", "6"], check=True)
        self.assertIn("gsm8k", self.shell(words, cwd=self.folder))


if __name__ == "__main__":
    unittest.main(verbosity=2)
