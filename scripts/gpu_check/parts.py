"""The parts, the most important first, and their common functions."""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import checks
import measures
import scores
from layout import link_libraries
from outcome import Outcome, Failure, Skip
from processes import Stopped, end_descendants, run


# Folders in which containers have the driver's libraries and that nothing else names.
DRIVER_FOLDERS = ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib")


class Part:
    def __init__(self, name, title, function, most_s, least_s=30, resumes=False, needed=False):
        self.name = name
        self.title = title
        self.function = function
        self.most_s = most_s    # seconds after which the part is stopped
        self.least_s = least_s  # the part is not begun with fewer seconds left
        self.resumes = resumes  # the part has steps, and goes on at the next one
        self.needed = needed    # if the part fails, no other is begun, and the part is tried again


class Check:
    """The argument of a part's function. Runs programs within the part's time."""

    def __init__(self, layout, results, scratch, arguments):
        self.layout = layout
        self.results = results
        self.scratch = scratch
        self.gpu = arguments.gpu
        self.emulated = arguments.emulated
        self.graphs = arguments.graphs
        self.part = None
        self._deadline = 0
        self._log = None
        self._libraries = None

    def run(self, part, seconds):
        """Returns (status, message, figures). Raises Stopped if the time is up and the part cannot go on later."""
        self.part, self._deadline = part.name, time.monotonic() + seconds
        with open(self.results.log_path(part.name), "a", encoding="utf-8") as self._log:
            try:
                outcome = part.function(self)
            except Skip as skip:
                outcome = Outcome("skipped", str(skip))
            except Failure as failure:
                outcome = Outcome("failed", str(failure), failure.figures)
            except Stopped as stopped:
                if not part.resumes:
                    raise
                outcome = Outcome("stopped", f"{stopped}; it goes on from there")
        return outcome.status, outcome.message, outcome.figures

    def left(self):
        return self._deadline - time.monotonic()

    def steps(self, names, work, most_s, at_once=1):
        """Calls work(name, seconds), which returns a JSON value, for each step that is not done, `at_once` of them at a
        time. Returns the values of all steps. A step that takes more than `most_s` has failed, and its value is None.
        Raises Stopped if the part's time ends first; the steps that are done by then stay done."""
        def one(name):
            if self.left() <= 0:
                return Stopped("the time is up")
            limit = min(most_s, self.left())
            try:
                outcome = work(name, limit)
            except Stopped as stopped:
                if limit < most_s:
                    return stopped
                outcome = None
            self.results.add_step(self.part, name, outcome)
            return None

        todo = [name for name in names if name not in self.results.steps(self.part)]
        executor = ThreadPoolExecutor(max_workers=at_once)
        try:
            stopped = [stop for stop in executor.map(one, todo) if stop]
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            end_descendants()
            raise
        executor.shutdown()
        if stopped:
            raise stopped[0]
        return {name: self.results.steps(self.part)[name] for name in names}

    @property
    def libraries(self):
        if self._libraries is None:
            self._libraries = link_libraries(self.scratch / "lib")
        return self._libraries

    def environment(self):
        _ = self.libraries
        folders = [str(self.scratch / "lib"), os.environ.get("LD_LIBRARY_PATH", ""), *DRIVER_FOLDERS]
        variables = dict(os.environ, LD_LIBRARY_PATH=":".join(folder for folder in folders if folder))
        if self.gpu:
            variables["CUDA_VISIBLE_DEVICES"] = self.gpu
        worker = "evald-worker-cuda-emulated" if self.emulated else "evald-worker-cuda"
        variables["EVALD_WORKER_CUDA"] = str(self.layout.binaries / worker)
        variables["XDG_CACHE_HOME"] = str(self.scratch / "cache")
        variables["XDG_STATE_HOME"] = str(self.scratch / "state")
        variables["TMPDIR"] = str(self.scratch)
        return variables

    def try_program(self, *command, seconds=None, cwd=None, env=None):
        """Runs a program of evald. Returns its status and output."""
        limit = self.left() if seconds is None else min(seconds, self.left())
        return run(command, limit, self._log, cwd=cwd or self.layout.root, env=dict(self.environment(), **(env or {})))

    def program(self, *command, **options):
        """The same. The program must succeed."""
        done = self.try_program(*command, **options)
        if done.status != 0:
            raise Failure(f"{os.path.basename(str(command[0]))} ended with status {done.status}: "
                          f"{last_line(self.results.log_path(self.part))}")
        return done

    def python(self, script, *arguments, **options):
        """Runs a script of bench/gpu with this Python. Returns the JSON that it printed last."""
        limit = self.left()
        done = run([sys.executable, self.layout.benches / script, *arguments], limit, self._log, **options)
        if done.status != 0:
            raise Failure(f"{script} ended with status {done.status}: "
                          f"{last_line(self.results.log_path(self.part))}")
        lines = [line for line in done.output.splitlines() if line.startswith("{")]
        return json.loads(lines[-1]) if lines else {}

    def bench(self, workload, *arguments):
        """evald-gpu-bench's report."""
        command = [self.layout.program("evald-gpu-bench"), workload, "--json", "--data-dir", self.layout.data,
                   *arguments]
        if self.emulated:
            command.append("--quick")
        if not self.graphs:
            command.append("--no-graphs")
        return json.loads(self.program(*command).output.splitlines()[-1])

    def devices(self):
        """The list of GPUs by evald-worker-cuda: [{"id": "cuda:<uuid>", "name", ...}]."""
        worker = self.layout.program("evald-worker-cuda")
        listed = json.loads(self.program(worker, "--list-devices").output)
        if not listed["devices"]:
            raise Failure(f"evald-worker-cuda sees no GPU; {listed.get('driver') or 'there is no driver'}. "
                          "A driver that is older than the CUDA runtime which evald was built with does not serve it.")
        return listed["devices"]

    def free_gib(self):
        statvfs = os.statvfs(self.scratch)
        return statvfs.f_bavail * statvfs.f_frsize / 2**30

    def checkpoint(self):
        """The benchmarks' checkpoint in shared memory. The first call makes it."""
        folder = self.scratch / "llama3-8b"
        if folder.exists():
            return folder
        shape = "small" if self.emulated else "llama3-8b"
        needed = 1 if self.emulated else 17
        if self.free_gib() < needed:
            raise Failure(f"{self.scratch} has {self.free_gib():.0f} GiB free, {needed} are needed "
                          "(--scratch names another folder)")
        if not (self.layout.tokenizer / "tokenizer.json").exists():
            self.program(self.layout.binaries / "evald-train-tokenizer", self.layout.tokenizer, self.layout.data)
        self.python("make_checkpoint.py", folder, "--tokenizer", self.layout.tokenizer, "--shape", shape)
        return folder


