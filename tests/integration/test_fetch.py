"""evald fetch, against a small hub on this machine: from the names of tasks to a score, and what goes wrong on the way."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from evald_case import QUICKSTART, SOURCE, EvaldCase
from hub_server import BRANCH, HubServer, Repository, git_blob, sha256

TABLES = SOURCE / "tests" / "golden" / "datasets" / "tables" / "hub"
PYTHON = pathlib.Path(os.environ.get("EVALD_ARROW_PYTHON", SOURCE / "build" / "schemathesis" / "bin" / "python"))
CHECKPOINT = QUICKSTART / "checkpoints" / "step-01200"

TASK = r"""task: NAME
dataset_path: PATH
dataset_name: PART
output_type: generate_until
test_split: test
doc_to_text: "{{text}}"
doc_to_target: "{{label}}"
generation_kwargs: {until: ["\n"], max_gen_toks: 4, do_sample: false}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def card(*configs):
    """configs: (name, {split: pattern})"""
    text = "---\nconfigs:\n"
    for name, splits in configs:
        text += f"- config_name: {name}\n  data_files:\n"
        for split, pattern in splits.items():
            text += f"  - split: {split}\n    path: {pattern}\n"
    return (text + "---\n# A dataset\n").encode()


def questions(count, seed=0):
    return lines(*({"question": f"What is {seed} and {i}?", "answer": f"Add. #### {seed + i}"} for i in range(count)))


def choices(subject, count):
    return lines(*({"question": f"{subject} {i}?", "subject": subject, "choices": ["a", "b", "c", "d"], "answer": i % 4}
                   for i in range(count)))


def gsm8k(**options):
    return Repository({".gitattributes": b"*.parquet filter=lfs\n",
                       "README.md": card(("main", {"train": "main/train-*", "test": "main/test-*"}),
                                         ("socratic", {"train": "socratic/train-*", "test": "socratic/test-*"})),
                       "main/train-00000-of-00002.jsonl": questions(20), "main/train-00001-of-00002.jsonl": questions(20, 5),
                       "main/test-00000-of-00001.jsonl": questions(30, 9),
                       "socratic/train-00000-of-00001.jsonl": questions(9), "socratic/test-00000-of-00001.jsonl": questions(8)},
                      large=("main/test-00000-of-00001.jsonl",), **options)


class FetchCase(EvaldCase):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("HF_") and name != "HUGGING_FACE_HUB_TOKEN"}
        self.environment = dict(environment, HF_HOME=str(self.folder / "hf"))

    def hub(self, repositories, **options):
        server = HubServer(repositories, **options)
        self.addCleanup(server.close)
        return server

    def fetch(self, server, *arguments, **options):
        environment = dict(self.environment, **options.pop("env", {}))
        return self.evald("fetch", *arguments, "--data-dir", self.data, "--endpoint", server.url, env=environment, **options)

    def fetched(self, server, *arguments, **options):
        done = self.fetch(server, *arguments, "--json", **options)
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
        return json.loads(done.stdout)

    def states(self, document):
        return {file["path"]: file["state"] for dataset in document["datasets"] for file in dataset["files"]}

    def needs(self, *names, status=0):
        done = self.evald("tasks", "--needs", *names, "--data-dir", self.data, "--task-dir", self.tasks, "--json")
        self.assertEqual(done.returncode, status, f"{done.stdout}\n{done.stderr}")
        return {need["what"]: need for task in json.loads(done.stdout) for need in task["needs"] if need["kind"] == "data"}

    def write_task(self, name="mine", path="owner/name", part="main", extra=""):
        (self.tasks / f"{name}.yaml").write_text(
            TASK.replace("NAME", name).replace("PATH", path).replace("PART", part) + extra)


