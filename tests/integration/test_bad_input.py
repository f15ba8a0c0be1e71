"""Bad input: each case ends in a clear error, loses nothing and leaves nothing behind."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import time
import unittest

from evald_case import QUICKSTART, EvaldCase
from service_case import Service


def last_checkpoint():
    return sorted((QUICKSTART / "checkpoints").glob("step-*"))[-1]


class Configuration(EvaldCase):
    def refused(self, text, *expected, status=2):
        path = self.folder / "eval.yaml"
        path.write_text(text)
        done = self.evald("run", path, "--quiet")
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        for part in expected:
            self.assertIn(part, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(list(self.folder.glob("runs/*")), [], "a run's folder was left")
        return done.stderr

    def setUp(self):
        super().setUp()
        self.make_suite(10, 10)
        self.tail = "\ntask_dirs: [tasks]\nengine: {name: emulated}\ncache_dir: cache\nstate_dir: state\noutput: {dir: runs}\n"

    def test_unknown_key(self):
        self.refused("tasks: [sums]\nworker: {count: 2}" + self.tail, "eval.yaml:2", "unknown key 'worker'", "did you mean 'workers'")

    def test_unknown_key_in_a_section(self):
        self.refused("tasks: [sums]\nworkers: {cuont: 2}" + self.tail, "eval.yaml:2", "workers.cuont", "did you mean 'count'")

    def test_wrong_type(self):
        self.refused("tasks: [sums]\nworkers:\n  count: many" + self.tail, "eval.yaml:3", "workers.count", "found 'many'", "expected an integer")

    def test_key_given_twice(self):
        self.refused("tasks: [sums]\nname: a\nname: b" + self.tail, "eval.yaml:3", "'name' is given twice")

    def test_not_yaml(self):
        self.refused("tasks: [sums\nengine: }" + self.tail, "eval.yaml:", "not YAML")

    def test_unknown_engine(self):
        self.refused("tasks: [sums]\nengine: {name: natvie}\n", "eval.yaml:2", "did you mean 'native'")

    def test_unknown_engine_setting(self):
        self.refused("tasks: [sums]\ntask_dirs: [tasks]\nengine: {name: emulated, delay: 3}\ncache_dir: cache\n"
                     "state_dir: state\noutput: {dir: runs}\n", "delay", "delay_ms")

    def test_checkpoint_missing(self):
        self.refused("checkpoint: nowhere\ntasks: [sums]\n", "eval.yaml:1", "nowhere", "is not a folder")

    def test_misspelt_task(self):
        self.refused("tasks: [sms]" + self.tail, "eval.yaml:1", "sms", "did you mean 'sums'")

    def test_override(self):
        path = self.write_config()
        done = self.evald("validate", path, "--set", "workers.coutn=3")
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean 'count'", done.stderr)
        self.assertEqual(self.evald("validate", path, "--set", "nonsense").returncode, 2)

    def test_output_folder_that_cannot_be_written(self):
        (self.folder / "file").write_text("in the way")
        self.refused("tasks: [sums]\ntask_dirs: [tasks]\nengine: {name: emulated}\ncache_dir: cache\nstate_dir: state\n"
                     "output: {dir: file/runs}\n", "file/runs", "cannot create")

    def test_a_state_folder_that_cannot_be_written_leaves_no_run(self):
        (self.folder / "file").write_text("in the way")
        self.refused("tasks: [sums]\ntask_dirs: [tasks]\nengine: {name: emulated}\ncache_dir: cache\nstate_dir: file/state\n"
                     "output: {dir: runs}\n", "file/state", "cannot be made", "set state_dir")

    def test_a_folder_in_which_another_evald_works_is_not_to_be_deleted(self):
        config = self.write_config(tasks=["sums"], output={"dir": "runs", "name": "r"}, engine={"name": "emulated", "delay_ms": 60000})
        first = self.start("run", config, "--quiet")
        self.addCleanup(first.communicate)
        self.addCleanup(first.kill)
        while not (self.folder / "runs/r/run.json").exists():
            self.assertIsNone(first.poll())
            time.sleep(0.05)
        for more in ([], ["--resume", "r"]):
            done = self.evald("run", config, "--quiet", *more)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, rf"runs/r: another evald \(pid {first.pid} on .+\) is at work on this run; wait for it")
            self.assertNotIn("delete", done.stderr)
        first.kill()
        first.communicate()
        done = self.evald("run", config, "--quiet")
        self.assertIn("this run exists already; choose another output.name, finish it with --resume, or delete it", done.stderr)

    def test_a_finished_run_is_not_offered_to_be_finished(self):
        config = self.write_config(tasks=["sums"], output={"dir": "runs", "name": "r"})
        self.assertEqual(self.evald("run", config, "--quiet").returncode, 0)
        self.assertIn("this run exists already; choose another output.name, or delete it", self.evald("run", config, "--quiet").stderr)

    def test_half_a_character_in_the_data(self):
        with open(self.tasks / "sums.jsonl", "a") as out:
            out.write('{"question": "\\ud800", "answer": "1"}\n')
        self.refused("tasks: [sums]" + self.tail, "sums.jsonl:11: key 'question': not JSON at byte", "found \\ud800, the first half")

    def test_a_target_that_cannot_be_scored(self):
        text = (self.tasks / "sums.yaml").read_text()
        (self.tasks / "sums.yaml").write_text(text.replace('doc_to_target: "{{answer}}"', "doc_to_target: [null]"))
        self.refused("tasks: [sums]" + self.tail, "sums.yaml:1: doc_to_target gives [null], expected text or a list of texts")
        validated = self.evald("validate", self.folder / "eval.yaml")
        self.assertEqual(validated.returncode, 2)
        self.assertIn("doc_to_target gives [null]", validated.stderr)

    def test_json_errors_are_json(self):
        path = self.folder / "eval.yaml"
        path.write_text("tasks: [sms]" + self.tail)
        done = self.evald("run", path, "--json", "--quiet")
        self.assertEqual(done.returncode, 2)
        self.assertIn("sms", json.loads(done.stdout)["error"])

    def test_values_of_another_type_in_task_files(self):
        one = {"task": "one", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "sums.jsonl"}}, "test_split": "test",
               "output_type": "generate_until", "doc_to_text": "{{question}}", "doc_to_target": "{{answer}}",
               "metric_list": [{"metric": "exact_match"}]}
        group = {"group": "sums", "task": [one]}
        for key in ("aggregate_metric_list", "metadata", "group_alias", "task"):
            for value in (5, 0.5, "x", True, [5], [None], {"a": 5}):
                (self.tasks / "sums.yaml").write_text(json.dumps({**group, key: value}))
                with self.subTest(key=key, value=value):
                    done = self.evald("validate", self.write_config(tasks=["sums"]))
                    self.assertIn(done.returncode, (0, 2), done.stderr)
                    self.assertNotIn("json.exception", done.stderr)
                    if key == "aggregate_metric_list":
                        self.assertRegex(done.stderr, r"sums\.yaml(:\d+)?: .*aggregate_metric_list")

    def test_a_task_that_cannot_be_scored(self):
        task = {"task": "choice", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "choice.jsonl"}}, "test_split": "test",
                "output_type": "multiple_choice", "doc_to_text": "{{q}}", "doc_to_target": "label", "doc_to_choice": ["a", "b"],
                "metric_list": [{"metric": "likelihood"}]}
        (self.tasks / "choice.jsonl").write_text('{"q": "x", "label": 1.5}\n')
        (self.tasks / "choice.yaml").write_text(json.dumps(task))
        self.refused("tasks: [choice]" + self.tail, "the metric 'likelihood' gives a label and a list of numbers")
        (self.tasks / "choice.yaml").write_text(json.dumps({**task, "metric_list": [{"metric": "acc"}]}))
        self.refused("tasks: [choice]" + self.tail, "choice.jsonl:1", "doc_to_target gives 1.5")

    def test_usage(self):
        self.assertEqual(self.evald("rnu").returncode, 2)
        self.assertEqual(self.evald("run").returncode, 2)
        self.assertEqual(self.evald("run", "/nonexistent.yaml").returncode, 2)


class Data(EvaldCase):
    def refused(self, *expected):
        done = self.evald("run", self.write_config(tasks=["sums"]), "--quiet")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        for part in expected:
            self.assertIn(part, done.stderr)
        self.assertEqual(list(self.folder.glob("runs/*")), [], "a run's folder was left")

    def setUp(self):
        super().setUp()
        self.make_suite(30, 10)
        self.data = self.tasks / "sums.jsonl"

    def test_missing(self):
        self.data.unlink()
        self.refused("sums.jsonl")

    def test_empty(self):
        self.data.write_text("")
        self.refused("sums.jsonl", "no documents")

    def test_broken_in_line_17(self):
        lines = self.data.read_text().splitlines()
        lines[16] = lines[16][:-5]
        self.data.write_text("\n".join(lines))
        self.refused("sums.jsonl:17")

    def test_field_absent(self):
        lines = [json.dumps({"answer": "5"}) for _ in self.data.read_text().splitlines()]
        self.data.write_text("\n".join(lines))
        self.refused("question")

    def test_not_utf8(self):
        self.data.write_bytes(self.data.read_bytes() + b'{"question": "\xff\xfe", "answer": "1"}\n')
        self.refused("sums.jsonl:31")


@unittest.skipUnless(list((QUICKSTART / "checkpoints").glob("step-*")), "no example checkpoints")
class Checkpoint(EvaldCase):
    def setUp(self):
        super().setUp()
        self.make_suite(10, 10)
        self.checkpoint = self.folder / "checkpoint"
        shutil.copytree(last_checkpoint(), self.checkpoint)
        self.weights = self.checkpoint / "model.safetensors"
        self.root = self.folder / "staging"

    def config(self, **changes):
        return self.write_config(checkpoint="checkpoint", engine={"name": "native"}, staging={"root": str(self.root)}, **changes)

    def refused(self, *expected, status=2, **changes):
        done = self.evald("run", self.config(**changes), "--quiet")
        self.assertEqual(done.returncode, status, done.stdout + done.stderr + self.logs())
        for part in expected:
            self.assertIn(part, done.stderr)
        left = [p for p in self.root.glob("*")] if self.root.exists() else []
        self.assertFalse([p for p in left if p.is_dir() and (p / "config.json").exists()], f"left staged: {left}")

    def header(self):
        content = self.weights.read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        return json.loads(content[8:8 + length]), content[8 + length:]

    def rewrite(self, header, data):
        text = json.dumps(header).encode()
        self.weights.write_bytes(struct.pack("<Q", len(text)) + text + data)

    def test_empty(self):
        for path in self.checkpoint.iterdir():
            path.unlink()
        self.refused("checkpoint", "empty")

    def test_without_config(self):
        (self.checkpoint / "config.json").unlink()
        self.refused("config.json")

    def test_without_tokenizer(self):
        (self.checkpoint / "tokenizer.json").unlink()
        self.refused("tokenizer.json")

    def test_shard_missing(self):
        header, _ = self.header()
        names = [name for name in header if name != "__metadata__"]
        self.weights.rename(self.checkpoint / "model-00001-of-00002.safetensors")
        index = {"metadata": {}, "weight_map": {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(names)}}
        (self.checkpoint / "model.safetensors.index.json").write_text(json.dumps(index))
        self.refused("model-00002-of-00002.safetensors")

    def test_truncated(self):
        self.weights.write_bytes(self.weights.read_bytes()[:-1000])
        self.refused("model.safetensors")

    def test_header_of_2_to_the_63(self):
        self.weights.write_bytes(struct.pack("<Q", 2**63) + self.weights.read_bytes()[8:])
        self.refused("model.safetensors", str(2**63))

    def test_overlapping_offsets(self):
        header, data = self.header()
        names = [name for name in header if name != "__metadata__"]
        first = min(names, key=lambda n: header[n]["data_offsets"][0])
        header[first]["data_offsets"][1] += 2
        header[first]["shape"] = [(header[first]["data_offsets"][1] - header[first]["data_offsets"][0]) // 2]
        self.rewrite(header, data)
        self.refused("model.safetensors", "overlap")

    def test_unknown_dtype(self):
        header, data = self.header()
        name = next(n for n in header if n != "__metadata__")
        header[name]["dtype"] = "F4_E2M1X"
        self.rewrite(header, data)
        self.refused("F4_E2M1X")

    def test_wrong_shape(self):
        header, data = self.header()
        name = next(n for n in header if n.endswith("q_proj.weight"))
        header[name]["shape"] = header[name]["shape"][::-1] if header[name]["shape"][0] != header[name]["shape"][1] else [
            header[name]["shape"][0] * 2, header[name]["shape"][1] // 2]
        self.rewrite(header, data)
        self.refused("q_proj.weight", "shape")

    def test_unknown_architecture(self):
        config = json.loads((self.checkpoint / "config.json").read_text())
        config.update(architectures=["MambaForCausalLM"], model_type="mamba")
        (self.checkpoint / "config.json").write_text(json.dumps(config))
        self.refused("MambaForCausalLM")

    def test_a_prompt_longer_than_the_context_is_cut_and_counted(self):
        with open(self.tasks / "choice.jsonl", "w") as out:
            out.write(json.dumps({"question": "word " * 20000, "answer": 0}) + "\n")
            out.write(json.dumps({"question": "short", "answer": 0}) + "\n")
        document = self.run_done(self.config(tasks=["choice"]))
        self.assertEqual(document["evald"]["truncated_prompts"]["choice"], 4)

    def test_shared_memory_too_small(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small tmpfs needs root")
        self.root.mkdir(mode=0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", str(self.root)], check=True)
        self.addCleanup(subprocess.run, ["umount", str(self.root)])
        self.refused(str(self.root), "MiB", status=3)


class Logs(Service):
    def test_a_run_is_no_log(self):
        self.serve()
        run = self.submit(sums=5, choice=5)
        done = self.evald("logs", run, "--server", self.url)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"'{run}' is a run, not a log; 'evald status {run}' tells of the run", done.stderr)
        (self.folder / "own/logs").mkdir(parents=True)
        done = self.evald("logs", self.folder / "own", "--server", self.url)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, "own: this is a run's folder.*lie in .*own/logs")
        done = self.evald("logs", "nothing.log", "--server", self.url)
        self.assertIn("there is no log 'nothing.log'", done.stderr)


class Disk(EvaldCase):
    def test_full_in_mid_run(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small tmpfs needs root")
        self.make_suite(400, 0 + 10)
        runs = self.folder / "small"
        runs.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1536k", "tmpfs", str(runs)])
        if mounted.returncode != 0:
            self.skipTest("mounting is not allowed here")
        self.addCleanup(subprocess.run, ["umount", "-l", str(runs)])
        config = self.write_config(engine={"name": "emulated", "text": "x" * 10000}, output={"dir": "small", "name": "r"})
        done = self.evald("run", config, "--quiet")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("No space left", done.stdout + done.stderr)
        self.assertFalse((runs / "r" / "results.json").exists())
        subprocess.run(["mount", "-o", "remount,size=64m", str(runs)], check=True)
        document = self.run_done(config, "--resume")
        self.assertEqual(document["n-samples"]["sums"]["effective"], 400)


if __name__ == "__main__":
    unittest.main(verbosity=2)
