"""evald agent: hosts that share no files with the service, connections that go bad, hosts that go away."""
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import unittest

from evald_case import BINARIES, QUICKSTART, scores
from service_case import ServiceCase

SEED = int(os.environ.get("EVALD_TEST_SEED", "1"))
TOKENS = {"admin": "the-token-of-an-admin", "worker": "the-token-of-a-worker", "read": "the-token-of-a-reader"}

CODED_TASK = """\
task: coded
dataset_path: json
dataset_kwargs: {data_files: {test: coded.jsonl}}
test_split: test
doc_to_text: "{{n}}"
doc_to_target: "{{n}}"
process_results: !function utils.results
metric_list: [{metric: pair, aggregation: !function utils.pairs}]
"""
CORPUS_TASK = """\
task: corpus
dataset_path: json
dataset_kwargs: {data_files: {test: corpus.jsonl}}
output_type: generate_until
test_split: test
doc_to_text: "{{n}}: {{text[:20]}}"
doc_to_target: "{{text}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 16}
metric_list: [{metric: bleu}, {metric: chrf}, {metric: ter}]
"""
CODED_FUNCTIONS = """
import time
def results(doc, results):
    time.sleep(0.03)  # one metric process alone is too slow
    return {"pair": (doc["n"], bool(results[0]))}
def pairs(items):
    assert [number for number, said in items] == list(range(200))
    return sum(number for number, said in items) + type(items[9]).__name__.count("tuple") / 2
"""


def can_hide():
    done = subprocess.run(["unshare", "-Urm", "true"], capture_output=True)
    return done.returncode == 0


class Proxy:
    """A proxy between agents and the service, over plain TCP. It holds lines back, repeats them, lets others overtake
    them, and cuts connections in the middle of a line. HTTP requests pass unharmed."""

    def __init__(self, port, seed):
        self.target, self.random, self.lines = port, random.Random(seed), 0
        self.faults = {"repeated": 0, "overtaken": 0, "cut": 0}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.open = True
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.open = False
        self.listener.close()

    def accept(self):
        while self.open:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                continue
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    def carry(self, source, sink):
        upgraded, held, buffer = False, None, b""
        try:
            while data := source.recv(65536):
                buffer += data
                if not upgraded:
                    if b"evald-agent\r\n" in buffer and b"\r\n\r\n" in buffer:
                        head, buffer = buffer.split(b"\r\n\r\n", 1)
                        sink.sendall(head + b"\r\n\r\n")
                        upgraded = True
                    else:
                        sink.sendall(buffer)
                        buffer = b""
                        continue
                while b"\n" in buffer:
                    line, buffer = buffer.split(b"\n", 1)
                    line += b"\n"
                    first = b"agent_hello" in line or b"agent_welcome" in line
                    dice = 1.0 if first else self.random.random()
                    self.lines += 1
                    if dice < 0.004 or self.lines == 60:  # at least one cut, whatever the dice say
                        self.faults["cut"] += 1
                        sink.sendall(line[:self.random.randrange(len(line))])
                        return
                    if dice < 0.06:
                        self.faults["repeated"] += 1
                        line += line
                    elif dice < 0.12 and held is None:
                        held = line
                        continue
                    elif dice < 0.16:
                        time.sleep(self.random.uniform(0, 0.15))
                    sink.sendall(line)
                    if held is not None:
                        self.faults["overtaken"] += 1
                        sink.sendall(held)
                        held = None
        except OSError:
            pass
        finally:
            for end in (source, sink):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            source.close()


