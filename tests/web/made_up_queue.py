"""A queue of jobs for a launcher's section `command`: three of its programs, and what a service says of it.

Of the jobs the first runs an agent here, as node n2. The next two run on node n7 and fail. All further jobs wait.

usage: made_up_queue.py FOLDER start | stop | list
"""
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time


def config(folder):
    """The keys of serve.yaml for a service whose launcher `queue` uses the queue in the folder."""
    program = lambda word: [sys.executable, "-B", __file__, str(folder), word]
    launcher = {"name": "queue", "nodes": {"max": 3}, "startup": "1s", "worth": "1s", "poll": "1s", "retry": "1s",
                "agent": ["--devices", "cpu:0", "--metric-processes", "1"], **{word: program(word) for word in ("start", "stop", "list")}}
    return {"agent": {"host": "127.0.0.1", "listen": "127.0.0.1:0"}, "launchers": [{"command": launcher}]}


def jobs_of(folder):
    path = folder / "queue.json"
    return json.loads(path.read_text()) if path.exists() else []


def keep(folder, jobs):
    path = folder / "queue.new"
    path.write_text(json.dumps(jobs))
    path.rename(folder / "queue.json")


def end(folder, job=None):
    """Ends a job, or all."""
    jobs = jobs_of(folder)
    for one in jobs:
        if job not in (None, one["job"], one["name"]):
            continue
        one["state"] = "over"
        try:
            if "pid" in one:
                os.killpg(one["pid"], signal.SIGTERM)
        except ProcessLookupError:
            pass
    keep(folder, jobs)


def start(folder):
    jobs = jobs_of(folder)
    job = {"job": str(100 + len(jobs)), "name": os.environ["EVALD_JOB_NAME"], "state": "running"}
    if not jobs:
        command = [os.environ["EVALD"], "agent", *shlex.split(os.environ["EVALD_AGENT_ARGUMENTS"])]
        with open(folder / "agent.log", "ab") as log:
            agent = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        job |= {"node": "n2", "pid": agent.pid, "starts_at": int(time.time()), "ends_at": int(time.time()) + 7200}
    elif len(jobs) < 3:
        job |= {"node": "n7"}
    else:
        job |= {"state": "pending", "reason": "Resources", "starts_at": int(time.time()) + 1800}
    keep(folder, [*jobs, job])
    print(job["job"])


def show(folder):
    jobs = jobs_of(folder)
    for job in jobs:
        print(json.dumps(job))
        if job.get("node") == "n7":
            job["state"] = "over"  # from the second time on
    keep(folder, jobs)


if __name__ == "__main__":
    FOLDER = pathlib.Path(sys.argv[1])
    if sys.argv[2] == "stop":
        end(FOLDER, os.environ["EVALD_JOB"] or os.environ["EVALD_JOB_NAME"])
    else:
        {"start": start, "list": show}[sys.argv[2]](FOLDER)
