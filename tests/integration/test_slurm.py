"""SlurmLauncher (orchestrator/launch/slurm.h) and a real Slurm: each call, and what becomes of it."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from evald_case import BINARIES
from slurm_cluster import SlurmCluster

PREFIX = "evald-ab-"
JOIN = "http://127.0.0.1:1 a-secret-token"
# The program that stands for evald in a job: writes its arguments and environment, and says so if it is told to end.
AGENT = """#!/bin/sh
echo "$@" >"{folder}/$SLURM_JOB_NAME.arguments"
env -0 >"{folder}/$SLURM_JOB_NAME.part" && mv "{folder}/$SLURM_JOB_NAME.part" "{folder}/$SLURM_JOB_NAME.env"
trap 'echo told to end; exit 0' TERM
echo one; echo two; echo begun
while true; do sleep 0.1; done
"""


@unittest.skipIf(SlurmCluster.missing(), SlurmCluster.missing())
class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="evald-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.cluster = SlurmCluster(cls.folder / "slurm")
        cls.addClassCleanup(cls.cluster.close)
        cls.agent = cls.folder / "it's evald"
        cls.agent.write_text(AGENT.format(folder=cls.folder))
        cls.agent.chmod(0o755)

    def setUp(self):
        self.name = f"{PREFIX}{self._testMethodName}"
        self.addCleanup(self.end_jobs)

    def end_jobs(self):
        self.cluster.scancel("--user=root")
        self.cluster.wait_for("the end of all jobs", lambda: not self.cluster.run("squeue", "--noheader").strip())

    def call(self, call, name=None, environment=None, settings=None, **more):
        """An answer of evald-slurm-call."""
        basic = {"prefix": PREFIX, "gpus_per_node": 1, "time_s": 600, "evald": str(self.agent), "logs": str(self.folder)}
        order = {"call": call, "name": name or self.name, "settings": {**basic, **(settings or {})}, **more}
        done = subprocess.run([BINARIES / "evald-slurm-call"], input=json.dumps(order), capture_output=True,
                              text=True, timeout=120, env={**self.cluster.environment, **(environment or {})})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def submit(self, name=None, **more):
        """Submits a job that Slurm takes. Returns its id."""
        answer = self.call("submit", name, **{"join": JOIN, **more})
        self.assertEqual(answer["outcome"], "accepted", answer)
        self.assertEqual(answer["why"], "")
        return answer["job"]

    def listed(self, **more):
        """The listed jobs by id."""
        answer = self.call("list", **more)
        self.assertNotIn("error", answer)
        return {job["job"]: job for job in answer["jobs"]}

    def listed_as(self, job, state, seconds=60):
        def found():
            known = self.listed().get(job)
            return known if known and known["state"] == state else None
        return self.cluster.wait_for(f"job {job} to be listed as {state}", found, seconds)

    def begun(self, job):
        """Waits until the job's program runs. Returns the job as it is listed."""
        listed = self.listed_as(job, "running")
        self.cluster.wait_for("the job's program", (self.folder / f"{listed['name']}.env").exists)
        return listed

    # --- a job's life

    def test_a_job_is_listed_from_its_submission_to_after_its_end(self):
        before = time.time()
        job = self.submit(settings={"time_s": 61, "gpus_per_node": 2, "cpus_per_node": 3})
        self.assertIn(job, self.listed())
        running = self.begun(job)
        self.assertEqual((running["name"], running["word"], running["reason"]), (self.name, "RUNNING", ""))
        self.assertIn(running["node"], self.cluster.nodes)
        self.assertLess(abs(running["starts_at"] - before), 30)
        self.assertAlmostEqual(running["ends_at"] - running["starts_at"], 120, delta=2, msg="whole minutes, rounded up")
        details = self.cluster.details(job)
        self.assertEqual(details["Partition"], "gpu")
        self.assertIn(details["TresPerNode"], ("gres:gpu:2", "gres/gpu:2"))  # before and after Slurm 23
        self.assertEqual((details["NumNodes"], details["CPUs/Task"]), ("1", "3"))
        self.assertEqual(self.call("stop", job=job), {})
        over = self.listed_as(job, "over")
        self.assertEqual(over["node"], running["node"])
        self.assertIn(over["word"], ("COMPLETING", "CANCELLED", "COMPLETED"))

    def test_a_job_that_finds_no_free_device_waits_with_a_reason(self):
        first = [self.submit(f"{self.name}-{i}", settings={"gpus_per_node": 2}) for i in range(3)]
        nodes = {self.begun(job)["node"] for job in first}
        self.assertEqual(nodes, set(self.cluster.nodes))
        last = self.submit(settings={"gpus_per_node": 2})
        waiting = self.listed_as(last, "pending")
        self.assertEqual(waiting["node"], "")
        waiting = self.cluster.wait_for("a reason", lambda: (self.listed()[last]["reason"] and self.listed()[last]))
        self.assertIn(waiting["reason"], ("Resources", "Priority"))
        self.call("stop", job=first[0])
        self.listed_as(last, "running")

    def test_jobs_of_other_names_are_not_listed(self):
        mine = self.submit()
        other = self.cluster.sbatch("sleep 600", name="evald-cd-1|" + PREFIX)
        self.cluster.wait_for_job(other, "RUNNING")
        self.assertEqual([job["name"] for job in self.listed().values() if job["state"] != "over"], [self.name])
        self.assertIn(mine, self.listed())

    def test_excluded_nodes_get_no_job(self):
        job = self.submit(excluded=["n1", "n3"])
        self.assertEqual(self.begun(job)["node"], "n2")

    def test_a_job_that_waits_is_told_which_nodes_are_excluded(self):
        first = [self.submit(f"{self.name}-{i}", settings={"gpus_per_node": 2}) for i in range(3)]
        jobs = {self.begun(job)["node"]: job for job in first}
        last = self.submit(settings={"gpus_per_node": 2})
        for excluded in (["n1", "n2"], ["n1"]):
            self.assertEqual(self.call("exclude", job=last, excluded=excluded), {})
            shown = self.cluster.details(last)["ExcNodeList"]
            self.assertEqual(self.cluster.run("scontrol", "show", "hostnames", shown).split(), excluded)
        self.call("stop", job=jobs["n1"])
        self.listed_as(jobs["n1"], "over")
        time.sleep(3)  # a turn of Slurm's
        self.assertEqual(self.listed()[last]["state"], "pending")
        self.assertEqual(self.call("exclude", job=last, excluded=[]), {})
        self.assertEqual(self.begun(last)["node"], "n1")
        self.assertEqual(self.call("exclude", job=last, excluded=["n1"]), {}, "a job that runs stays where it is")
        self.assertEqual(self.listed()[last]["state"], "running")

    # --- what a job sees

    def test_a_job_sees_the_token_and_no_other_variable_of_the_service(self):
        secrets = {"HF_TOKEN": "hf_1", "OPENAI_API_KEY": "sk-1", "SBATCH_PARTITION": "nowhere", "SLURM_JOB_ID": "77",
                   "SBATCH_EXPORT": "NONE", "SBATCH_TIMELIMIT": "1"}
        job = self.submit(environment=secrets)
        self.begun(job)
        self.assertEqual((self.folder / f"{self.name}.arguments").read_text(), "agent\n")
        seen = dict(line.split("=", 1) for line in
                    (self.folder / f"{self.name}.env").read_text().split("\0") if line)
        self.assertEqual(seen["EVALD_JOIN"], JOIN)
        self.assertEqual(seen["SLURM_JOB_ID"], job)
        own = {"EVALD_JOIN", "PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "SLURM_CONF"}
        # The rest comes from Slurm and the shell.
        known = ("SLURM", "SBATCH_", "PWD", "TMPDIR", "ENVIRONMENT", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
                 "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "HOSTNAME", "OLDPWD", "SHLVL", "_")
        unknown = [name for name in seen if name not in own and not name.startswith(known)]
        self.assertEqual(unknown, [])
        self.assertNotIn("hf_1", seen.values())
        self.assertEqual(len(seen["CUDA_VISIBLE_DEVICES"].split(",")), 1)

    def watched_submission(self, name):
        """The answer to a submission, and all command lines that were there meanwhile."""
        seen = set()
        order = {"call": "submit", "name": name, "join": JOIN, "settings": {
            "prefix": PREFIX, "evald": str(self.agent), "logs": str(self.folder)}}
        with subprocess.Popen([BINARIES / "evald-slurm-call"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=self.cluster.environment) as process:
            process.stdin.write(json.dumps(order))
            process.stdin.close()
            while process.poll() is None:
                seen |= command_lines()
            return json.load(process.stdout), seen

    def test_the_token_is_on_no_command_line(self):
        seen, names = set(), []
        while not any("sbatch" in line for line in seen):  # it may come and go between two looks
            self.assertLess(len(names), 3, "sbatch is never seen")
            names.append(f"{self.name}-{len(names)}")
            answer, lines = self.watched_submission(names[-1])
            seen |= lines
        self.begun(answer["job"])
        seen |= command_lines()
        self.assertEqual([line for line in seen if "a-secret-token" in line], [])
        self.assertNotIn("a-secret-token", self.cluster.run("scontrol", "show", "job", answer["job"]))

    def test_a_job_is_told_before_its_time_ends(self):
        # Slurm may tell it up to a minute too early.
        job = self.submit(settings={"time_s": 60, "warning_s": 50})
        self.listed_as(job, "over", seconds=55)
        self.assertIn("told to end", self.call("log")["log"])
        self.assertEqual(self.cluster.details(job)["TimeLimit"], "00:01:00")

    def test_the_end_of_a_jobs_log_is_shown(self):
        self.assertIn("can the node write to", self.call("log", f"{self.name}-none")["log"])
        self.begun(self.submit())
        self.cluster.wait_for("the log", lambda: self.call("log")["log"] == "one / two / begun")

    # --- ends

    def test_jobs_are_stopped_by_name(self):
        jobs = [self.submit(), self.submit()]
        other = self.submit(f"{self.name}-other")
        for job in [*jobs, other]:
            self.begun(job)
        self.assertEqual(self.call("stop"), {})
        for job in jobs:
            self.listed_as(job, "over")
        self.assertEqual(self.listed()[other]["state"], "running")

    def test_no_such_job_is_no_error(self):
        self.assertEqual(self.call("stop", job="999999"), {})
        self.assertEqual(self.call("stop"), {})
        job = self.submit()
        for _ in range(2):
            self.assertEqual(self.call("stop", job=job), {})
        self.listed_as(job, "over")
        self.assertEqual(self.call("stop", job=job), {})

    def test_the_services_variables_change_no_question(self):
        odd = {"SQUEUE_PARTITION": "nowhere", "SQUEUE_ACCOUNT": "none", "SQUEUE_NAMES": "x", "SCANCEL_INTERACTIVE": "1",
               "SCANCEL_STATE": "PENDING", "SLURM_TIME_FORMAT": "relative"}
        job = self.submit(environment=odd)
        running = self.begun(job)
        listed = self.listed(environment=odd)
        self.assertEqual(listed[job]["starts_at"], running["starts_at"])
        self.assertEqual(self.call("stop", job=job, environment=odd), {})
        self.listed_as(job, "over")

    # --- faults

    def test_a_wrong_submission_is_refused_in_slurms_words(self):
        for settings, words in (({"partition": "nowhere"}, "invalid partition specified: nowhere"),
                                ({"more": ["--nodelist=n9"]}, "Invalid node name specified"),
                                ({"more": ["--no-such-option"]}, "unrecognized option '--no-such-option'"),
                                ({"gpus_per_node": 3}, "Requested node configuration is not available"),
                                ({"more": ["--gres=tpu:1"]}, "Invalid generic resource (gres) specification")):
            with self.subTest(words):
                answer = self.call("submit", join=JOIN, settings=settings)
                self.assertEqual((answer["outcome"], answer["job"]), ("refused", ""), answer)
                self.assertIn(words, answer["why"])
                self.assertNotIn("error:", answer["why"])

    def test_without_slurms_programs_a_submission_is_refused(self):
        nowhere = {"PATH": str(self.folder)}
        answer = self.call("submit", join=JOIN, environment=nowhere)
        self.assertEqual(answer["outcome"], "refused")
        self.assertIn("sbatch: starting: No such file", answer["why"])
        self.assertIn("squeue: starting: No such file", self.call("list", environment=nowhere)["error"])

    def test_without_slurmctld_nothing_is_taken_for_granted(self):
        job = self.submit()
        self.begun(job)
        self.cluster.kill_slurmctld(signal.SIGTERM)  # with its state saved
        try:
            answer = self.call("submit", f"{self.name}-new", join=JOIN)
            self.assertIn(answer["outcome"], ("refused", "unknown"))
            self.assertIn("contact slurm controller", answer["why"].lower())
            for call in ({"call": "list"}, {"call": "stop", "job": job}):
                error = self.call(**call)["error"]
                self.assertRegex(error, "^(squeue|scancel) fails: .*[Cc]ontact slurm controller")
                self.assertNotIn("\n", error)
        finally:
            self.cluster.start_slurmctld()
            self.cluster.wait_for_nodes()
        self.assertEqual(self.listed_as(job, "running")["name"], self.name)
        if answer["outcome"] == "refused":
            self.assertNotIn(f"{self.name}-new", [listed["name"] for listed in self.listed().values()])
        self.call("stop", job=job)
        self.listed_as(job, "over")

    def test_a_submission_without_an_answer_may_have_been_taken(self):
        self.cluster.signal_slurmctld(signal.SIGSTOP)
        try:
            answer = self.call("submit", join=JOIN)
            self.assertIn("fails: ", self.call("list")["error"])
        finally:
            self.cluster.signal_slurmctld(signal.SIGCONT)
        self.assertEqual(answer["outcome"], "unknown", answer)
        self.assertIn("timed out", answer["why"])
        self.cluster.wait_for("the job", lambda: self.cluster.job_named(self.name))
        self.call("stop")
        self.cluster.wait_for("its end", lambda: all(job["state"] == "over" for job in self.listed().values()))

    def test_a_job_of_a_dead_node_is_over_or_waits_again(self):
        job = self.submit()
        node = self.begun(job)["node"]
        self.cluster.kill_slurmd(node)
        try:
            self.cluster.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
            again = self.cluster.wait_for("the job to leave its node", lambda: next(
                (found for found in [self.listed().get(job)] if found and found["state"] != "running"), None))
            self.assertIn(again["state"], ("pending", "over"))
        finally:
            self.cluster.start_slurmd(node)
            self.cluster.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
            self.cluster.wait_for_nodes()


def command_lines():
    lines = set()
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.add(os.fsdecode(entry.read_bytes()))
        except OSError:
            pass
    return lines


if __name__ == "__main__":
    unittest.main()