class Fetch(FetchCase):
    def test_from_the_name_of_a_task_to_a_score(self):
        server = self.hub({"openai/gsm8k": gsm8k()})
        document = self.fetched(server, "gsm8k")
        self.assertEqual(self.states(document), dict.fromkeys(
            ["README.md", "main/train-00000-of-00002.jsonl", "main/train-00001-of-00002.jsonl",
             "main/test-00000-of-00001.jsonl"], "fetched"))
        repository = server.repositories["openai/gsm8k"]
        for file in document["datasets"][0]["files"]:
            content = repository.commits[repository.branches[BRANCH]][file["path"]]
            self.assertEqual((file["bytes"], file["sha256"]), (len(content), sha256(content)))
            self.assertEqual((self.data / "openai/gsm8k" / file["path"]).read_bytes(), content)
        self.assertEqual(document["datasets"][0]["commit"], repository.branches[BRANCH])
        self.assertTrue(all(need["there"] for need in self.needs("gsm8k").values()))
        results = self.evald("run", CHECKPOINT, "--tasks", "gsm8k", "--limit", "3", "--data-dir", self.data, "--json",
                             "--quiet", "--set", f"output.dir={self.folder}/runs", "--set", f"cache_dir={self.folder}/cache",
                             "--set", f"state_dir={self.folder}/state", "--set", "generation_kwargs={max_gen_toks: 4}")
        self.assertEqual(results.returncode, 0, results.stderr)
        self.assertEqual(json.loads(results.stdout)["n-samples"]["gsm8k"], {"original": 30, "effective": 3})

    def test_a_group_and_the_table_for_people(self):
        subjects = [need.split()[1].rstrip(":") for need in self.needs("mmlu_stem", status=1) if need.endswith("test")]
        configs = [(name, {"test": f"{name}/test-*", "dev": f"{name}/dev-*"}) for name in subjects]
        files = {"README.md": card(*configs)}
        for name in subjects:
            files[f"{name}/test-00000-of-00001.jsonl"] = choices(name, 6)
            files[f"{name}/dev-00000-of-00001.jsonl"] = choices(name, 5)
        server = self.hub({"cais/mmlu": Repository(files)}, page=10)
        done = self.fetch(server, "mmlu_stem")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, rf"cais/mmlu\s+{2 * len(subjects) + 1} files .* fetched")
        self.assertIn(f"evald run CHECKPOINT --tasks mmlu_stem --data-dir {self.data}", done.stdout)
        self.assertTrue(all(need["there"] for need in self.needs("mmlu_stem").values()))

    def test_what_is_there_is_not_fetched_and_the_hub_is_not_asked(self):
        server = self.hub({"openai/gsm8k": gsm8k()})
        self.fetched(server, "gsm8k")
        calls = len(server.calls)
        document = self.fetched(server, "gsm8k")
        self.assertEqual(set(self.states(document).values()), {"there"})
        self.assertEqual(len(server.calls), calls)
        # A file that was changed since is fetched again, and no other.
        test = self.data / "openai/gsm8k/main/test-00000-of-00001.jsonl"
        test.write_text(test.read_text().replace("9", "8"))
        document = self.fetched(server, "gsm8k")
        self.assertEqual([path for path, state in self.states(document).items() if state == "fetched"],
                         ["main/test-00000-of-00001.jsonl"])

    def test_data_of_ones_own_stays(self):
        (self.data / "gsm8k").mkdir(parents=True)
        for split in ("train", "test"):
            (self.data / "gsm8k" / f"{split}.jsonl").write_bytes(questions(10))
        server = self.hub({"openai/gsm8k": gsm8k()})
        self.assertEqual(self.fetched(server, "gsm8k")["datasets"], [])
        self.assertEqual(server.calls, [])

    def test_a_copy_that_lacks_a_split_is_not_mixed_with(self):
        (self.data / "openai/gsm8k").mkdir(parents=True)
        (self.data / "openai/gsm8k/train.jsonl").write_bytes(questions(10))
        server = self.hub({"openai/gsm8k": gsm8k()})
        done = self.fetch(server, "gsm8k")
        self.assertEqual(done.returncode, 2)
        self.assertIn("was not made by 'evald fetch'", done.stderr)

    def test_more_tasks_of_a_dataset_stay_at_its_commit(self):
        repository = Repository({"README.md": card(("one", {"test": "one/*"}), ("two", {"test": "two/*"})),
                                 "one/a.jsonl": lines({"text": "1", "label": "1"}), "two/a.jsonl": lines({"text": "2", "label": "2"})})
        server = self.hub({"owner/name": repository})
        self.write_task("one", part="one")
        self.write_task("two", part="two")
        first = self.fetched(server, "one", "--task-dir", self.tasks)
        self.assertEqual(set(self.states(first)), {"README.md", "one/a.jsonl"})
        old = repository.branches[BRANCH]
        repository.put(BRANCH, {**repository.commits[old], "one/a.jsonl": lines({"text": "new", "label": "1"})})
        second = self.fetched(server, "two", "--task-dir", self.tasks)
        self.assertEqual(second["datasets"][0]["commit"], old)
        self.assertIn('"1"', (self.data / "owner/name/one/a.jsonl").read_text())
        third = self.fetched(server, "two", "--task-dir", self.tasks, "--update")
        self.assertEqual(third["datasets"][0]["commit"], repository.branches[BRANCH])
        self.assertIn("new", (self.data / "owner/name/one/a.jsonl").read_text())

    def test_a_split_that_was_not_fetched_is_not_read(self):
        """The files of the first split come with JSON for their types. They are those of the whole split."""
        server = self.hub({"owner/name": Repository({
            "train-00000.jsonl": lines({"text": "a", "label": "1"}), "test-00000.jsonl": lines({"text": "b", "label": "2"})})})
        self.write_task(part="", extra="")
        self.fetched(server, "mine", "--task-dir", self.tasks)
        self.assertTrue((self.data / "owner/name/train-00000.jsonl").exists())
        (self.tasks / "mine.yaml").write_text((self.tasks / "mine.yaml").read_text().replace("test_split: test", "test_split: train"))
        need = self.needs("mine", status=1)["owner/name: train"]
        self.assertIn("has not fetched the split 'train'", need["problem"])
        self.fetched(server, "mine", "--task-dir", self.tasks)
        self.assertTrue(self.needs("mine")["owner/name: train"]["there"])

    def test_the_hubs_parquet_in_place_of_a_script(self):
        table = (TABLES / "main" / "test-00000-of-00002.parquet").read_bytes()
        other = (TABLES / "main" / "test-00001-of-00002.parquet").read_bytes()
        server = self.hub({"owner/name": Repository(
            {"README.md": b"# Old\n", "name.py": b"import datasets\n", "main/test.tsv": b"a\tb\n"},
            converted={"main/test/0000.parquet": table, "main/dev/0000.parquet": other, "main/partial-train/0000.parquet": b"x",
                       "other/test/0000.parquet": b"y"})})
        self.write_task()
        document = self.fetched(server, "mine", "--task-dir", self.tasks)
        self.assertEqual(self.states(document), {"main/test/0000.parquet": "fetched"})
        self.assertEqual(document["datasets"][0]["branch"], "refs/convert/parquet")
        self.assertIn("Written by `evald fetch`", (self.data / "owner/name/README.md").read_text())
        need = self.needs_of_data("mine")
        self.assertEqual(need["found"], [str(self.data / "owner/name/main/test/0000.parquet")])
        # What says which files make a split is looked after, too.
        (self.data / "owner/name/README.md").unlink()
        self.fetched(server, "mine", "--task-dir", self.tasks)
        self.assertTrue((self.data / "owner/name/README.md").exists())

    def needs_of_data(self, name):
        done = self.evald("tasks", "--needs", name, "--data-dir", self.data, "--task-dir", self.tasks, "--json")
        return json.loads(done.stdout)[0]["needs"][0]

    @unittest.skipUnless(PYTHON.exists() and subprocess.run([PYTHON, "-c", "import pyarrow"], capture_output=True).returncode == 0,
                         f"{PYTHON} has no pyarrow")
    def test_tables_of_the_hub_are_scored(self):
        files = {path.relative_to(TABLES).as_posix(): path.read_bytes() for path in TABLES.rglob("*") if path.is_file()}
        server = self.hub({"owner/name": Repository(files)})
        self.write_task()
        self.fetched(server, "mine", "--task-dir", self.tasks)
        results = self.run_done(self.write_config(tasks=["mine"], data_dir=str(self.data), task_python=str(PYTHON)))
        self.assertEqual(results["n-samples"]["mine"]["original"], 12)

    def test_files_of_the_hub_that_a_task_names(self):
        server = self.hub({"owner/name": Repository({"data/a.jsonl": lines({"text": "1", "label": "x"}), "data/b.jsonl": b"{}\n"})})
        (self.tasks / "mine.yaml").write_text(
            TASK.replace("NAME", "mine").replace("PATH", "json").replace("dataset_name: PART\n", "") +
            "dataset_kwargs: {data_files: {test: hf://datasets/owner/name/data/a.jsonl}}\n")
        document = self.fetched(server, "mine", "--task-dir", self.tasks)
        self.assertEqual(self.states(document), {"data/a.jsonl": "fetched"})
        results = self.run_done(self.write_config(tasks=["mine"], data_dir=str(self.data)))
        self.assertEqual(results["n-samples"]["mine"]["original"], 1)

    def test_patterns_of_the_table_make_a_split(self):
        row = {"question_content": "q"}
        server = self.hub({"livecodebench/code_generation_lite": Repository(
            {"README.md": b"---\ndataset_info: {}\n---\n", "code_generation_lite.py": b"", "test.jsonl": lines(row),
             "test2.jsonl": lines(row)})})
        document = self.fetched(server, "livecodebench")
        self.assertEqual(self.states(document), {"test.jsonl": "fetched", "test2.jsonl": "fetched"})
        need = self.needs_of_data("livecodebench")
        self.assertEqual(len(need["found"]), 2, need)

    def test_a_moved_repository_is_found(self):
        server = self.hub({"owner/new": Repository({"test.jsonl": lines({"text": "b", "label": "2"})})},
                          moved={"owner/name": "owner/new"})
        self.write_task(part="")
        self.fetched(server, "mine", "--task-dir", self.tasks)
        self.assertTrue(self.needs("mine")["owner/name: test"]["there"])

    def test_nothing_is_written_by_list_and_dry_run(self):
        server = self.hub({"openai/gsm8k": gsm8k()})
        listed = self.fetch(server, "base", "--list")
        self.assertEqual((listed.returncode, server.calls), (0, []), listed.stderr)
        for text in ("hf download openai/gsm8k --repo-type dataset --local-dir", "Idavidrein/gpqa (gated",
                     f"{self.data}/mmlu/test/anatomy.jsonl", "examples/suite/bbh_examples.py"):
            self.assertIn(text, listed.stdout)
        plan = self.fetched(server, "gsm8k", "--dry-run")
        self.assertEqual(set(self.states(plan).values()), {"to fetch"})
        self.assertFalse(self.data.exists())
        document = json.loads(self.fetch(server, "gsm8k", "--list", "--json").stdout)
        self.assertEqual([split["split"] for split in document["datasets"][0]["splits"]], ["test", "train"])

    def test_the_page_has_the_table_of_all_datasets(self):
        made = subprocess.run([SOURCE / "scripts" / "data-table", self.binaries / "evald"], capture_output=True, text=True,
                              check=True).stdout
        self.assertIn(made, (SOURCE / "docs" / "fetch.md").read_text(), "scripts/data-table --write makes it anew")

    def test_hashes_are_pinned_and_compared(self):
        server = self.hub({"openai/gsm8k": gsm8k()})
        self.fetched(server, "gsm8k", "--pin")
        table = (self.data / "sources.yaml").read_text()
        repository = server.repositories["openai/gsm8k"]
        old = repository.branches[BRANCH]
        content = repository.commits[old]["main/test-00000-of-00001.jsonl"]
        self.assertIn(sha256(content), table)
        self.assertIn(old, table)
        # Another machine with this table gets this commit, though the branch has moved.
        repository.put(BRANCH, {**repository.commits[old], "main/test-00000-of-00001.jsonl": questions(31)})
        sources = self.folder / "mine.yaml"
        sources.write_text(table)
        self.data = self.folder / "other"
        document = self.fetched(server, "gsm8k", "--sources", sources)
        self.assertEqual(document["datasets"][0]["commit"], old)
        self.assertTrue(all(file["pinned"] for file in document["datasets"][0]["files"]))
        # Contents that are not those of the table are refused: of a large file before anything is fetched.
        for path in ("main/test-00000-of-00001.jsonl", "main/train-00000-of-00002.jsonl"):
            self.data = self.folder / path.replace("/", "-")
            sources.write_text(table.replace(sha256(repository.commits[old][path]), "0" * 64))
            done = self.fetch(server, "gsm8k", "--sources", sources)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertRegex(done.stderr, f"expected the SHA-256 (of )?.*{'0' * 64}")
            self.assertFalse((self.data / "openai/gsm8k/README.md").exists())
        sources.write_text("hub:\n  - {dataset: a/b, file: {}}\n")
        done = self.fetch(server, "gsm8k", "--sources", sources)
        self.assertIn("mine.yaml:2: unknown key 'file', expected one of", done.stderr)


