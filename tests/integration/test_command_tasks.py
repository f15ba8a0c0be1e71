"""Programs of the user's as tasks of a run: whole runs on the example checkpoint, with small programs as harnesses.

test_command_clients.py has other people's harnesses.
"""
import json
import os
import pathlib
import signal
import time
import unittest

from evald_case import QUICKSTART, EvaldCase
from service_case import ServiceCase

CHECKPOINT = QUICKSTART / "checkpoints" / "step-00350"

# Asks the model for the answers to the first documents of quickstart_math, as evald does, and notes how often it began.
HARNESS = r'''
import json, os, re, sys, time, urllib.request
notes = os.environ["NOTES"]
with open(notes, "a") as out:
    out.write(f"{os.getpid()}\n")

def ask(path, body=None):
    call = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + path, body and json.dumps(body).encode(),
                                  {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
                                   "Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(call, timeout=120))

assert ask("/models")["data"][0]["id"] == os.environ["EVALD_MODEL"]
assert os.path.exists(os.environ["EVALD_CHECKPOINT"] + "/config.json")
assert os.getcwd() == os.environ["EVALD_OUTPUT"]
data = os.environ["DATA"]
read = lambda name: [json.loads(line) for line in open(f"{data}/{name}.jsonl")]
shown = "".join(f"Question: {e['question']}\nAnswer: {e['answer']}\n\n" for e in read("train")[:2])
number = lambda text: (re.findall(r"#### (\-?[0-9\.\,]+)", text) or [None])[0]
right = []
for document in read("test")[:int(os.environ["LIMIT"])]:
    text = ask("/completions", {"model": os.environ["EVALD_MODEL"], "prompt": shown + f"Question: {document['question']}\nAnswer:",
                                "max_tokens": 128, "temperature": 0, "stop": ["Question:"]})["choices"][0]["text"]
    right.append(number(text) == number(document["answer"]))
    print(text)
if len(sys.argv) > 1:
    exec(sys.argv[1])
json.dump({"results": {"math": {"exact,match": sum(right) / len(right)}}, "n": len(right)}, open("out.json", "w"))
'''
WAIT_ONCE = "sum(1 for line in open(notes)) > 1 or time.sleep(600)"


class CommandCase(EvaldCase):
    LIMIT = 6

    def setUp(self):
        super().setUp()
        self.notes = self.folder / "notes"
        (self.folder / "harness.py").write_text(HARNESS)
        # The first two examples, as the program shows them.
        text = (QUICKSTART / "tasks" / "quickstart_math.yaml").read_text()
        text = text.replace("../data", str(QUICKSTART / "data")).replace("task: quickstart_math", "task: math_first")
        (self.tasks / "math_first.yaml").write_text(text + "fewshot_config: {sampler: first_n}\n")

    def harness(self, *arguments, name="harness", **changes):
        return {"command": ["python3", "{eval_dir}/harness.py", *arguments], "name": name,
                "environment": {"NOTES": str(self.notes), "DATA": str(QUICKSTART / "data" / "math"), "LIMIT": self.LIMIT},
                "results": {"file": "out.json", "scores": {"exact": "$.results.math['exact,match']", "count": "$.n"}},
                "time_limit": 120, **changes}

    def script(self, name, text, **changes):
        return {"command": ["sh", "-c", text], "name": name, "time_limit": 60,
                "results": {"file": "out.json", "scores": {"score": "$.score"}}, **changes}

    def config(self, *tasks, **changes):
        return self.write_config(tasks=list(tasks), checkpoint=str(CHECKPOINT), **{
            "engine": {"name": "native"}, "workers": {"count": 1, "threads": 1}, **changes})

    def results(self):
        return json.loads((self.only_run() / "results.json").read_text())

    def begun(self):
        """Processes of the program that began, in order."""
        return [int(line) for line in self.notes.read_text().split()] if self.notes.exists() else []

    def gone(self, pid):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].startswith("Z")


