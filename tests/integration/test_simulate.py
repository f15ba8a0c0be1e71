"""`evald simulate` through the command line: a bound that other code computes, and the figures of
docs/simulate.md."""
import json
import os
import pathlib
import time
import unittest
import xml.etree.ElementTree as xml

from evald_case import EvaldCase

# Lengths without spread, so that every document's cost is known beforehand.
WORKLOAD = {
    "schema": "evald-workload/1",
    "name": "told",
    "model": {"params": 1e9, "bytes": 4e9, "kv_bytes_per_token": 2e5},
    "context_limit": 4096,
    "datasets": [
        {"name": "questions", "kind": "loglikelihood", "documents": 3000, "prompt_tokens": 300, "shared_prefix_tokens": 200,
         "shared_prefix_groups": 3, "doc_tokens": {"mean": 100}, "choices": 4, "continuation_tokens": 5,
         "scoring": {"kind": "argmax", "cpu_seconds_per_document": 0.0001}},
        {"name": "answers", "kind": "generate_until", "documents": 1200, "prompt_tokens": 500, "doc_tokens": {"mean": 500},
         "max_gen_toks": 512, "generated_tokens": {"mean": 200},
         "scoring": {"kind": "exact_match", "cpu_seconds_per_document": 0.001}},
        {"name": "programs", "kind": "generate_until", "documents": 160, "prompt_tokens": 150, "doc_tokens": {"mean": 150},
         "max_gen_toks": 256, "generated_tokens": {"mean": 100},
         "scoring": {"kind": "code_execution", "cpu_seconds_per_document": 0.5}},
    ],
}
CLUSTER = {
    "schema": "evald-cluster/1", "name": "two", "nodes": 2, "devices_per_node": 2, "score_slots_per_node": 8,
    "storage_bytes_per_s": 1e9, "pcie_bytes_per_s": 2e10, "memory_bytes_per_s": 1e12, "flop_per_s": 1e14,
    "executor": {"places": 16, "start_s": 10, "prepare_s": 3, "lease_s": 0.005},
}


def bound_of(workload, cluster):
    """docs/simulate.md, "The bound", for lengths without spread, shared prefixes and stop strings."""
    model, places = workload["model"], cluster["executor"]["places"]
    devices = cluster["nodes"] * cluster["devices_per_node"]
    second_per_token = 2 * model["params"] / cluster["flop_per_s"]
    work = scoring = 0
    longest, shortest = 0, float("inf")
    for dataset in workload["datasets"]:
        own, count = dataset["doc_tokens"]["mean"], dataset["documents"]
        prefix = dataset.get("shared_prefix_tokens", 0) * second_per_token
        groups = dataset.get("shared_prefix_groups", 0)
        if dataset["kind"] == "loglikelihood":
            place = (own + dataset["choices"] * dataset["continuation_tokens"]) * second_per_token * places
        else:
            out = dataset["generated_tokens"]["mean"]
            context = dataset["prompt_tokens"] + out / 2
            step = max((model["bytes"] + places * context * model["kv_bytes_per_token"]) / cluster["memory_bytes_per_s"],
                       places * second_per_token)
            place = own * second_per_token * places + out * step
        work += (count * place / places + groups * prefix) / devices
        longest = max(longest, place + prefix * places)
        shortest = min(shortest, place)
        scoring += count * dataset["scoring"]["cpu_seconds_per_document"]
    slots = cluster["nodes"] * cluster["score_slots_per_node"]
    stage = model["bytes"] / cluster["storage_bytes_per_s"]
    return {"stage_s": stage, "device_work_s": work, "longest_request_s": longest, "scoring_s": shortest + scoring / slots}