def last_line(log):
    lines = [line for line in log.read_text(errors="replace").splitlines() if line and not line.startswith("[status")]
    return lines[-1][:400] if lines else ""


PARTS = [
    Part("start", "driver, libraries and programs", checks.start, 120, 20, needed=True),
    Part("kernels", "each kernel against a double-precision reference", checks.kernels, 590, 60, resumes=True),
    Part("models", "whole models against the golden files", checks.models, 590, 60, resumes=True),
    Part("pull", "GB/s of weights to the GPU, by copy threads", measures.pull, 300, 90),
    Part("swap", "staged to first token", measures.swap, 240, 90),
    Part("gpu-generate", "1,000 requests of a chat trace", measures.generate, 500, 150),
    Part("gpu-choice", "5-shot MMLU, 57 subjects", measures.choice, 590, 200),
    Part("gpu-idle", "share of time in which the GPU computes", measures.idle, 590, 300),
    Part("scores", "the quickstart's and 2,000 MMLU questions' scores, GPU against CPU", scores.compare, 590, 120),
    Part("memcheck", "compute-sanitizer memcheck on the kernels", checks.memcheck, 590, 90, resumes=True),
    Part("racecheck", "compute-sanitizer racecheck on the kernels", checks.racecheck, 590, 90, resumes=True),
    Part("products", "what batch invariance costs, by product", measures.products, 400, 90),
    Part("attention", "one layer's attention in four batches", measures.attention, 200, 30),
    Part("fast", "--fast against deterministic", measures.fast, 590, 250),
    Part("peers", "safetensors and transformers on the same GPU", measures.peers, 590, 200),
]
