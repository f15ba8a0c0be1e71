#!/usr/bin/env python3
"""How long a checkpoint takes to reach N hosts over links of one speed: from the service alone (star), and passed on from
host to host (chain), beside the time of one transfer.

    bench/passing_on.py --binaries build/release --hosts 1,2,4,8

Linux, root. Each host is a network namespace of this machine, with its own link to a switch: tbf limits what the host
sends and what it gets. A real `evald serve` and real agents run in them; agents do not see the checkpoint's own folder.
The time is that from the first fetch's begin to the last one's end, as the agents' logs say. All hosts share this
machine's processors, so choose a rate that leaves them time.
"""
import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "integration"))
TOKENS = {"admin": "the-token-of-an-admin", "worker": "the-token-of-a-worker"}
SERVICE = "10.77.0.1"
INSIDE = "EVALD_BENCH_INSIDE"


def sh(*command):
    subprocess.run(command, check=True)


class Network:
    """A switch in this namespace, and a namespace with a limited link for each host; number 1 is the service's."""

    def __init__(self, hosts, mbit):
        sh("ip", "link", "add", "switch", "type", "bridge")
        sh("ip", "address", "add", "10.77.0.254/24", "dev", "switch")
        sh("ip", "link", "set", "switch", "up")
        self.names = [f"host{i}" for i in range(1, hosts + 2)]
        limit = ["tbf", "rate", f"{mbit}mbit", "burst", "256k", "latency", "100ms"]
        for i, name in enumerate(self.names, 1):
            sh("ip", "netns", "add", name)
            sh("ip", "link", "add", f"port{i}", "type", "veth", "peer", "name", "uplink", "netns", name)
            sh("ip", "link", "set", f"port{i}", "master", "switch", "up")
            for command in (["ip", "link", "set", "lo", "up"], ["ip", "address", "add", f"10.77.0.{i}/24", "dev", "uplink"],
                            ["ip", "link", "set", "uplink", "up"], ["tc", "qdisc", "add", "dev", "uplink", "root", *limit]):
                sh("ip", "netns", "exec", name, *command)
            sh("tc", "qdisc", "add", "dev", f"port{i}", "root", *limit)

    def close(self):
        for i, name in enumerate(self.names, 1):
            sh("ip", "link", "delete", f"port{i}")
            sh("ip", "netns", "delete", name)
        sh("ip", "link", "delete", "switch")


class Cluster:
    def __init__(self, folder, binaries, checkpoint, hosts, flags):
        self.folder, self.binaries, self.checkpoint, self.hosts, self.flags = folder, binaries, checkpoint, hosts, flags
        self.processes = []

    def start(self, host, log, *command, hide=()):
        script = "".join(f"mount -t tmpfs none '{path}' && " for path in hide) + 'exec "$@"'
        with open(self.folder / log, "wb") as file:
            self.processes.append(subprocess.Popen(["ip", "netns", "exec", f"host{host}", "unshare", "-m", "sh", "-c", script, "sh",
                                                    *map(str, command)], stdout=file, stderr=file))

    def call(self, method, path, body=None):
        request = urllib.request.Request(f"https://{SERVICE}:8642{path}", None if body is None else json.dumps(body).encode(),
                                         {"Content-Type": "application/json", "Authorization": f"Bearer {TOKENS['admin']}"}, method=method)
        return json.loads(urllib.request.urlopen(request, timeout=60, context=self.trust).read())

    def wait(self, what, ready, seconds=120):
        until = time.time() + seconds
        while time.time() < until:
            with contextlib.suppress(OSError):
                if found := ready():
                    return found
            time.sleep(0.1)
        raise SystemExit(f"{what} did not come; see {self.folder}")

    def serve(self):
        key, ca = self.folder / "key.pem", self.folder / "ca.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={SERVICE}", "-addext",
                        f"subjectAltName=IP:{SERVICE}", "-keyout", key, "-out", ca], check=True, capture_output=True)
        self.trust = ssl.create_default_context(cafile=str(ca))
        tokens = self.folder / "tokens"
        tokens.write_text("".join(f"{r} {r} sha256:{hashlib.sha256(t.encode()).hexdigest()}\n" for r, t in TOKENS.items()))
        tokens.chmod(0o600)
        (self.folder / "worker.token").write_text(TOKENS["worker"])
        (self.folder / "staging").mkdir()
        (self.folder / "serve.yaml").write_text(json.dumps({
            "listen": f"{SERVICE}:8642", "tls": {"certificate": "ca.pem", "key": "key.pem"}, "tokens": "tokens", "state_dir": "state",
            "cache_dir": "cache", "output_dir": "runs", "workers": {"count": 1, "threads": 1}, "metrics": {"processes": 1},
            "staging": {"root": str(self.folder / "staging")}, "agent": {"linger_s": 1}}))
        self.start(1, "service.log", self.binaries / "evald", "serve", self.folder / "serve.yaml")
        self.wait("the service", lambda: self.call("GET", "/healthz"))

    def join(self):
        for i in range(1, self.hosts + 1):
            self.start(i + 1, f"agent{i}.log", self.binaries / "evald", "agent", "--server", f"https://{SERVICE}:8642", "--name", f"n{i}",
                       "--token-file", self.folder / "worker.token", "--ca", self.folder / "ca.pem", "--root", self.folder / f"root{i}",
                       "--staging-root", self.folder / f"staged{i}", "--devices", "cpu:0", "--threads", 1, "--metric-processes", 1,
                       "--log-level", "info", *self.flags, hide=[self.checkpoint.parent, self.folder / "staging"])
        there = lambda: sum(h["state"] == "connected" for h in self.call("GET", "/v1/hosts")["hosts"]) == self.hosts + 1
        self.wait("an agent", there)

    def measure(self):
        """Submits a run that is worth a copy to each host. Seconds until all have it, and the bytes of a copy."""
        task = self.folder / "tasks"
        task.mkdir()
        (task / "sums.jsonl").write_text("".join(json.dumps({"q": f"{i} + 1 =", "a": str(i + 1)}) + "\n" for i in range(4000)))
        (task / "sums.yaml").write_text(
            "task: sums\ndataset_path: json\ndataset_kwargs: {data_files: {test: sums.jsonl}}\ntest_split: test\noutput_type: "
            'generate_until\ndoc_to_text: "{{q}}"\ndoc_to_target: "{{a}}"\ngeneration_kwargs: {until: ["\\n"], max_gen_toks: 8}\n'
            "metric_list: [{metric: exact_match}]\n")
        config = {"checkpoint": str(self.checkpoint), "tasks": ["sums"], "task_dirs": [str(task)],
                  "engine": {"name": "emulated", "delay_ms": 300, "concurrency": 4}}
        run = self.call("POST", "/v1/runs", {"config": config, "base": str(self.folder)})["id"]
        self.wait("the run", lambda: self.call("GET", f"/v1/runs/{run}")["state"] != "queued")
        self.call("POST", f"/v1/runs/{run}/pause")
        waits = lambda w: w["pid"] and w["state"] in ("idle", "working")
        workers = lambda: sum(waits(w) for w in self.call("GET", "/v1/workers")["workers"])
        self.wait("the workers", lambda: workers() >= self.hosts + 1)
        self.call("POST", f"/v1/runs/{run}/resume")
        begins, ends, bytes_of = [], [], 0
        for i in range(1, self.hosts + 1):
            line = self.wait(f"the checkpoint at host {i}", lambda: re.search(
                r"(\d+):(\d+):([\d.]+) evald info: checkpoint \w+ fetched: (\d+) bytes in ([\d.]+) s",
                (self.folder / f"agent{i}.log").read_text()), 600)
            ends.append(int(line[1]) * 3600 + int(line[2]) * 60 + float(line[3]))
            begins.append(ends[-1] - float(line[5]))
            bytes_of = int(line[4])
        return max(ends) - min(begins), bytes_of

    def close(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


def measure(arguments, checkpoint, hosts, flags):
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="passing-on-") as name:
        network = Network(hosts, arguments.mbit)
        cluster = Cluster(pathlib.Path(name), arguments.binaries.resolve(), checkpoint, hosts, flags)
        try:
            cluster.serve()
            cluster.join()
            return cluster.measure()
        finally:
            cluster.close()
            time.sleep(3)  # the service's own agent ends, and processes of agents end with them
            network.close()
            for path in pathlib.Path(name).rglob("*"):  # staged folders are read-only
                if path.is_dir():
                    path.chmod(0o700)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--hosts", default="1,2,4,8")
    parser.add_argument("--mbit", type=int, default=160, help="of each link, each way")
    parser.add_argument("--mib", type=int, default=160, help="the checkpoint's size")
    parser.add_argument("--folder", default="/dev/shm", help="for staged copies: (hosts + 2) * MIB")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("root is needed, for network namespaces")
    if INSIDE not in os.environ:  # interfaces of this machine stay as they are
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "-n", "-m", "--propagation", "private", sys.executable, *sys.argv])
    sh("mount", "-t", "tmpfs", "none", "/run")
    sh("ip", "link", "set", "lo", "up")
    from evald_case import QUICKSTART
    from test_peers import write_weights
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="checkpoint-") as name:
        checkpoint = pathlib.Path(name) / "step"
        shutil.copytree(QUICKSTART / "checkpoints" / "step-01200", checkpoint)
        write_weights(checkpoint, 4, arguments.mib // 4)
        for hosts in map(int, arguments.hosts.split(",")):
            star, count = measure(arguments, checkpoint, hosts, ["--peer-listen", "off"])
            chain, _ = measure(arguments, checkpoint, hosts, [])
            one = count * 8 / arguments.mbit / 1e6
            if arguments.json:
                print(json.dumps({"hosts": hosts, "bytes": count, "mbit": arguments.mbit, "one_transfer_s": one, "star_s": star,
                                  "chain_s": chain}), flush=True)
            else:
                print(f"{hosts} hosts, {count} bytes over {arguments.mbit} Mbit/s: one transfer {one:.1f} s, star {star:.1f} s "
                      f"({star / one:.2f}), chain {chain:.1f} s ({chain / one:.2f})", flush=True)


if __name__ == "__main__":
    main()