class Commands(CommandCase):
    def test_a_program_s_scores_are_results_as_any_others(self):
        config = self.config({"task": "math_first", "limit": self.LIMIT}, self.harness(),
                             gates={"rules": [{"task": "harness", "metric": "count", "min": self.LIMIT}]})
        validated = self.evald("validate", config)
        self.assertEqual(validated.returncode, 0, validated.stderr)
        self.assertIn("harness", validated.stdout)
        done = self.evald("run", config)
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}\n{self.logs()}")
        results = self.results()
        own, command = results["results"]["math_first"], results["results"]["harness"]
        self.assertEqual(command["exact,none"], own["exact_match,strict-match"])
        self.assertEqual(command["count,none"], self.LIMIT)
        self.assertEqual(command["exact_stderr,none"], "N/A")
        self.assertEqual(results["n-samples"]["harness"], {"original": 1, "effective": 1})
        self.assertIn("harness", done.stdout)
        run = self.only_run()
        log = (run / "logs" / "command-harness.log").read_text()
        self.assertIn("== evald, ", log)
        self.assertIn("####", log)
        self.assertEqual(len(list((run / "commands" / "harness").iterdir())), 1)
        sample = json.loads((run / "samples_harness.jsonl").read_text())
        self.assertEqual(json.loads(sample["resps"][0][0])["count"], self.LIMIT)
        self.assertEqual(len(self.begun()), 1)

    def test_a_failure_is_that_of_its_task_alone(self):
        config = self.config(
            {"task": "math_first", "limit": self.LIMIT},
            self.script("status", "echo so it was; exit 3"), self.script("signal", "kill -SEGV $$"),
            self.script("absent", "true", command=["no-such-program-anywhere"]),
            self.script("late", "echo waiting; sleep 600", time_limit=1),
            self.script("empty", "true"), self.script("broken", "echo '{\"score\":' > out.json"),
            self.script("nan", "echo '{\"score\": NaN}' > out.json"),
            self.script("other", "echo '{\"scores\": 1}' > out.json"),
            self.script("good", "echo '{\"score\": 0.25}' > out.json"))
        done = self.evald("run", config, "--quiet")
        self.assertEqual(done.returncode, 2, f"{done.stdout}\n{done.stderr}")
        said = done.stderr
        for text in ("ended with exit status 3", "so it was", "was ended by signal 11", "'no-such-program-anywhere' cannot be started",
                     "after its time limit of 1 s", "waiting", "there is no out.json", "$.score is NaN",
                     "there is no $.score: $ is an object with 'scores'"):
            self.assertIn(text, said)
        # The other tasks are scored; results.json is for whole runs.
        self.assertEqual(sorted(path.parent.name for path in self.only_run().glob("scores/*/*.jsonl")), ["good", "math_first"])
        self.assertFalse((self.only_run() / "results.json").exists())
        # Each was tried once: another try would end in the same way.
        log = (self.only_run() / "logs" / "command-status.log").read_text()
        self.assertEqual(log.count("== evald"), 1)

    def test_a_killed_worker_takes_its_program_with_it(self):
        config = self.config(self.harness(WAIT_ONCE))
        process = self.start("run", config, "--quiet", "--json")
        first = self.wait_for("the program to wait", lambda: self.begun() and self.said_all() and self.begun()[0])
        worker, = self.children(process.pid, "evald-worker")
        os.kill(worker, signal.SIGKILL)
        self.wait_for("the program to end", lambda: self.gone(first))
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, f"{out}\n{err}\n{self.logs()}")
        self.assertEqual(json.loads(out)["results"]["harness"]["count,none"], self.LIMIT)
        self.assertEqual(len(self.begun()), 2)
        self.assertEqual(len(list((self.only_run() / "commands" / "harness").iterdir())), 2)

    def said_all(self):
        """Whether the program has had all its answers."""
        log = next(self.folder.glob("runs/*/logs/command-harness.log"), None)
        return log and log.read_text().count("####") >= self.LIMIT - 2

    def test_a_killed_run_is_resumed(self):
        done = self.folder / "done"
        quick = self.script("quick", f"echo x >> {done}; echo '{{\"score\": 1}}' > out.json")
        config = self.config(quick, self.harness(WAIT_ONCE), workers={"count": 2, "threads": 1})
        process = self.start("run", config, "--quiet", start_new_session=True)
        first = self.wait_for("the program", lambda: self.begun() and self.begun()[0])
        self.wait_for("the other command's scores", lambda: list(self.folder.glob("runs/*/scores/quick/*.jsonl")))
        process.kill()
        process.communicate()
        self.wait_for("the program to end", lambda: self.gone(first))
        results = self.run_done(config, "--resume", self.only_run())["results"]
        self.assertEqual(results["quick"]["score,none"], 1)
        self.assertEqual(results["harness"]["count,none"], self.LIMIT)
        self.assertEqual((len(self.begun()), done.read_text()), (2, "x\n"))

    def test_a_program_has_the_worker_to_itself_and_others_go_on(self):
        """Two workers: one waits for the program, which waits for the other's whole task."""
        wait = self.folder / "go"
        command = self.script("waits", f"while [ ! -e {wait} ]; do sleep 0.1; done; echo '{{\"score\": 1}}' > out.json")
        config = self.config(command, {"task": "math_first", "limit": 20}, workers={"count": 2, "threads": 1})
        process = self.start("run", config, "--quiet", "--json")
        self.wait_for("the other task", lambda: list(self.folder.glob("runs/*/scores/math_first/*.jsonl")))
        self.wait_for("all of it", lambda: sum(
            len(path.read_text().splitlines()) for path in self.folder.glob("runs/*/scores/math_first/*.jsonl")) == 20)
        wait.touch()
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(json.loads(out)["results"]["waits"]["score,none"], 1)

    def test_another_command_is_another_task(self):
        config = self.config(self.script("one", "echo '{\"score\": 1}' > out.json"))
        self.run_done(config)
        config = self.config(self.script("one", "echo '{\"score\": 2}' > out.json"))
        again = self.evald("run", config, "--resume", self.only_run(), "--quiet")
        self.assertEqual(again.returncode, 2, "a run keeps its configuration")
        self.assertEqual(self.results()["results"]["one"]["score,none"], 1)

    def test_ctrl_c_ends_the_program(self):
        config = self.config(self.harness(WAIT_ONCE))
        process = self.start("run", config, "--quiet")
        first = self.wait_for("the program", lambda: self.begun() and self.begun()[0])
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3)
        self.wait_for("the program to end", lambda: self.gone(first))

    def test_mistakes_are_found_before_the_run(self):
        for command, problem in (
                (self.script("a", "true", command="sh -c true"), "expected a list of words"),
                (self.script("a", "true", results={"file": "out.json", "scores": {"s": "score"}}), "expected '$'"),
                (self.script("a", "true", environment={"OPENAI_API_KEY": "x"}), "evald itself sets OPENAI_API_KEY"),
                (self.script("a", "{chekpoint}"), "did you mean 'checkpoint'"),
                (self.script("math_first", "true"), "two tasks or groups 'math_first'")):
            refused = self.evald("validate", self.config("math_first", command))
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(problem, refused.stderr)


class Submitted(ServiceCase):
    WORKERS = 1

    def test_a_service_starts_commands_only_if_it_says_so(self):
        begun = self.folder / "begun"
        command = {"command": ["sh", "-c", f"touch {begun}; echo '{{\"score\": 0.5}}' > out.json"], "name": "mine",
                   "time_limit": 60, "results": {"file": "out.json", "scores": {"score": "$.score"}}}
        submission = {"checkpoint": str(CHECKPOINT), "engine": {"name": "native"}, "tasks": [command]}
        self.serve()
        refused = self.submit(status=422, **submission)
        self.assertIn("does not start commands of submitted runs", refused["detail"])
        self.assertFalse(begun.exists())
        self.restart(allow_commands=True)
        run = self.finished(self.submit(**submission))
        self.assertEqual(run["state"], "done", run)
        results = self.call("GET", f"/v1/runs/{run['id']}/results")
        self.assertEqual(results["results"]["mine"]["score,none"], 0.5)
        self.assertTrue(begun.exists())


if __name__ == "__main__":
    unittest.main()