class Agents(ServiceCase):
    def setUp(self):
        super().setUp()
        self.agents = {}
        self.addCleanup(self.kill_agents)

    def kill_agents(self):
        for process in self.agents.values():
            if process.poll() is None:
                process.kill()
            process.communicate()

    def make_access(self):
        """A certificate of this test and a token for each role."""
        files = {name: self.folder / name for name in ("ca.pem", "key.pem", "tokens", "worker.token")}
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(files["key.pem"]), "-out", str(files["ca.pem"])],
                       check=True, capture_output=True)
        text = "".join(f"{role} {role} sha256:{hashlib.sha256(token.encode()).hexdigest()}\n" for role, token in TOKENS.items())
        files["tokens"].write_text(text)
        files["tokens"].chmod(0o600)
        files["worker.token"].write_text(TOKENS["worker"] + "\n")
        self.https = ssl.create_default_context(cafile=str(files["ca.pem"]))
        return {"tls": {"certificate": "ca.pem", "key": "key.pem"}, "tokens": "tokens"}

    def agent_command(self, name, *more, server=None, devices="cpu:0"):
        root = self.folder / "hosts" / name
        root.mkdir(parents=True, exist_ok=True)
        command = [str(BINARIES / "evald"), "agent", "--server", server or self.url, "--name", name, "--root", str(root),
                   "--staging-root", str(root / "staging"), "--devices", devices, "--metric-processes", "1", "--threads", "1",
                   "--log-level", "info", *map(str, more)]
        if (self.folder / "ca.pem").exists():
            command += ["--token-file", str(self.folder / "worker.token"), "--ca", str(self.folder / "ca.pem")]
        return command

    def start_agent(self, name, *more, hide=(), **options):
        command = self.agent_command(name, *more, **options)
        if hide:  # the agent must see nothing of these folders
            script = " && ".join(f"mount -t tmpfs none '{folder}'" for folder in hide) + ' && exec "$@"'
            command = ["unshare", "-Urm", "sh", "-c", script, "sh", *command]
        log = open(self.folder / f"{name}.log", "ab")
        self.agents[name] = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()

    def host(self, name):
        return next((h for h in self.call("GET", "/v1/hosts")["hosts"] if h["id"] == name), None)

    def wait_host(self, name, state="connected"):
        def there():
            host = self.host(name)
            if host and host["state"] == state:
                return host
            if state == "connected" and name in self.agents:
                self.assertIsNone(self.agents[name].poll(), f"agent {name} has ended\n{self.log_text()}")
        try:
            return self.wait_for(f"host {name}", there)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.host(name)}\n{self.log_text()}") from None

    def workers(self, host):
        return [w for w in self.call("GET", "/v1/workers")["workers"] if w["host"] == host]

    def submit_to_all(self, *names, **changes):
        """Submits a run that starts once the service and these hosts have all their workers. So even on a slow
        machine no worker does everything before another has started. The run should have work for some seconds, so
        that a process that the machine stops for a while still has its part."""
        run = self.submit(**changes)
        self.wait_for("its begin", lambda: self.run_of(run)["state"] != "queued")
        self.call("POST", f"/v1/runs/{run['id']}/pause")
        waits = lambda worker: worker["pid"] and worker["state"] in ("idle", "working")
        hosts = ("local", *names)
        self.wait_for("all workers", lambda: all(any(map(waits, self.workers(name))) for name in hosts))
        self.call("POST", f"/v1/runs/{run['id']}/resume")
        return run

    def log_text(self):
        logs = [*self.folder.glob("*.log"), *self.folder.glob("hosts/*/logs/*.log"), *self.folder.glob("state/logs/*.log")]
        return "\n".join(f"--- {p}\n{p.read_text(errors='replace')[-3000:]}" for p in logs if p.stat().st_size)

    def check(self, expected, run):
        self.assertEqual(run["state"], "done", f"{run}\n{self.log_text()}")
        super().check(expected, run)

    def hosts_of(self, run):
        """The generate and score spans of each host in the run's timeline."""
        timeline = json.loads((pathlib.Path(run["directory"]) / "timeline.json").read_text())["traceEvents"]
        rows = {e["tid"]: e["args"]["name"] for e in timeline if e["ph"] == "M" and e["name"] == "thread_name"}
        found = {}
        for event in timeline:
            if event["ph"] == "X" and event["name"] in ("generate", "score"):
                row = rows[event["tid"]].split()[1]
                found.setdefault(row.split(".")[0] if "." in row else "local", []).append(event)
        return found