class Simulate(EvaldCase):
    def simulate(self, *arguments, status=0):
        done = self.evald("simulate", *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def json(self, *arguments, status=0):
        done = self.simulate("--json", *arguments, status=status)
        self.assertEqual(len(done.stdout.splitlines()), 1, "one JSON document and nothing else")
        return json.loads(done.stdout)

    def policies(self, *arguments):
        return {policy["name"]: policy for policy in self.json(*arguments)["policies"]}

    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return path


class Told(Simulate):
    """A workload of the test's own. Other code computes its bound."""

    def setUp(self):
        super().setUp()
        self.files = ("--workload", self.write("workload.yaml", WORKLOAD), "--cluster", self.write("cluster.yaml", CLUSTER))

    def test_the_bound_is_that_of_the_document_and_none_is_faster(self):
        report = self.json(*self.files)
        expected = bound_of(WORKLOAD, CLUSTER)
        for part, seconds in expected.items():
            self.assertAlmostEqual(report["bound"][part], seconds, delta=seconds * 1e-4, msg=part)
        stage = expected.pop("stage_s")
        self.assertAlmostEqual(report["bound_s"], stage + max(expected.values()), delta=0.01)
        for policy in report["policies"]:
            self.assertGreaterEqual(policy["makespan_s"], report["bound_s"])
            self.assertEqual(policy["documents_scored"], 3000 + 1200 + 160)
            self.assertAlmostEqual(policy["ratio_to_bound"], policy["makespan_s"] / report["bound_s"], places=6)

    def test_scoring_or_staging_can_be_what_bounds(self):
        slow = json.loads(json.dumps(WORKLOAD))
        slow["datasets"][2].update(documents=640, scoring={"kind": "code_execution", "cpu_seconds_per_document": 5})
        expected = bound_of(slow, CLUSTER)
        self.assertGreater(expected["scoring_s"], expected["device_work_s"])
        report = self.json("--workload", self.write("slow.yaml", slow), *self.files[2:])
        self.assertAlmostEqual(report["bound_s"], expected["stage_s"] + expected["scoring_s"], delta=0.01)
        elastic = [p for p in report["policies"] if p["name"] == "elastic"][0]
        self.assertLess(elastic["ratio_to_bound"], 1.1, "what takes long to score is generated first")

    def test_equal_arguments_print_equal_documents(self):
        arguments = (*self.files, "--draws", "3", "--seed", "9", "--prior-error", "2", "--fail-rate", "0.1")
        self.assertEqual(self.json(*arguments), self.json(*arguments))

    def test_pictures_and_traces(self):
        svg, trace = self.folder / "out.svg", self.folder / "out.json"
        self.simulate(*self.files, "--policy", "coupled,elastic", "--gantt", svg, "--trace", trace)
        picture = xml.parse(svg).getroot()
        self.assertTrue(picture.tag.endswith("svg"))
        titles = " ".join(picture.itertext())
        for word in ("coupled", "elastic", "bound", "node 1", "generate", "idle"):
            self.assertIn(word, titles)
        events = json.loads(trace.read_text())["traceEvents"]
        rows = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
        self.assertEqual(len(rows), 8)
        self.assertIn("elastic: node 1 device 0", rows)
        self.assertLessEqual({e["name"] for e in events if e["ph"] == "X"}, {"start", "load", "prepare", "generate", "score", "idle"})

    def test_what_print_gives_can_be_given_back(self):
        for what in ("workload", "cluster"):
            text = self.simulate("--print", what).stdout
            self.write(f"own-{what}.yaml", text)
        own = ("--workload", self.folder / "own-workload.yaml", "--cluster", self.folder / "own-cluster.yaml", "--policy", "elastic")
        self.assertEqual(self.json(*own)["policies"], self.json("--policy", "elastic")["policies"])


class Placement(Simulate):
    """1 to 128 nodes of 8 devices that get the checkpoint over one link or from one another."""

    def one(self, nodes, staging, cluster="acme", *arguments):
        report = self.json("--cluster", cluster, "--nodes", str(nodes), "--staging", staging, "--policy", "elastic", *arguments)
        self.assertEqual(report["cluster"]["staging"], staging)
        return report, report["policies"][0]

    def test_a_run_takes_at_most_5_percent_longer_than_the_bound(self):
        sizes = [("acme", staging, nodes) for staging in ("link", "tree") for nodes in (1, 2, 8, 32, 64, 128)]
        sizes += [("acme-modern", "tree", nodes) for nodes in (2, 8, 16, 128)] + [("acme-modern", "link", 8)]
        for cluster, staging, nodes in sizes:
            with self.subTest(cluster=cluster, staging=staging, nodes=nodes):
                report, policy = self.one(nodes, staging, cluster)
                self.assertGreaterEqual(policy["makespan_s"], report["bound_s"])
                self.assertLessEqual(policy["ratio_to_bound"], 1.05)

    def test_a_lost_node_costs_what_the_others_have_to_do_for_it(self):
        for staging in ("link", "tree"):
            for nodes in (4, 32, 128):
                with self.subTest(staging=staging, nodes=nodes):
                    _, policy = self.one(nodes, staging, "acme", "--lose-node-at", "0.5")
                    self.assertLessEqual(policy["over_draws"]["ratio_to_left_bound"]["max"], 1.05)

    def test_a_slow_node_gets_less(self):
        for staging, nodes in (("link", 4), ("link", 64), ("tree", 4), ("tree", 32)):
            with self.subTest(staging=staging, nodes=nodes):
                _, policy = self.one(nodes, staging, "acme", "--slow-node", "3")
                self.assertLessEqual(policy["over_draws"]["ratio_to_left_bound"]["max"], 1.05)

    def test_over_one_link_the_last_nodes_never_get_the_checkpoint(self):
        for nodes in (64, 128):
            _, policy = self.one(nodes, "link")
            self.assertLess(policy["nodes_staged"], 60, "the others would get it when all is done")
        _, policy = self.one(128, "tree")
        self.assertEqual(policy["nodes_staged"], 128)

    def test_the_bound_knows_when_nodes_can_have_the_checkpoint(self):
        files = ("--workload", self.write("workload.yaml", WORKLOAD), "--policy", "elastic")
        parts = bound_of(WORKLOAD, CLUSTER)
        stage, work = parts["stage_s"], 4 * parts["device_work_s"]  # device seconds
        for way, second in (({"way": "link"}, 2 * stage), ({"way": "tree", "node_bytes_per_s": 8e9, "hop_s": 0.25}, stage + 0.75)):
            cluster = self.write("cluster.yaml", {**CLUSTER, "staging": way})
            report = self.json(*files, "--cluster", cluster)
            # Two devices from `stage` on, and two more from `second` on
            self.assertAlmostEqual(report["bound"]["device_work_s"], (work + 2 * (second - stage)) / 4, delta=0.01)
            self.assertGreaterEqual(report["policies"][0]["makespan_s"], report["bound_s"])

    def test_a_thousand_devices_are_simulated_in_seconds(self):
        begin = time.monotonic()
        self.one(128, "tree")
        self.assertLess(time.monotonic() - begin, 20)


class Refused(Simulate):
    def test_every_mistake_is_named_with_what_to_do(self):
        broken = self.write("broken.yaml", json.dumps({**CLUSTER, "nodes": "two"}, indent=1))
        for arguments, said in (
                (("--preset", "acme"), "no preset is called 'acme'"),
                (("--cluster", "acme-moderm"), "did you mean 'acme-modern'?; one of acme, acme-modern, or a file"),
                (("--cluster", broken), "broken.yaml:4: key 'nodes': found 'two', expected an integer from 1 to 100000"),
                (("--workload", broken), "broken.yaml:2: key 'schema': found 'evald-cluster/1', expected evald-workload/1"),
                (("--workload", self.folder / "none.yaml"), "none.yaml"),
                (("--policy", "elastics"), "elastic"),
                (("--policy", "elastic,coupled,elastic"), "'elastic' is given twice"),
                (("--prior-error", "nan"), "--prior-error: found nan, expected a number"),
                (("--fail-rate", "nan"), "--fail-rate: found nan, expected a number"),
                (("--nodes", "0"), "--nodes"),
                (("--draws", "many"), "--draws"),
                (("--prior-error", "0.5"), "--prior-error"),
                (("--prior-error", "3", "--no-priors"), "either --prior-error or --no-priors"),
                (("--lose-node-at", "0.5"), "--nodes 2"),
                (("--fail-rate", "0.9"), "--fail-rate"),
                (("--slow-node", "nan"), "--slow-node: found nan, expected a number"),
                (("--staging", "ring"), "--staging"),
                (("--cluster", self.write("ring.yaml", json.dumps({**CLUSTER, "staging": {"way": "ring"}}, indent=1))),
                 "key 'staging.way': found 'ring', expected each, link or tree"),
                (("--gantt", self.folder / "no" / "folder" / "x.svg", "--policy", "elastic"), "x.svg")):
            with self.subTest(arguments=arguments):
                done = self.evald("simulate", *arguments)
                self.assertIn(done.returncode, (2, 3), done.stdout + done.stderr)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stdout, "")