class Faults(FetchCase):
    TEST = "main/test-00000-of-00001.jsonl"      # large: on the other host
    TRAIN = "main/train-00000-of-00002.jsonl"

    def setUp(self):
        super().setUp()
        self.server = self.hub({"openai/gsm8k": gsm8k()})

    def refused(self, message, status=2, **options):
        done = self.fetch(self.server, "gsm8k", **options)
        self.assertEqual(done.returncode, status, f"{done.stdout}\n{done.stderr}")
        self.assertRegex(done.stderr, message)
        for line in done.stderr.splitlines():
            self.assertNotIn("hf_secret", line)
        self.assertFalse((self.data / "openai/gsm8k/README.md").exists(), "half a dataset is there")
        return done

    def test_a_cut_connection_is_continued(self):
        for path in (self.TEST, self.TRAIN):
            self.server.faults[path] = [HubServer.cut(0.3), HubServer.cut(0)]
        self.fetched(self.server, "gsm8k")
        for part in (sha256(self.content(self.TEST)), self.TRAIN):
            ranges = [fields.get("Range") for _, path, fields in self.server.called(part) if fields.get("Range")]
            self.assertTrue(ranges, part)
            self.assertTrue(all(one != "bytes=0-" for one in ranges))

    def content(self, path):
        repository = self.server.repositories["openai/gsm8k"]
        return repository.commits[repository.branches[BRANCH]][path]

    def test_a_later_call_continues(self):
        big = b"".join(b'{"question": "%d", "answer": "#### 1"}\n' % i for i in range(200000))
        repository = self.server.repositories["openai/gsm8k"]
        repository.put(BRANCH, {**repository.commits[repository.branches[BRANCH]], self.TEST: big})
        self.server.faults[self.TEST] = [HubServer.cut(0.5)] + [HubServer.cut(0)] * 3 + [HubServer.status(403)]
        self.refused("status 403")
        part = next((self.data / "openai/gsm8k/.evald-fetch").glob("*.part"))
        kept = part.stat().st_size
        self.assertGreater(kept, len(big) // 4)
        self.fetched(self.server, "gsm8k")
        self.assertEqual((self.data / "openai/gsm8k" / self.TEST).read_bytes(), big)
        self.assertEqual([fields.get("Range") for _, _, fields in self.server.called(sha256(big))][-1], f"bytes={kept}-")
        self.assertFalse((self.data / "openai/gsm8k/.evald-fetch").exists())

    def test_a_server_that_is_busy_is_waited_for(self):
        self.server.faults[self.TRAIN] = [HubServer.status(429, Retry_After="1"), HubServer.status(503)]
        self.server.faults["/api/datasets/openai/gsm8k/revision/main"] = [
            HubServer.status(429, RateLimit='"api";r=0;t=0')]
        self.fetched(self.server, "gsm8k")

    def test_a_wait_that_is_too_long_is_not_begun(self):
        self.server.faults[self.TRAIN] = [HubServer.status(429, Retry_After="7200")]
        self.refused("status 429, too many calls: the server asks to wait 2 h", status=3)

    def test_other_contents_are_refused(self):
        for fault, message in ((HubServer.short(), r"expected \d+ bytes, the server has \d+"),
                               (HubServer.other(), "expected the SHA-256"),
                               (HubServer.page_of_proxy(), r"a web page \(text/html\) in place of the file")):
            self.server.faults[self.TEST] = [fault]
            self.refused(message)
        shutil.rmtree(self.data)  # the files that came are kept there
        self.server.faults[self.TRAIN] = [HubServer.other()]
        self.refused("expected the git hash")
        self.server.faults["/api/datasets/openai/gsm8k/revision/main"] = [HubServer.page_of_proxy()]
        self.refused("sends a web page")

    def test_the_token_goes_to_the_hub_only(self):
        self.server.repositories["openai/gsm8k"].gated = "auto"
        self.refused(r"openai/gsm8k is gated.*accept the terms at http://127.0.0.1:\d+/datasets/openai/gsm8k, and give your token")
        self.refused("the token that was given is not let in", env={"HF_TOKEN": "hf_of_another"})
        self.server.calls.clear()
        (self.folder / "hf").mkdir()
        (self.folder / "hf" / "token").write_text("hf_secret\n")
        self.fetched(self.server, "gsm8k")
        hosts = {host: {fields.get("Authorization") for called, _, fields in self.server.calls if called == host}
                 for host in ("hub", "cdn")}
        self.assertEqual(hosts, {"hub": {"Bearer hf_secret"}, "cdn": {None}})

    def test_what_is_not_there(self):
        self.server.repositories.clear()
        self.refused("the dataset openai/gsm8k is not there, or is private or gated")
        self.server.close()
        self.refused("Couldn.t connect|Failed to connect", status=3)

    def test_names_that_lead_elsewhere(self):
        repository = self.server.repositories["openai/gsm8k"]
        for name in ("../outside.jsonl", "a/../../b", "/etc/x", "a\\b", "a\nb"):
            repository.put(BRANCH, {**gsm8k().commits[gsm8k().branches[BRANCH]], name: b"x"})
            self.refused("the repository lists the file '")
        self.assertFalse((self.data.parent / "outside.jsonl").exists())

    def test_a_full_disk_is_seen_before(self):
        repository = self.server.repositories["openai/gsm8k"]
        tree = [{"type": "file", "path": path, "size": 1 << 43, "oid": "0" * 40} for path in repository.commits[
            repository.branches[BRANCH]] if path != "README.md"]
        card_bytes = self.content("README.md")
        tree.append({"type": "file", "path": "README.md", "size": len(card_bytes), "oid": git_blob(card_bytes)})
        route = f"/api/datasets/openai/gsm8k/tree/{repository.branches[BRANCH]}"
        self.server.faults[route] = [lambda handler, data: HubServer.send_json(handler, tree)]
        self.refused("the files need .* and its file system has .* free", status=3)

    def listed(self, *entries, **fields):
        """The next list of files has these entries beside the right ones."""
        def answer(handler, data):
            repository = self.server.repositories["openai/gsm8k"]
            right = [{"type": "file", "path": path, "size": len(data), "oid": git_blob(data)}
                     for path, data in repository.commits[repository.branches[BRANCH]].items()]
            HubServer.send_json(handler, [one for one in right if one["path"] not in {e["path"] for e in entries}] + list(entries),
                                **fields)
        commit = self.server.repositories["openai/gsm8k"].branches[BRANCH]
        self.server.faults[f"/api/datasets/openai/gsm8k/tree/{commit}"] = [answer]

    def test_lists_that_cannot_be_true(self):
        self.server.repositories["owner/name"] = Repository({"test.jsonl": lines({"text": "b", "label": "2"})})
        self.write_task(part="")
        before = set(pathlib.Path(tempfile.gettempdir()).glob("evald-fetch-*"))
        whole = {"type": "file", "size": 1, "oid": "0" * 40}
        for entry, message in (({**whole, "path": self.TEST + "/inner.jsonl"}, "the files of openai/gsm8k cannot be laid out here"),
                               ({**whole, "path": self.TEST, "size": 1 << 63}, "expected at most 16.0 TiB"),
                               ({"type": "file", "path": self.TEST, "size": 3}, "lists the file main/test-.* without a hash")):
            self.listed(entry)
            done = self.fetch(self.server, "mine", "gsm8k", "--task-dir", self.tasks)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, message)
            self.assertTrue(self.needs("mine")["owner/name: test"]["there"], "the other dataset was stopped")
        self.assertEqual(set(pathlib.Path(tempfile.gettempdir()).glob("evald-fetch-*")), before)
        self.listed({**whole, "path": "other.txt"}, Link='<file:///etc/passwd>; rel="next"')
        self.refused("the list of files goes on at 'file:///etc/passwd', which is not of the hub's API")

    def test_a_server_that_begins_anew_each_time_is_given_up(self):
        def half(handler, data):
            HubServer.head(handler, 200, len(data), {})
            handler.wfile.write(data[:len(data) // 2])
            handler.close_connection = True
            handler.connection.close()
        self.server.faults[self.TRAIN] = [half] * 100
        self.refused("main/train-00000-of-00002.jsonl", status=3)
        self.assertLess(len(self.server.called(self.TRAIN)), 20)

    def test_a_broken_card_is_named(self):
        repository = self.server.repositories["openai/gsm8k"]
        repository.put(BRANCH, {**repository.commits[repository.branches[BRANCH]], "README.md": b"---\nconfigs: [\n---\n"})
        repository.put("refs/convert/parquet", {"x.txt": b"x"})
        self.refused("README.md.*; and of its branch refs/convert/parquet: ")

    def test_a_crash_before_the_first_record_is_no_folder_of_somebody_else(self):
        folder = self.data / "openai/gsm8k"
        (folder / ".evald-fetch").mkdir(parents=True)
        (folder / ".evald-fetch.json.part").write_text("{")
        self.fetched(self.server, "gsm8k")

    def test_a_crash_while_files_are_put_in_place(self):
        for point in ("before_placing:1", "after_placed:1", "after_placed:2"):
            process = self.start("fetch", "gsm8k", "--data-dir", self.data, "--endpoint", self.server.url,
                                 env=dict(self.environment, EVALD_FAIL_POINT=f"evald/fetch.{point}"))
            process.communicate(timeout=300)
            self.assertEqual(process.returncode, -signal.SIGKILL)
            need = self.needs("gsm8k", status=1)["openai/gsm8k main: test"]
            self.assertFalse(need["there"])
            if point.startswith("after"):
                self.assertIn("was ended while it put files", need["problem"])
        self.fetched(self.server, "gsm8k")
        self.assertTrue(all(need["there"] for need in self.needs("gsm8k").values()))

    def test_one_dataset_stops_no_other(self):
        self.server.repositories["owner/name"] = Repository({"test.jsonl": lines({"text": "b", "label": "2"})})
        del self.server.repositories["openai/gsm8k"]
        self.write_task(part="")
        done = self.fetch(self.server, "gsm8k", "mine", "--task-dir", self.tasks)
        self.assertEqual(done.returncode, 2)
        self.assertTrue(self.needs("mine")["owner/name: test"]["there"])


if __name__ == "__main__":
    unittest.main()