class TwoHosts(Agents):
    """Two agents with separate roots and no common files: the service's folders are hidden from them."""

    def test_over_tls_with_nothing_shared(self):
        self.make_suite(200, 60)
        expected = self.undisturbed()
        self.serve(**self.make_access(), output_dir="runs-of-the-service")
        hide = [self.folder / d for d in ("state", "cache", "staging", "tasks", "runs-of-the-service")] if can_hide() else []
        for folder in hide:
            folder.mkdir(exist_ok=True)
        self.start_agent("north", hide=hide, devices="cpu:0,cpu:1")
        self.start_agent("south", hide=hide)
        for name in ("north", "south"):
            self.wait_host(name)
        run = self.finished(self.submit_to_all("north", "south", engine={**self.ENGINE, "delay_ms": 200}))
        self.check(expected, run)
        spans = self.hosts_of(run)
        self.assertEqual(set(spans), {"local", "north", "south"}, "each host did a part")
        bounds = [(e["ts"], e["ts"] + e["dur"]) for e in spans["local"]]
        begin, end = min(b for b, _ in bounds) - 60e6, max(e for _, e in bounds) + 60e6
        for name in ("north", "south"):
            for event in spans[name]:
                self.assertTrue(begin < event["ts"] <= event["ts"] + event["dur"] < end, "on the service's clock")
        files = list((self.folder / "hosts" / "south" / "spool" / "runs").glob("*/generations/*/*.jsonl"))
        self.assertTrue(files, "it wrote to its own disk")

    def test_scores_of_another_host_go_to_aggregations_of_a_task_s_own(self):
        (self.tasks / "coded.jsonl").write_text("".join(json.dumps({"n": i}) + "\n" for i in range(200)))
        (self.tasks / "coded.yaml").write_text(CODED_TASK)
        (self.tasks / "utils.py").write_text(CODED_FUNCTIONS)
        coded = {"tasks": ["coded"], "task_code": "allow"}
        plain = self.run_done(self.write_config(**coded, engine={"name": "emulated"}, output={"dir": "plain", "name": "p"}))
        self.assertEqual(plain["results"]["coded"]["pair,none"], 199 * 100 + 0.5)
        self.serve(task_code="allow", output_dir="runs-of-the-service", metrics={"processes": 1})
        # Nothing is hidden from the agent: the sandbox needs more users than a namespace of root alone has.
        self.start_agent("north", "--task-code", '{"allowed": "allow"}', devices="cpu:0,cpu:1")
        self.wait_host("north")
        run = self.finished(self.submit_to_all("north", engine={**self.ENGINE, "delay_ms": 150}, **coded))
        self.check((scores(plain), self.samples(self.folder / "plain" / "p")), run)
        self.assertIn("score", {event["name"] for event in self.hosts_of(run)["north"]})

    def test_scores_of_another_host_hold_texts_for_corpus_metrics(self):
        rows = [{"n": i, "text": f"line {i} of " + "many words " * 1000} for i in range(120)]
        (self.tasks / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.tasks / "corpus.yaml").write_text(CORPUS_TASK)
        corpus = {"tasks": ["corpus"]}
        plain = self.run_done(self.write_config(**corpus, engine={"name": "emulated"}, output={"dir": "plain", "name": "p"}))
        self.assertGreater(plain["results"]["corpus"]["chrf,none"], 0)
        self.serve(**self.make_access(), output_dir="runs-of-the-service", metrics={"processes": 1})
        self.start_agent("north", devices="cpu:0,cpu:1")
        self.wait_host("north")
        run = self.finished(self.submit_to_all("north", engine={**self.ENGINE, "delay_ms": 150}, **corpus))
        self.check((scores(plain), self.samples(self.folder / "plain" / "p")), run)
        self.assertIn("score", {event["name"] for event in self.hosts_of(run)["north"]})

    def test_a_checkpoint_is_fetched_and_is_what_it_is(self):
        access = self.make_access()
        checkpoints = self.folder / "checkpoints"
        shutil.copytree(QUICKSTART / "checkpoints" / "step-01200", checkpoints / "step-01200")
        # The task keeps all 32 documents. A span under 100 ms is not in the timeline, and a fast machine does eight
        # documents in that time.
        base = {"tasks": ["quickstart_choice"], "task_dirs": [str(QUICKSTART / "tasks")],
                "engine": {"name": "native"}}
        expected = self.run_done(self.write_config(checkpoint=str(checkpoints / "step-01200"), output={"dir": "plain", "name": "p"}, **base))
        self.serve(**access)
        hide = [checkpoints, self.folder / "staging", self.folder / "state", self.folder / "cache"] if can_hide() else []
        for folder in hide:
            folder.mkdir(exist_ok=True)
        self.start_agent("north", "--staging-keep", 1 << 30, hide=hide)
        self.assertEqual(self.wait_host("north")["staged"], [])
        told = ({k: expected[k] for k in ("results", "groups", "n-samples", "versions") if k in expected},
                self.samples(self.folder / "plain" / "p"))
        run = self.finished(self.submit(checkpoint=str(checkpoints / "step-01200"), **base))
        self.check(told, run)
        generating = {host for host, spans in self.hosts_of(run).items() if any(s["name"] == "generate" for s in spans)}
        self.assertEqual(generating, {"local"}, "a small run goes where its checkpoint is")
        self.assertEqual([w["fingerprint"] for w in self.workers("north")], [None])
        # If the run were large, its checkpoint would be worth copying to the host whose worker waits by then.
        self.wait_for("its worker", lambda: all(w["pid"] for w in self.workers("north")))
        file = self.folder / "priors.json"
        self.assertEqual(self.evald("priors", "--state-dir", self.folder / "state", "--export", file).returncode, 0)
        known = json.loads(file.read_text())
        for cost in known["costs"]:
            cost.update(device_s=cost["documents"] * 1000.0, ended=time.time() + 10)
        file.write_text(json.dumps(known))
        done = self.evald("priors", "--state-dir", self.folder / "state", "--import", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        run = self.finished(self.submit(checkpoint=str(checkpoints / "step-01200"), **base))
        self.check(told, run)
        worker = self.wait_for("its weights", lambda: next((w for w in self.workers("north") if w["fingerprint"]), None))
        self.assertEqual(worker["fingerprint"], run["fingerprint"])
        staged = self.folder / "hosts" / "north" / "staging" / run["fingerprint"]
        self.assertEqual((staged / "model.safetensors").read_bytes(), (checkpoints / "step-01200" / "model.safetensors").read_bytes())
        self.assertEqual(self.host("north")["staged"], [run["fingerprint"]])
        # The agent's next life has no process, and knows the checkpoint that its first life left in memory.
        self.agents["north"].kill()
        self.agents["north"].wait()
        self.wait_host("north", "away")
        self.start_agent("north", "--staging-keep", 1 << 30, hide=hide)
        host = self.wait_host("north")
        self.assertEqual(([device["worker"] for device in host["devices"]], host["staged"]), ([None], [run["fingerprint"]]))

    def test_an_agent_that_is_killed_and_one_that_leaves(self):
        self.make_suite(400, 60)
        expected = self.undisturbed()
        self.serve()
        self.start_agent("north")
        self.start_agent("south")
        for name in ("north", "south"):
            self.wait_host(name)
        run = self.submit_to_all("north", "south", engine={**self.ENGINE, "delay_ms": 150},
                                 workers={"count": 2, "heartbeat_timeout_s": 5})
        at_work = lambda: all(any(w["trials"] for w in self.workers(name)) for name in ("north", "south"))
        self.wait_for("work at both", at_work)
        self.agents["north"].kill()
        self.agents["south"].send_signal(signal.SIGTERM)
        self.assertEqual(self.agents["south"].wait(60), 0)
        self.wait_host("north", "away")
        self.assertEqual(self.wait_host("south", "left")["devices"], [])
        self.assertEqual(self.workers("south"), [])
        self.check(expected, self.finished(run))
        done = self.evald("doctor", "--json", "--staging-root", self.folder, "--server", self.url)
        found = {check["what"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertEqual(done.returncode, 3, "one is away")
        self.assertEqual((found["agent north"]["available"], found["agent south"]["available"]), (False, True), found)
        self.assertRegex(found["agent south"]["detail"], r"^left in order \(evald \d+\.\d+\.\d+\)$")
        self.agents["north"].wait()
        by_name = self.url.replace("127.0.0.1", "localhost")
        for name, server in (("north", self.url), ("south", by_name)):
            self.start_agent(name, server=server)
            self.wait_host(name)
        run = self.finished(self.submit_to_all("north", "south", engine={**self.ENGINE, "delay_ms": 100}))
        self.check(expected, run)
        self.assertEqual(set(self.hosts_of(run)), {"local", "north", "south"}, "one that left and came back has work")
        self.daemon.send_signal(signal.SIGTERM)
        _, err = self.daemon.communicate(timeout=60)
        # A log line that one worker repeats the late work of another is allowed.
        waited = r"south\.[wm]\d( ended|: it was started|: it has been silent|: its host has been away)"
        self.assertNotRegex(err, waited, "nobody waits for what one that left had, or starts it again")

    def test_what_a_host_that_is_gone_had_committed_stays(self):
        self.make_suite(1200, 20)
        expected = self.undisturbed()
        journal = self.keep_journal()
        self.serve()
        self.start_agent("north", devices="cpu:0,cpu:1")
        self.wait_host("north")
        engine = {**self.ENGINE, "delay_ms": 80}
        run = self.submit_to_all("north", engine=engine, workers={"count": 2, "heartbeat_timeout_s": 5})
        root, folder = self.folder / "hosts" / "north", pathlib.Path(run["directory"])

        def committed():  # files that the host made and that the service has begun to score
            names = [path.relative_to(path.parents[2]) for path in root.glob("spool/runs/*/generations/*/*.jsonl")]
            attempt = lambda name: name.name.rsplit("-", 1)[0].removesuffix(".jsonl")
            scored = lambda name: any((folder / "scores" / name.parts[1]).glob(attempt(name) + "[-.]*"))
            return [name for name in names if (folder / name).exists() and scored(name)]

        names = self.wait_for("what it committed, and more to do", lambda: len(names := committed()) > 1 and names)
        self.agents["north"].kill()
        self.agents["north"].wait()
        kept = {(name.parts[1], json.loads(line)["doc_id"]) for name in names for line in (folder / name).read_text().splitlines()}
        # The host's disk is lost too. Its processes end with it, and one of them may be making a file at this moment.
        self.wait_for("its disk to be gone", lambda: shutil.rmtree(root, ignore_errors=True) or not root.exists())
        self.check(expected, self.finished(run, 300))
        answered = [tuple(line.split()[:2]) for line in journal.read_text().splitlines()]
        twice = {(task, int(doc)) for task, doc in answered if task == "sums" and answered.count((task, doc)) > 1}
        self.assertTrue(kept)
        self.assertEqual({key for key in kept if key in twice}, set(), "what it had committed is not asked again")
        self.daemon.send_signal(signal.SIGTERM)
        _, err = self.daemon.communicate(timeout=60)
        self.assertRegex(err, r"north\.w[01]: its host has been away for too long; its committed slices stay, its \d+ trials? go")

    def test_prepared_files_that_were_damaged_are_fetched_again(self):
        self.make_suite(200, 20)
        expected = self.undisturbed()
        self.serve()
        self.start_agent("north", devices="cpu:0,cpu:1")
        self.wait_host("north")
        engine = {**self.ENGINE, "delay_ms": 150}
        self.check(expected, self.finished(self.submit_to_all("north", engine=engine)))
        spool = self.folder / "hosts" / "north" / "spool" / "prepared"
        files = [path for path in sorted(spool.glob("*/*")) if path.name in ("requests.jsonl", "documents.jsonl")]
        self.assertGreaterEqual(len(files), 2, "it has prepared tasks of its own")
        whole = {path: path.read_bytes() for path in files}
        for i, (path, data) in enumerate(whole.items()):
            # One file is cut short, the next has other answers in it.
            path.write_bytes(data[:-7] if i % 2 else data.replace(b"number 1", b"number 2").replace(b"is 1", b"is 2"))
            self.assertNotEqual(path.read_bytes(), data)
        self.agents["north"].kill()  # its processes have the files open and read the old content
        self.agents["north"].wait()
        self.start_agent("north", devices="cpu:0,cpu:1")
        self.wait_host("north")
        run = self.finished(self.submit_to_all("north", engine=engine))
        self.check(expected, run)
        self.assertIn("north", self.hosts_of(run))
        log = (self.folder / "north.log").read_text()
        self.assertIn("it is fetched again", log)
        restored = [path for path, data in whole.items() if path.read_bytes() == data]
        self.assertTrue(restored, log[-2000:])

    def test_a_host_that_is_away_for_too_long_gives_up_its_work(self):
        self.make_suite(200, 20)
        expected = self.undisturbed()
        self.serve()
        self.start_agent("north")
        self.wait_host("north")
        run = self.submit_to_all("north", engine={**self.ENGINE, "delay_ms": 200},
                                 workers={"count": 2, "heartbeat_timeout_s": 2})
        self.wait_for("work there", lambda: any(w["trials"] for w in self.workers("north")))
        self.agents["north"].send_signal(signal.SIGSTOP)  # its workers go on
        self.check(expected, self.finished(run))
        self.agents["north"].send_signal(signal.SIGCONT)
        self.wait_host("north")
        self.check(expected, self.finished(self.submit(engine=self.ENGINE)))

    def test_a_killed_service_finds_its_agents_again(self):
        self.make_suite(1500, 60)
        expected = self.undisturbed()
        journal = self.keep_journal()
        self.serve()
        port = int(self.url.rsplit(":", 1)[1])
        self.start_agent("north")
        self.wait_host("north")
        engine = {**self.ENGINE, "delay_ms": 100, "concurrency": 8}
        run = self.submit_to_all("north", engine=engine)
        pid = self.wait_for("work there", lambda: next((w["pid"] for w in self.workers("north") if w["trials"]), None))
        lines = lambda: len(journal.read_text().splitlines()) if journal.exists() else 0
        self.wait_for("some answers", lambda: lines() > 40 and any(w["trials"] for w in self.workers("north")))
        self.daemon.kill()
        self.daemon.communicate()
        alone = lines()
        self.wait_for("answers while no service is there", lambda: lines() > alone + 4)
        self.serve(listen=f"127.0.0.1:{port}")
        self.wait_host("north")
        self.wait_for("the same worker", lambda: [w["pid"] for w in self.workers("north")] == [pid])
        self.check(expected, self.finished(run))


class Refusals(Agents):
    def line_with(self, process, text):
        for line in process.stdout:
            if text in line:
                process.kill()
                return line
        self.fail(f"no line with {text!r}")

    def test_who_may_not_join(self):
        self.serve(**self.make_access())
        (self.folder / "wrong.token").write_text("not-a-token-of-anyone\n")
        (self.folder / "read.token").write_text(TOKENS["read"] + "\n")
        wrong = self.agent_command("north")
        for file, said in (("wrong.token", "status 401"), ("read.token", "status 403")):
            command = [w.replace("worker.token", file) for w in wrong]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.agents[file] = process
            self.line_with(process, said)
        (self.folder / "other").mkdir()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x", "-keyout",
                        str(self.folder / "other" / "k"), "-out", str(self.folder / "other" / "ca.pem")], check=True, capture_output=True)
        command = [w.replace(str(self.folder / "ca.pem"), str(self.folder / "other" / "ca.pem")) for w in wrong]
        self.agents["ca"] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.line_with(self.agents["ca"], "certificate verify failed")
        self.start_agent("north")
        self.wait_host("north")
        twin = [w.replace("hosts/north", "hosts/twin") for w in self.agent_command("north")]
        self.agents["twin"] = subprocess.Popen(twin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.line_with(self.agents["twin"], "another agent called 'north' is connected")

    def test_doctor_says_who_is_there_and_who_may_not_join(self):
        self.serve(**self.make_access())
        (self.folder / "admin.token").write_text(TOKENS["admin"] + "\n")
        (self.folder / "wrong.token").write_text("not-a-token-of-anyone\n")
        access = ["--server", self.url, "--token-file", self.folder / "admin.token", "--ca-file", self.folder / "ca.pem"]

        def doctor(*arguments):
            done = self.evald("doctor", "--json", "--staging-root", self.folder, *arguments)
            return {check["what"]: check for check in json.loads(done.stdout)["checks"]}, done.returncode

        self.agent()
        self.start_agent("north", devices="cpu:0,cpu:1")
        self.wait_host("north")
        found, _ = doctor(*access)
        self.assertTrue(found["service"]["available"], found)
        self.assertTrue(found["agent local"]["available"], found)
        self.assertTrue(found["agent north"]["available"], found)
        self.assertRegex(found["agent north"]["detail"], r"^connected, evald \d+\.\d+\.\d+, 2 devices, .* free for staging$")
        self.assertNotIn("agents' tokens", found)

        wrong = [word.replace("worker.token", "wrong.token") for word in self.agent_command("south")]
        self.agents["south"] = subprocess.Popen(wrong, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.line_with(self.agents["south"], "status 401")
        twin = [word.replace("hosts/north", "hosts/twin") for word in self.agent_command("north")]
        self.agents["twin"] = subprocess.Popen(twin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.line_with(self.agents["twin"], "is connected")
        self.agents["north"].kill()
        self.wait_host("north", "away")
        self.wait_for("the refusal to be shown", lambda: self.call("GET", "/v1/hosts")["refused"])
        found, status = doctor(*access)
        self.assertEqual(status, 3)
        self.assertRegex(found["agents' tokens"]["detail"], "connections? without a token that the service knows")
        refused = [check for check in found.values() if "another agent called 'north' is connected" in check["detail"]]
        self.assertEqual([check["available"] for check in refused], [False])

        for arguments, said in ((["--token-file", self.folder / "wrong.token", "--ca-file", self.folder / "ca.pem"], "token is not known"),
                                (["--token-file", self.folder / "worker.token", "--ca-file", self.folder / "ca.pem"], "role"),
                                (["--token-file", self.folder / "admin.token"], "certificate")):
            found, status = doctor("--server", self.url, *arguments)
            self.assertEqual((found["service"]["available"], status), (False, 3))
            self.assertIn(said, found["service"]["detail"])
        found, _ = doctor("--server", "http://127.0.0.1:1")
        self.assertFalse(found["service"]["available"], "one that is named must be there")

    def test_what_is_no_use(self):
        for flags, said in ((["--server", "ftp://x"], "expected https://"), (["--server", "http://10.0.0.1:1"], "unencrypted"),
                            (["--server", "https://x:1", "--name", "a.b"], "--name"),
                            (["--server", "https://x:1", "--name", "local"], "--name"), ([], "--server is missing")):
            done = self.evald("agent", "--root", self.folder / "r", *flags)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(said, done.stderr)

    def test_files_are_only_for_whom_they_are(self):
        self.serve()
        for path in ("/v1/agents/nobody/prepared/ab", "/v1/agents/nobody/checkpoints/ab", "/v1/agents/nobody/generations/ab"):
            self.assertEqual(self.call("GET", path, status=403)["detail"], "this agent has no work with this file")
        self.call("PUT", "/v1/agents/nobody/files/" + "0" * 32 + "?file=/etc/passwd&offset=0&bytes=2", {}, status=403)
        self.assertIn("evald-agent", self.call("GET", "/v1/agents/connect", status=426)["detail"])


class RawAgent:
    """An agent played by a test over TLS, with a worker token. The test chooses its messages."""

    ENGINE = {"name": "emulated", "version": "1", "kinds": ["generate_until", "loglikelihood"], "max_length": 2048,
              "deterministic": True, "wants_tokens": False, "emulated": True, "concurrency": 4, "device": "made up"}

    def __init__(self, test, name, token="the-token-of-a-worker", instance=None, **hello):
        plain = socket.create_connection(("127.0.0.1", test.port), timeout=30)
        self.socket = test.https.wrap_socket(plain, server_hostname="127.0.0.1")
        self.number, self.received, self.buffer = 0, 0, b""
        self.instance = instance or os.urandom(16).hex()
        self.socket.sendall(f"GET /v1/agents/connect HTTP/1.1\r\nHost: 127.0.0.1:{test.port}\r\n"
                            f"Authorization: Bearer {token}\r\nConnection: Upgrade\r\nUpgrade: evald-agent\r\n\r\n".encode())
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        self.buffer = self.buffer.split(b"\r\n\r\n", 1)[1]
        version = test.call("GET", "/healthz")["version"]
        self.loose({"type": "agent_hello", "version": 1, "evald": version, "name": name, "instance": self.instance, "pid": 1,
                    "session": "", "received": 0, "config": "", "devices": ["cpu:0"], "threads": 1, "metric_processes": 1, **hello})
        self.answer = self.hear()

    def loose(self, message):
        self.socket.sendall((json.dumps({"number": 0, "ack": self.received, **message}) + "\n").encode())

    def say(self, message):
        self.number += 1
        self.socket.sendall((json.dumps({"number": self.number, "ack": self.received, **message}) + "\n").encode())

    def from_process(self, process, message):
        self.say({"type": "from", "process": process, "message": message})

    def ready(self, **members):
        self.say({"type": "agent_ready", "processes": [], "staged": [], **members})

    def hear(self, seconds=30):
        """The next message. None if none comes in time, {} if the connection has ended."""
        self.socket.settimeout(seconds)
        while b"\n" not in self.buffer:
            try:
                got = self.socket.recv(65536)
            except (TimeoutError, socket.timeout):
                return None
            except OSError:
                return {}
            if not got:
                return {}
            self.buffer += got
        line, self.buffer = self.buffer.split(b"\n", 1)
        message = json.loads(line)
        self.received = message["number"] or self.received
        return message

    def close(self):
        self.socket.close()


class LyingAgents(Agents):
    """The holder of a worker token may send anything. That ends neither the service nor a run that others can
    compute."""

    def setUp(self):
        super().setUp()
        access = self.make_access()
        token = hashlib.sha256(b"another-worker-token").hexdigest()
        with open(self.folder / "tokens", "a") as tokens:
            tokens.write(f"another worker sha256:{token}\n")
        self.make_suite(400, 20)
        self.serve(**access)
        self.port = int(self.url.rsplit(":", 1)[1])

    def agent(self, name, *arguments, **more):
        agent = RawAgent(self, name, *arguments, **more)
        self.addCleanup(agent.close)
        return agent

    def submit_slow(self):
        return self.submit(engine={"name": "emulated", "delay_ms": 2, "concurrency": 4})

    def assert_done(self, run):
        run = self.finished(run)
        self.assertEqual(run["state"], "done", f"{run}\n{self.log_text()}")

    def play(self, agent, answer, scores=False, until=lambda: False):
        """Answers orders to start and to load, to the run's end or until `until()` holds. `answer(message)` handles
        other messages first. With `scores` the agent plays a metric process instead of a worker."""
        end = time.monotonic() + 60
        while time.monotonic() < end and not until():
            message = agent.hear(1)
            if message == {}:
                return
            if message is None:
                if self.call("GET", "/v1/runs")["runs"][0]["state"] in ("done", "failed", "incomplete"):
                    return
                continue
            if message["type"] == "start" and message["process"] == ("m0" if scores else "w0"):
                agent.from_process(message["process"], {
                    "type": "hello", "version": 1, "role": "metric" if scores else "worker", "id": message["process"], "pid": 2,
                    "engine": {"isolation": "made up"} if scores else RawAgent.ENGINE, "waits": ""})
                if scores:
                    agent.from_process("m0", {"type": "want", "count": 9})
            elif message["type"] == "to" and not answer(message["message"]):
                if message["message"]["type"] == "load":
                    agent.from_process("w0", {"type": "loaded", "fingerprint": message["message"]["fingerprint"],
                                              "engine": RawAgent.ENGINE, "report": {}})
                    agent.from_process("w0", {"type": "want", "count": 9})

    def test_an_adopted_process_whose_engine_is_none(self):
        for loaded in ({"engine": [], "report": {}}, {"engine": 1, "report": {}}, 1,
                       {"engine": {**RawAgent.ENGINE, "name": 1}, "report": {}}, {"engine": RawAgent.ENGINE, "report": 1}):
            agent = self.agent("liar")
            self.assertEqual(agent.answer["type"], "agent_welcome")
            agent.ready(processes=[{"id": "w0", "program": "evald-worker", "arguments": [], "tag": "t", "pid": 4, "loading": False,
                                    "engine": RawAgent.ENGINE, "fingerprint": "", "loaded": loaded, "wants": 1}])
            self.assertEqual(agent.hear(), {}, "its connection ends")
            self.call("GET", "/v1/workers")
        self.assert_done(self.submit_slow())

    def test_it_ends_nothing_that_it_does_not_hold(self):
        agent = self.agent("liar")
        agent.ready()
        run = self.submit_slow()
        for _ in range(20):
            for trial in range(20):
                for attempt in (1, 2):
                    agent.from_process("w0", {"type": "trial_failed", "trial": 1 << 32 | trial, "attempt": attempt,
                                              "retry": False, "message": "made up", "device": False, "task": "sums"})
            time.sleep(0.05)
        self.assert_done(run)

    def test_a_load_that_it_refuses_and_a_file_that_it_never_wrote(self):
        def refuses(message):
            if message["type"] == "load":
                agent.from_process("w0", {"type": "trial_failed", "trial": -1, "attempt": 0, "retry": False, "message": "no"})
                return True
        def invents(message):
            if message["type"] != "lease":
                return False
            for part in message["slices"]:
                agent.from_process("w0", {"type": "slice_done", "trial": message["trial"], "attempt": message["attempt"],
                                          "task": part["task"], "first": part["first"], "end": part["end"], "file": part["file"],
                                          "hash": "5e0b" * 8, "bytes": 100, "requests": 1, "truncated": 0, "tokens_in": 1,
                                          "tokens_out": 1, "device_seconds": 1e8, "longest_seconds": 1e8, "salvaged": 0})
            agent.from_process("w0", {"type": "trial_done", "trial": message["trial"], "attempt": message["attempt"], "device_seconds": 1e8})
            return True
        for name, answer in (("refuses", refuses), ("invents", invents)):
            agent = self.agent(name)
            agent.ready()
            run = self.submit_slow()
            self.play(agent, answer)
            self.assert_done(run)
            agent.close()

    GARBAGE = b"garbage\n"
    GARBAGE_HASH = "fc5e8f1deb409d268a2c12fdcc24a6bb"  # XXH3-128

    def give_garbage(self, agent, file):
        """Uploads the garbage in place of this file, with the garbage's hash."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self.https)
        connection.request("PUT", f"/v1/agents/{agent.instance}/files/{self.GARBAGE_HASH}?file={file}&offset=0&bytes={len(self.GARBAGE)}",
                           self.GARBAGE, {"Authorization": "Bearer the-token-of-a-worker"})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200, answer.read())
        connection.close()

    def test_files_of_no_sense(self):
        given = []
        def garbage(message):
            content = {"hash": self.GARBAGE_HASH, "bytes": len(self.GARBAGE)}
            if message["type"] == "lease":
                for part in message["slices"]:
                    self.give_garbage(agent, part["file"])
                    given.append(part["file"])
                    agent.from_process("w0", {"type": "slice_done", "trial": message["trial"], "attempt": message["attempt"],
                                              "task": part["task"], "first": part["first"], "end": part["end"], "file": part["file"],
                                              **content, "requests": 1, "truncated": 0, "tokens_in": 1, "tokens_out": 1,
                                              "device_seconds": 0.1, "longest_seconds": 0.1, "salvaged": 0})
                agent.from_process("w0", {"type": "trial_done", "trial": message["trial"], "attempt": message["attempt"], "device_seconds": 0.1})
                agent.from_process("w0", {"type": "want", "count": 9})
                return True
            if message["type"] == "job":
                self.give_garbage(agent, message["file"])
                given.append(message["file"])
                agent.from_process("m0", {"type": "job_done", "job": message["job"], "file": message["file"], **content,
                                          "cpu_seconds": 0.1, "slot_seconds": 0.1, "attempt": message["attempt"]})
                return True
            return False
        for kind, program in (("scores", "evald-metric"), ("generations", "evald-worker")):
            agent = self.agent(kind)
            agent.ready()
            run = self.submit(engine={"name": "emulated", "delay_ms": 30, "concurrency": 4})
            had_a_part = lambda: any(f"/{kind}/" in file for file in given)
            with self.stopped(program, run):
                self.play(agent, garbage, scores=kind == "scores", until=had_a_part)
            self.assertTrue(had_a_part(), f"it had no part in the run\n{self.log_text()}")
            self.play(agent, garbage, scores=kind == "scores")
            self.assert_done(run)
            agent.close()

    @contextlib.contextmanager
    def stopped(self, program, run):
        """The service's own processes of this program stand still, so another host's get their part of the run."""
        self.wait_for("its begin", lambda: self.run_of(run)["state"] != "queued")
        self.call("POST", f"/v1/runs/{run['id']}/pause")
        local = ServiceCase.agent(self)
        pids = self.wait_for(program, lambda: len(found := self.children(local, program)) == self.WORKERS and found)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            self.call("POST", f"/v1/runs/{run['id']}/resume")
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def test_an_engine_that_nobody_else_has(self):
        """The first worker to load decides on which kind of device a run is computed, but not whether it is
        computed."""
        engine = {**RawAgent.ENGINE, "device": "unheard of", "device_id": "GPU-made-up", "driver": "1"}
        agent = self.agent("first")
        agent.ready()
        run = self.submit(engine={"name": "emulated", "delay_ms": 2, "concurrency": 4}, workers={"heartbeat_timeout_s": 3})
        loaded, end = [], time.monotonic() + 60
        while time.monotonic() < end and self.run_of(run)["state"] not in ("done", "failed", "incomplete"):
            agent.loose({"type": "ping", "at": 1, "memory_total": 1, "memory_free": 1})
            message = agent.hear(0.5)
            if not message:
                continue
            if message["type"] == "start" and message["process"] == "w0":
                agent.from_process("w0", {"type": "hello", "version": 1, "role": "worker", "id": "w0", "pid": 2, "engine": engine, "waits": ""})
            elif message["type"] == "to" and message["message"]["type"] == "load":
                loaded.append(message["message"]["fingerprint"])
                agent.from_process("w0", {"type": "loaded", "fingerprint": loaded[-1], "engine": engine, "report": {}})
        self.assertTrue(loaded, "it was asked to load nothing")
        self.assert_done(run)

    def test_a_host_is_its_tokens(self):
        agent = self.agent("mine")
        agent.ready()
        agent.close()
        self.wait_host("mine", "away")
        refused = self.agent("mine", "another-worker-token").answer
        self.assertEqual(refused["type"], "agent_refused")
        self.assertIn("of another token", refused["reason"])
        refused = self.agent("theirs", "another-worker-token", instance=agent.instance).answer
        self.assertEqual(refused["type"], "agent_refused")
        self.assertEqual(self.agent("mine").answer["type"], "agent_welcome")

    def test_a_token_has_so_many_hosts_and_devices(self):
        refused = self.agent("many", devices=["cpu:0"] * 1024).answer
        self.assertEqual(refused, {}, "no host has so many")
        answers = [self.agent(f"h{i}", devices=["cpu:0"] * 128, metric_processes=512).answer for i in range(8)]
        self.assertEqual([a["type"] for a in answers], ["agent_welcome"] * 6 + ["agent_refused"] * 2)
        self.assertIn("devices and metric processes", answers[-1]["reason"])
        self.assertEqual(self.agent("fresh", "another-worker-token").answer["type"], "agent_welcome")

    def test_it_does_not_read(self):
        agent = self.agent("deaf")
        agent.ready()
        pings = (json.dumps({"number": 0, "ack": 0, "type": "ping", "at": 1, "memory_total": 0, "memory_free": 0}) + "\n").encode() * 2000
        before = self.resident()
        agent.socket.settimeout(5)
        with self.assertRaises(OSError, msg="it may go on for ever"):
            for _ in range(5000):
                agent.socket.sendall(pings)
        self.assertLess(self.resident() - before, 400)
        self.assert_done(self.submit_slow())

    def resident(self):
        status = pathlib.Path(f"/proc/{self.daemon.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) // 1024


class BadConnections(Agents):
    def test_lines_that_are_lost_repeated_and_overtaken(self):
        self.make_suite(400, 100)
        expected = self.undisturbed()
        self.serve()
        proxy = Proxy(int(self.url.rsplit(":", 1)[1]), SEED)
        self.addCleanup(proxy.close)
        for name in ("north", "south"):
            self.start_agent(name, server=proxy.url, devices="cpu:0,cpu:1")
            self.wait_host(name)
        engine = {**self.ENGINE, "delay_ms": 120}
        runs = [self.submit_to_all("north", "south", engine=engine), self.submit(engine=engine)]
        for run in runs:
            run = self.finished(run, 300)
            self.check(expected, run)
            self.assertEqual(set(self.hosts_of(run)), {"local", "north", "south"})
        print(f"seed {SEED}: {proxy.faults}", flush=True)
        self.assertTrue(all(proxy.faults.values()), proxy.faults)


if __name__ == "__main__":
    unittest.main(verbosity=2)