class Streams(Simulate):
    def test_checkpoints_every_half_hour_and_more_often_than_can_be_done(self):
        report = self.json("--preset", "stream", "--policy", "coupled,elastic")
        coupled, elastic = report["stream"]["policies"]
        self.assertTrue(elastic["keeps_up"])
        self.assertEqual(len(elastic["latencies_s"]), 6)
        self.assertLess(elastic["latency_s"]["max"], 1800)
        self.assertGreater(coupled["latency_s"]["p50"], 2 * elastic["latency_s"]["p50"])
        often = self.json("--preset", "stream", "--policy", "elastic", "--every", "600")["stream"]["policies"][0]
        self.assertFalse(often["keeps_up"])
        self.assertEqual(often["latencies_s"], sorted(often["latencies_s"]), "later ones wait longer")
        self.assertIn("keeps up", self.simulate("--checkpoints", "2", "--nodes", "4", "--policy", "elastic").stdout)

    def test_a_day_of_a_cluster(self):
        report = self.json("--preset", "cluster-day", "--seed", "3")
        self.assertEqual([day["lengths"] for day in report["days"]], ["seren", "kalos"])
        for day in report["days"]:
            self.assertGreater(day["jobs"], 1000)
            coupled, _, elastic = day["policies"]
            self.assertLess(elastic["latency_s"]["p50"], coupled["latency_s"]["p50"] / 2)
        self.assertIn("devices held %", self.simulate("--preset", "cluster-day").stdout)

    def test_what_does_not_go_together_is_refused(self):
        for arguments, said in (
                (("--preset", "stream", "--draws", "3"), "give --checkpoints instead"),
                (("--preset", "stream", "--fail-rate", "0.1"), "leave out --checkpoints"),
                (("--preset", "stream", "--staging", "link"), "give --staging each"),
                (("--preset", "cluster-day", "--staging", "tree"), "nothing else"),
                (("--preset", "cluster-day", "--ablate"), "nothing else"),
                (("--preset", "cluster-day", "--policy", "size-split"), "coupled, decoupled-fifo, elastic"),
                (("--every", "0"), "--every"),
                (("--every", "600"), "give --checkpoints as well"),
                (("--print", "cluster", "--cluster", "mine.yaml"), "no cluster is called 'mine.yaml'")):
            with self.subTest(arguments=arguments):
                self.assertIn(said, self.simulate(*arguments, status=2).stderr)


