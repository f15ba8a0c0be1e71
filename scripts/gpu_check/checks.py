"""Parts that can only be right or wrong."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from outcome import Failure, Outcome, Skip

SANITIZER_STATUS = 77
# compute-sanitizer's words, with status 255, if a program ends well without a call of the driver.
NOTHING_TO_CHECK = "terminated before first instrumented API call"
# Files of tests/unit/cuda that belong to `models`; all others are `kernels`.
MODELS = ("models_test", "engine_test")
SUITE_SECONDS = 280
TESTS_OF_A_STEP = 4
AT_ONCE = 16  # processes
SCRATCH_GIB = 34


def start(check):
    """Computes nothing. Finds programs that do not start, within seconds."""
    figures = {"version": check.layout.version, "libraries": check.libraries, "python": machine_of_python()}
    if not check.emulated:
        query = "name,uuid,driver_version,memory.total,pcie.link.gen.max,pcie.link.width.max"
        if shutil.which("nvidia-smi"):
            figures["gpus"] = check.try_program("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader").output.splitlines()
        if not any(name.startswith("libcublasLt") for name in check.libraries):
            raise Failure("libcublasLt was found neither in CUDA's folders nor in Python's packages", figures)
    figures["devices"] = check.devices()
    check.program(check.layout.program("evald-gpu-bench"), "--list")
    doctor = check.try_program(check.layout.binaries / "evald", "doctor")
    figures["doctor"] = doctor.output.splitlines()
    free = check.free_gib()
    figures["scratch"] = {"folder": str(check.scratch), "free_gib": free}
    figures["processors"] = os.cpu_count()
    figures["memory"] = Path("/proc/meminfo").read_text().splitlines()[:3]
    if free < SCRATCH_GIB and not check.emulated:
        raise Failure(f"{check.scratch} has {free:.0f} GiB free, {SCRATCH_GIB} are needed for the checkpoint and a run's copy of it: "
                      f"mount -o remount,size={2 * SCRATCH_GIB}G {check.scratch.parent}, or --scratch FOLDER", figures)
    return Outcome("passed", "", figures)


def machine_of_python():
    versions = {}
    for name in ("torch", "transformers", "safetensors"):
        try:
            versions[name] = __import__("importlib.metadata", fromlist=["version"]).version(name)
        except Exception:  # not installed
            versions[name] = None
    return versions


def programs(check):
    """evald-cuda-check, or on the emulated device the unit tests."""
    if not check.emulated:
        return [check.layout.binaries / "evald-cuda-check"]
    found = sorted((check.layout.binaries / "tests").glob("cuda_*_test"))
    if not found:
        raise Failure(f"{check.layout.binaries / 'tests'} holds no cuda_*_test")
    return found


def suites_of(check, program):
    """Suites of tests: (name, name of the source file without .cc, number of tests)."""
    listing = check.scratch / "tests.json"
    check.program(program, "--gtest_list_tests", f"--gtest_output=json:{listing}")
    listed = json.loads(listing.read_text())
    return [(suite["name"], Path(suite["testsuite"][0]["file"]).stem, len(suite["testsuite"]))
            for suite in listed["testsuites"]]


def steps_of(check, chosen):
    """Steps of the suites of the chosen source files: name -> (program, suite, shard, shards). A long suite is several
    steps, each with a part of its tests."""
    steps = {}
    for program in programs(check):
        for suite, file, tests in suites_of(check, program):
            if not chosen(file):
                continue
            shards = -(-tests // TESTS_OF_A_STEP)
            for shard in range(shards):
                name = f"{file}/{suite}" + (f" {shard + 1}/{shards}" if shards > 1 else "")
                steps[name] = (program, suite, shard, shards)
    return steps


def outcome_of(done, sanitized):
    """A suite's outcome. Tests that make no call of the driver leave the sanitizer nothing to check: no failure."""
    failed = [line.split("] ", 1)[1].split(" (")[0] for line in done.output.splitlines() if line.startswith("[  FAILED  ]")]
    outcome = {"status": done.status, "seconds": round(done.seconds, 2), "failed": failed[:20]}
    if sanitized and not failed and "[  PASSED  ]" in done.output and NOTHING_TO_CHECK in done.output:
        outcome.update(status=0, note="makes no call of the driver")
    return outcome


def run_suites(check, chosen, before=()):
    """Runs each suite of the chosen source files in processes of its own. If an error of the device ends one process,
    the other suites still run. Several processes use the GPU at once: these parts measure nothing."""
    steps = steps_of(check, chosen)

    def work(step, seconds):
        program, suite, shard, shards = steps[step]
        done = check.try_program(*before, program, f"--gtest_filter={suite}.*", "--gtest_brief=1", seconds=seconds,
                                 env={"GTEST_SHARD_INDEX": str(shard), "GTEST_TOTAL_SHARDS": str(shards)})
        return outcome_of(done, bool(before))

    at_once = 1 if check.emulated else min(AT_ONCE, os.cpu_count())
    outcomes = check.steps(list(steps), work, SUITE_SECONDS, at_once)
    bad = [step for step, outcome in outcomes.items() if outcome is None or outcome["status"] != 0]
    if not steps:
        raise Failure("there are no such tests")
    if bad:
        raise Failure(f"{len(bad)} of {len(outcomes)} suites: {', '.join(bad)[:300]}", {"suites": outcomes})
    return Outcome("passed", f"{len(outcomes)} suites", {"suites": outcomes})


def kernels(check):
    return run_suites(check, lambda name: name not in MODELS)


def models(check):
    return run_suites(check, lambda name: name in MODELS)


def sanitizer(check, tool, *options):
    if check.emulated:
        raise Skip("the emulated device has no sanitizer")
    path = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.path.exists(path):
        raise Skip("compute-sanitizer is not installed")
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    if not version:
        raise Skip("compute-sanitizer does not start")
    return run_suites(check, lambda name: name not in MODELS,
                      (path, "--tool", tool, "--error-exitcode", str(SANITIZER_STATUS), *options))


def memcheck(check):
    return sanitizer(check, "memcheck", "--leak-check", "no")


def racecheck(check):
    return sanitizer(check, "racecheck")
