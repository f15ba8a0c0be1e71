"""Files that grow when they are read. Each ends in one clear error, and neither `evald run` nor the service grows."""
import gzip
import json
import os
import pathlib
import shutil
import signal
import time
import unittest

from evald_case import BINARIES, OVER, QUICKSTART, EvaldCase
from service_case import Service

MEMORY_MAX = 512 << 20
MIB = 1 << 20


def peak_of(pid):
    """The most memory that a process has ever had, in bytes."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def repeated(byte, mib):
    """A gzip file of `mib` MiB of one byte, made of members of 64 MiB each."""
    member = gzip.compress(byte * (64 * MIB), 1)
    return member * (mib // 64)


def sanitized():
    return b"__asan_init" in (BINARIES / "evald-prepare").read_bytes() or b"__tsan_init" in (BINARIES / "evald-prepare").read_bytes()


def baseline_bomb(folder):
    """A results file whose 33 MB become more than a GB of values in memory."""
    folder.mkdir()
    (folder / "results.json").write_text('{"results": {"sums": {}}, "x": [' + ",".join(["[0]"] * 8_000_000) + "]}")
    return str(folder)


def long_baseline(folder):
    """Results with more samples than evald accepts."""
    folder.mkdir()
    (folder / "results.json").write_text(json.dumps({"results": {"sums": {"exact_match,none": 1.0}}, "model_name": "m" * 10_000}))
    (folder / "samples_sums.jsonl").write_bytes(b"\n" * 2_000_001)
    return str(folder)


DROP = {"task": "sums", "metric": "exact_match", "max_drop": 0.1}


class Bombs(EvaldCase):
    LIMITS = {"memory": 256 * MIB}

    def setUp(self):
        super().setUp()
        self.make_suite(4, 4)

    def blows(self, *expected, **changes):
        """`evald run` ends with status 2 and one error line that contains these words, and its memory stays small."""
        config = self.write_config(limits=changes.pop("limits", self.LIMITS), **changes)
        process = self.start("run", config, "--quiet")
        peak = 0
        end = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < end:
            try:
                peak = max(peak, peak_of(process.pid))
            except OSError:
                break
            time.sleep(0.005)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2, out + err)
        lines = [line for line in err.splitlines() if "error:" in line]
        self.assertEqual(len(lines), 1, err)
        for word in expected:
            self.assertIn(word, lines[0])
        self.assertNotIn("bad_alloc", err)
        self.assertGreater(peak, 0)
        self.assertLess(peak, MEMORY_MAX)
        self.assertEqual([p.name for p in (self.folder / "cache" / "prepared").glob("*.*")], [], "half a task was left")

    def task_of(self, name):
        text = (self.tasks / "sums.yaml").read_text().replace("sums.jsonl", name)
        if ".csv" in name:
            text = text.replace("dataset_path: json", "dataset_path: csv")
        (self.tasks / "sums.yaml").write_text(text)

    def checkpoint(self, change):
        """A checkpoint with a changed tokenizer.json."""
        folder = self.folder / "checkpoint"
        shutil.copytree(QUICKSTART / "checkpoints" / "step-00100", folder)
        tokenizer = json.loads((folder / "tokenizer.json").read_text())
        change(tokenizer)
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        return str(folder)

    def test_a_line_of_gzip(self):
        (self.tasks / "bomb.jsonl.gz").write_bytes(repeated(b"a", 1536))
        self.task_of("bomb.jsonl.gz")
        self.blows("bomb.jsonl.gz:1", "64.0 MiB", "limits.line")

    def test_zeros_of_gzip(self):
        (self.tasks / "bomb.jsonl.gz").write_bytes(repeated(b"\0", 6144))
        self.task_of("bomb.jsonl.gz")
        self.blows("bomb.jsonl.gz:1", "limits.line")

    def test_a_long_line(self):
        with open(self.tasks / "bomb.jsonl", "wb") as file:
            file.write(b'{"question": "')
            file.truncate(1 << 30)
        self.task_of("bomb.jsonl")
        self.blows("bomb.jsonl:1", "limits.line")

    def test_a_file_that_is_read_whole(self):
        for name, begin in (("bomb.json.gz", b"["), ("bomb.csv.gz", b"question,answer\n")):
            with self.subTest(name):
                (self.tasks / name).write_bytes(gzip.compress(begin) + repeated(b" ", 1536))
                self.make_suite(4, 4)
                self.task_of(name)
                self.blows(name, "limits.file", limits={"file": 64 * MIB, "memory": 512 * MIB})

    def test_a_line_within_a_limit_that_was_raised(self):
        (self.tasks / "long.jsonl").write_text(json.dumps({"question": "a" * 3000, "answer": "b"}) + "\n")
        self.task_of("long.jsonl")
        self.blows("long.jsonl:1", "limits.line", limits={"line": 2048})
        self.run_done(self.write_config(limits={"line": 4096}))

    def test_rows_that_need_more_memory(self):
        if sanitized():
            self.skipTest("a sanitizer's build has no limit of memory")
        (self.tasks / "bomb.jsonl.gz").write_bytes(gzip.compress(b'{"question": "' + b"a" * MIB + b'", "answer": 1}\n') * 600)
        self.task_of("bomb.jsonl.gz")
        self.blows("takes more memory", "bomb.jsonl.gz", "limits.memory")

    def test_a_normalizer_that_puts_50_mib_in_front(self):
        def change(tokenizer):
            tokenizer["normalizer"] = {"type": "Prepend", "prepend": "a" * (50 * MIB)}
        if sanitized():
            self.skipTest("a sanitizer's build has no limit of memory")
        self.blows("making tokens", "limits.memory", checkpoint=self.checkpoint(change), engine={"name": "native"},
                   tasks=["choice"], staging={"root": str(self.folder / "staging")}, limits={"memory": 768 * MIB})

    def test_template_ids(self):
        def change(tokenizer):
            special = {"id": "<s>", "ids": [0] * 1000, "tokens": ["<s>"] * 1000}
            tokenizer["post_processor"] = {
                "type": "TemplateProcessing", "special_tokens": {"<s>": special}, "pair": [],
                "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}] * 100_000 + [{"Sequence": {"id": "A", "type_id": 0}}]}
            tokenizer["post_processor"]["pair"] = tokenizer["post_processor"]["single"][-1:] + [{"Sequence": {"id": "B", "type_id": 0}}]
        self.blows("adds more than 4096 tokens", checkpoint=self.checkpoint(change), engine={"name": "native"}, tasks=["choice"],
                   staging={"root": str(self.folder / "staging")})

    def test_a_prompt_that_multiplies(self):
        if sanitized():
            self.skipTest("a sanitizer's build has no limit of memory")
        text = (self.tasks / "sums.yaml").read_text()
        (self.tasks / "sums.yaml").write_text(
            text.replace('"Question: {{question}}\\nAnswer:"', json.dumps("{{ (('a ' * 30000000).split(' ')) | length }}")))
        self.blows("sums")

    def slow_prompts(self):
        """A suite whose prompts take hours to write, although each is within the limits of a template."""
        self.make_suite(20_000, 4)
        loop = "{% for i in range(1400) %}{% for j in range(1400) %}{% endfor %}{% endfor %}{{question}}"
        text = (self.tasks / "sums.yaml").read_text()
        (self.tasks / "sums.yaml").write_text(text.replace('"Question: {{question}}\\nAnswer:"', json.dumps(loop)))

    def test_prompts_that_take_too_long(self):
        self.slow_prompts()
        self.blows("sums", "limits.seconds", limits={"seconds": 2})

    @unittest.skipIf(sanitized(), "builds with sanitizers have no limit of memory")
    def test_a_baseline_that_needs_more_memory(self):
        baseline = baseline_bomb(self.folder / "baseline")
        self.blows("gates", "memory", "limits.memory", tasks=["sums"], gates={"baseline": baseline, "rules": [DROP]})

    def test_a_process_that_others_kill_is_started_once_more(self):
        token = self.folder / "token"
        token.touch()
        env = dict(os.environ, EVALD_FAIL_POINT="evald-prepare/prepared.written", EVALD_FAIL_POINT_ONCE=str(token))
        done = self.evald("run", self.write_config(), "--quiet", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(token.exists(), "nothing was killed")
        self.assertIn("it is started once more", done.stderr)

    def test_a_process_that_is_killed_always_is_given_up(self):
        env = dict(os.environ, EVALD_FAIL_POINT="evald-prepare/prepared.written")
        done = self.evald("run", self.write_config(), "--quiet", env=env)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("was killed, twice", done.stderr)

    def test_a_run_that_is_stopped_leaves_no_process(self):
        self.slow_prompts()
        process = self.start("run", self.write_config(), "--quiet")
        child = self.wait_for("a run's folder and the preparation", lambda: (self.folder / "runs").exists() and
                              self.children(process.pid, "evald-prepare"), 60)[0]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.wait_for("the end of the preparation", lambda: not pathlib.Path(f"/proc/{child}").exists(), 20)


class ServiceBombs(Service):
    def ended(self, run):
        def over():
            found = json.loads(self.ask("GET", f"/v1/runs/{run}")[2])
            return found if found["state"] in OVER else None
        return self.wait_for(f"run {run} to end", over, 120)

    def post(self, **changes):
        config = {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": {"name": "emulated"}, **changes}
        status, _, body = self.ask("POST", "/v1/runs", json.dumps({"config": config}), Content_Type="application/json")
        return status, json.loads(body)

    def test_the_service_stays_small(self):
        self.make_suite(4, 4)
        (self.tasks / "bomb.jsonl.gz").write_bytes(repeated(b"a", 1536))
        text = (self.tasks / "sums.yaml").read_text()
        (self.tasks / "bomb.yaml").write_text(text.replace("task: sums", "task: bomb").replace("sums.jsonl", "bomb.jsonl.gz"))
        split = text.replace("task: sums", "task: split")
        (self.tasks / "split.yaml").write_text(
            split.replace('"Question: {{question}}\\nAnswer:"', json.dumps("{{ (('a ' * 30000000).split(' ')) | length }}")))
        self.serve(limits={"memory": 256 * MIB})
        for task in ("bomb", "split") if not sanitized() else ("bomb",):
            status, body = self.post(tasks=[task])
            self.assertEqual(status, 422, body)
            self.assertIn(task, body["detail"])
        self.assertLess(peak_of(self.daemon.pid), MEMORY_MAX)
        status, body = self.post()
        self.assertEqual((status, self.ended(body["id"])["state"]), (201, "done"))

    def test_baselines_take_nothing_of_the_service(self):
        self.make_suite(4, 4)
        self.serve(limits={"memory": 256 * MIB})
        status, body = self.post(gates={"baseline": long_baseline(self.folder / "long"), "rules": [DROP]})
        self.assertEqual(status, 201, body)
        run = self.ended(body["id"])
        self.assertEqual((run["state"], run["exit_status"], run["verdict"]), ("done", 2, "error"), run)
        status, _, verdict = self.ask("GET", f"/v1/runs/{run['id']}/verdict")
        self.assertEqual(status, 200, verdict)
        gate = json.loads(verdict)["gates"][0]
        self.assertEqual(gate["outcome"], "not scored")
        self.assertIn("more than 2000000 lines", gate["cause"])
        self.assertEqual(self.ask("GET", f"/v1/runs/{run['id']}/results")[0], 200, "its results stand")
        if not sanitized():  # found before the run
            status, body = self.post(gates={"baseline": baseline_bomb(self.folder / "bomb"), "rules": [DROP]})
            self.assertEqual(status, 422, body)
            self.assertIn("limits.memory", json.dumps(body))
        self.assertLess(peak_of(self.daemon.pid), MEMORY_MAX)
        self.assert_lives()

    def test_a_submission_asks_for_no_more_than_the_service_allows(self):
        self.make_suite(4, 4)
        self.serve(limits={"memory": 256 * MIB, "seconds": 100})
        for limits, said in (({"memory": 257 * MIB}, "limits.memory"), ({"seconds": 101}, "limits.seconds")):
            status, body = self.post(limits=limits)
            self.assertEqual(status, 422, body)
            self.assertIn(said, json.dumps(body))
            self.assertIn("this service allows at most", json.dumps(body))
        status, body = self.post(limits={"memory": 200 * MIB})
        self.assertEqual((status, self.ended(body["id"])["state"]), (201, "done"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