class Published(Simulate):
    """The figures that docs/simulate.md gives for the preset, at five draws."""

    def test_on_the_papers_nodes_the_order_of_policies_holds(self):
        for nodes, published in (("1", 1.3), ("4", 1.8)):
            with self.subTest(nodes=nodes):
                found = self.policies("--nodes", nodes, "--draws", "5")
                ours, theirs = found["elastic"], found["round-robin"]
                self.assertEqual(theirs["published_speedup"], published)
                self.assertGreater(theirs["speedup_vs_coupled"], 1.1)
                self.assertLessEqual(ours["over_draws"]["ratio_to_bound"]["max"], 1.05)
                self.assertLessEqual(ours["over_draws"]["gpu_idle_share"]["max"], 0.02)
                self.assertLess(ours["over_draws"]["makespan_s"]["max"], theirs["over_draws"]["makespan_s"]["min"])
                self.assertEqual(ours["documents_scored"], 290943)

    def test_with_an_executor_of_today(self):
        for nodes in ("1", "4"):
            ours = self.policies("--cluster", "acme-modern", "--nodes", nodes, "--draws", "5", "--policy", "elastic")["elastic"]
            self.assertLessEqual(ours["over_draws"]["ratio_to_bound"]["max"], 1.05)
            self.assertLessEqual(ours["over_draws"]["gpu_idle_share"]["max"], 0.02)

    def test_wrong_priors_and_none(self):
        for cluster in ("acme", "acme-modern"):
            with self.subTest(cluster=cluster):
                common = ("--cluster", cluster, "--nodes", "4", "--policy", "elastic")
                ratio = self.policies(*common, "--prior-error", "3", "--draws", "10")["elastic"]["over_draws"]["ratio_to_bound"]
                self.assertLessEqual(ratio["p50"], 1.10)
                self.assertLessEqual(ratio["max"], 1.25)
                ratio = self.policies(*common, "--no-priors", "--draws", "5")["elastic"]["over_draws"]["ratio_to_bound"]
                self.assertLessEqual(ratio["max"], 1.25)

    def test_failing_trials_and_a_lost_node_lose_nothing(self):
        found = self.policies("--nodes", "4", "--fail-rate", "0.05", "--lose-node-at", "0.5", "--draws", "5", "--policy", "elastic")
        ours = found["elastic"]
        self.assertEqual(ours["documents_scored"], 290943)
        self.assertGreater(ours["trials_failed"], 0)
        self.assertLessEqual(ours["over_draws"]["ratio_to_left_bound"]["max"], 1.15)

    def test_each_decoupling_that_is_taken_away_costs(self):
        found = self.policies("--nodes", "4", "--policy", "elastic", "--ablate")
        whole = found.pop("elastic")["makespan_s"]
        self.assertEqual(len(found), 5)
        for name, policy in found.items():
            self.assertGreaterEqual(policy["makespan_s"], whole * 0.999, name)

    def test_the_table_names_what_it_shows(self):
        text = self.simulate("--nodes", "4", "--draws", "2").stdout
        for word in ("4 nodes of 8 devices", "290,943 documents", "bound", "staging", "published", "GPU idle %", "prepare", "over draws",
                     "worst"):
            self.assertIn(word, text)

    def test_help_and_completion_know_it(self):
        self.assertIn("--lose-node-at", self.simulate("--help").stdout)
        self.assertIn("simulate", self.evald("completion", "bash").stdout)


if __name__ == "__main__":
    unittest.main()
