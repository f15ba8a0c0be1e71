"""A real Slurm on this machine for tests: munged, slurmctld and several slurmd, all in a folder of the test's.

The nodes are n1, n2, ... and have devices that are only files. The tests run as root: a job runs as its user, and only
root's slurmd may start jobs."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from process_keeper import ProcessKeeper

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo", "scontrol")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FIELDS = {"id": "%i", "name": "%j", "state": "%T", "node": "%N", "limit": "%l", "reason": "%r", "command": "%o"}

# Without an accounting database. Jobs need no cgroups, and a node may promise more processors than the machine has.
CONF = """ClusterName=test
SlurmctldHost={host}
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=10
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
CommunicationParameters=NoInAddrAny
ReturnToService=2
SchedulerParameters=sched_interval=2,bf_interval=2
MessageTimeout=5
KillWait=5
MinJobAge=60
MpiDefault=none
GresTypes=gpu
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
"""


class SlurmCluster:
    """Starts on construction; close() ends all processes. They also end if the test is killed."""

    @staticmethod
    def missing():
        """Why there can be no cluster here; "" if there can be one."""
        if os.geteuid() != 0:
            return "Slurm needs root here"
        absent = [program for program in PROGRAMS if not shutil.which(program, path=PATH)]
        return f"no {', '.join(absent)}: scripts/install-packages --with-slurm installs them" if absent else ""

    def __init__(self, folder, nodes=3, gpus=2, cpus=4, settings=""):
        """`folder` is made, and stays after the end. `settings` are further lines of slurm.conf."""
        self.folder = pathlib.Path(folder).resolve()
        self.nodes = [f"n{i + 1}" for i in range(nodes)]
        self.gpus = gpus
        self.environment = {name: os.environ[name] for name in ("HOME", "LANG", "TZ", "USER") if name in os.environ}
        self.environment |= {"PATH": PATH, "SLURM_CONF": str(self.folder / "slurm.conf")}
        self._pids = {}
        self._make_files(cpus, settings)
        self._keeper = ProcessKeeper()
        try:
            self._start("munged", ["munged", "--foreground", "--force", *(
                f"--{name}={self.folder / file}" for name, file in
                {"key-file": "munge.key", "socket": "munge.sock", "pid-file": "munged.pid", "log-file": "munged.log",
                 "seed-file": "munge.seed"}.items())])
            self.wait_for("munged's socket", (self.folder / "munge.sock").exists, 20)
            self.start_slurmctld()
            for node in self.nodes:
                self.start_slurmd(node)
            self.wait_for_nodes()
        except BaseException:
            self.close()
            raise

    def close(self):
        """Kills the daemons and all that jobs have started."""
        self._keeper.close()

    # --- daemons

    def start_slurmctld(self, wait=True):
        self._start("slurmctld", ["slurmctld", "-D", "-f", self.environment["SLURM_CONF"]])
        if wait:
            self.wait_for("slurmctld's answer", lambda: self._program("scontrol", "ping").returncode == 0, 30)

    def kill_slurmctld(self, number=signal.SIGKILL):
        self._kill("slurmctld", number)

    def signal_slurmctld(self, number):
        """For SIGSTOP and SIGCONT."""
        os.kill(self._pids["slurmctld"], number)

    def start_slurmd(self, node):
        self._start(node, ["slurmd", "-D", "-f", self.environment["SLURM_CONF"], "-N", node])

    def kill_slurmd(self, node, number=signal.SIGKILL):
        """The node's jobs go on, as they do on a real node."""
        self._kill(node, number)

    # --- Slurm's programs

    def run(self, program, *arguments, **options):
        """Standard output of a program of Slurm's. Raises AssertionError if it fails."""
        result = self._program(program, *arguments, **options)
        if result.returncode != 0:
            raise AssertionError(f"{program} {arguments}: {result.stderr}")
        return result.stdout

    def sbatch(self, script, *arguments, name="test"):
        """Submits a shell script. Returns the job's id."""
        log = self.folder / f"job-{name}.log"
        return self.run("sbatch", "--parsable", f"--job-name={name}", f"--output={log}", "--chdir=/", *arguments,
                        input="#!/bin/sh\n" + script + "\n").strip()

    def scancel(self, *arguments):
        self.run("scancel", *arguments)

    def jobs(self):
        """Jobs that Slurm knows, ended ones too (for MinJobAge, 60 s), by id: dicts with the keys of FIELDS."""
        output = self.run("squeue", "--noheader", "--states=all", "--format=" + "\t".join(FIELDS.values()))
        rows = [dict(zip(FIELDS, line.split("\t"))) for line in output.splitlines()]
        return {row["id"]: row for row in rows}

    def job_named(self, name):
        """The newest job of this name; None if there is none."""
        found = [job for job in self.jobs().values() if job["name"] == name]
        return max(found, key=lambda job: int(job["id"])) if found else None

    def details(self, job):
        """`scontrol show job` as a dict, "TimeLimit" and so on."""
        words = self.run("scontrol", "--oneliner", "show", "job", job).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def node_states(self):
        """By name: "idle", "down*" and so on."""
        output = self.run("sinfo", "--noheader", "--Node", "--format=%N %T")
        return dict(line.split() for line in output.splitlines())

    # --- waiting

    def wait_for(self, what, condition, seconds=60):
        """Waits until `condition` is true. Returns its value. The failure shows the ends of the daemons' logs."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f"waited {seconds} s for {what}\n{self.logs()}")

    def wait_for_nodes(self, seconds=60):
        """Waits until no node is down or unknown."""
        usable = ("idle", "mixed", "allocated", "completing")
        self.wait_for("the nodes", lambda: all(s in usable for s in self.node_states().values()), seconds)

    def wait_for_job(self, job, *states, seconds=60):
        """Waits until a job (its id) has one of these states, "RUNNING". Returns it as jobs() does."""
        def found():
            known = self.jobs().get(job)
            return known if known and known["state"] in states else None
        return self.wait_for(f"job {job} to be {' or '.join(states)}", found, seconds)

    def logs(self):
        text = ""
        for log in sorted(self.folder.glob("*.log")):
            text += f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-15:]) + "\n"
        return text

    # --- parts

    def _make_files(self, cpus, settings):
        devices = self.folder / "dev"
        devices.mkdir(parents=True)
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))
        for i in range(self.gpus):
            (devices / f"gpu{i}").symlink_to("/dev/null")  # Slurm wants a character device
        ports = free_ports(1 + len(self.nodes))
        host = socket.gethostname().split(".")[0]
        conf = CONF.format(folder=self.folder, host=host, port=ports.pop()) + settings
        gres = f" Gres=gpu:{self.gpus}" if self.gpus else ""
        for node, port in zip(self.nodes, ports):
            conf += f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=4000{gres}\n"
        conf += "PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
        (self.folder / "slurm.conf").write_text(conf)
        files = f"{devices}/gpu[0-{self.gpus - 1}]"
        lines = [f"NodeName={node} Name=gpu File={files}\n" for node in self.nodes] if self.gpus else []
        (self.folder / "gres.conf").write_text("".join(lines))

    def _program(self, program, *arguments, **options):
        options = {"timeout": 60, **options}
        return subprocess.run([program, *arguments], env=self.environment, capture_output=True, text=True, **options)

    def _start(self, name, argv):
        assert name not in self._pids, f"{name} runs already"
        self._pids[name] = self._keeper.start(argv, self.folder / f"{name}.out", self.environment)

    def _kill(self, name, number):
        pid = self._pids.pop(name)
        os.kill(pid, number)
        self.wait_for(f"the end of {name}", lambda: not pathlib.Path(f"/proc/{pid}").exists(), 30)


def free_ports(number):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports
