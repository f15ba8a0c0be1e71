"""Agents that fetch a checkpoint from each other: what each host gets, from whom, and what a faulty one spoils."""
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import struct
import subprocess
import time
import unittest
import urllib.error
import urllib.request

from evald_case import QUICKSTART
from test_agents import Agents, RawAgent, can_hide

NAMES = ("north", "east", "south", "west")
MIB = 1 << 20


def write_weights(folder, shards, mib):
    """Replaces the weights of a checkpoint by shards of `mib` MiB of random bytes each."""
    (folder / "model.safetensors").unlink()
    weight_map = {}
    for i in range(shards):
        name, tensor = f"model-{i + 1:05}-of-{shards:05}.safetensors", f"blob.{i}"
        header = json.dumps({tensor: {"dtype": "U8", "shape": [mib * MIB], "data_offsets": [0, mib * MIB]}}).encode()
        header += b" " * (-len(header) % 8)
        with open(folder / name, "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            for _ in range(mib):
                file.write(os.urandom(MIB))
        weight_map[tensor] = name
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


@unittest.skipUnless(can_hide(), "needs user namespaces: agents must not see the checkpoint's own folder")
class Peers(Agents):
    SHARDS, MIB = 3, 20

    def setUp(self):
        super().setUp()
        self.checkpoint = self.folder / "checkpoints" / "step"
        shutil.copytree(QUICKSTART / "checkpoints" / "step-01200", self.checkpoint)
        write_weights(self.checkpoint, self.SHARDS, self.MIB)
        self.make_suite(400, 20)

    def hidden(self):
        folders = [self.folder / d for d in ("state", "cache", "staging", "tasks", "runs-of-the-service", "checkpoints")]
        for folder in folders:
            folder.mkdir(exist_ok=True)
        return folders

    def peer(self, name, *more):
        self.start_agent(name, "--staging-keep", 1 << 33, *more, hide=self.hidden())

    def peers(self, *names, flags=()):
        for name in names:
            self.peer(name, *flags)
        for name in names:
            self.wait_host(name)

    def go(self, *names, **changes):
        """A run that is worth a copy of its checkpoint to each host."""
        return self.submit_to_all(*names, checkpoint=str(self.checkpoint), engine={**self.ENGINE, "delay_ms": 300}, **changes)

    def staged(self, name):
        return self.folder / "hosts" / name / "staging"

    def wait_fetched(self, *names):
        """The line of each agent's log that says from where how many bytes came: {name: {source: bytes}}."""
        found = {}
        for name in names:
            line = self.wait_for(f"the checkpoint at {name}", lambda: re.search(
                r"checkpoint ([0-9a-f]{32}) fetched: (\d+) bytes in ([\d.]+) s(.*)", self.log(name)), 90)
            self.fingerprint = line[1]
            found[name] = {source: int(count) for count, source in re.findall(r", (\d+) from (the service|\S+?)(?=,|$)", line[4])}
            self.assertEqual(sum(found[name].values()), int(line[2]), line[0])
        return found

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def assert_same(self, *names):
        for name in names:
            for file in self.checkpoint.iterdir():
                there = self.staged(name) / self.fingerprint / file.name
                self.assertEqual(there.read_bytes(), file.read_bytes(), there)


class Chain(Peers):
    def test_four_hosts_pass_a_checkpoint_on(self):
        self.serve(**self.make_access(), output_dir="runs-of-the-service")
        self.peers(*NAMES, flags=("--peer-rate", 16 * MIB))
        self.go(*NAMES)
        found = self.wait_fetched(*NAMES)
        self.assert_same(*NAMES)
        total = self.SHARDS * self.MIB * MIB
        given = sum(sources.get("the service", 0) for sources in found.values())
        self.assertLess(given, 2.5 * total, f"the service gave it about once: {found}")
        self.assertGreater(given, total, found)


if __name__ == "__main__":
    unittest.main()
