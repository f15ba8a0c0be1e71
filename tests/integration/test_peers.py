"""Agents that fetch a checkpoint from each other: what each host gets, from whom, and what a faulty one spoils."""
import json
import os
import re
import shutil
import signal
import ssl
import struct
import unittest
import urllib.error
import urllib.request

from evald_case import QUICKSTART
from test_agents import TOKENS, Agents, can_hide

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
        self.make_suite(6000, 20)  # there is work left whatever happens

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
            fetched = lambda: re.search(r"checkpoint ([0-9a-f]{32}) fetched: (\d+) bytes in ([\d.]+) s(.*)", self.log(name))
            try:
                line = self.wait_for(f"the checkpoint at {name}", fetched, 90)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{self.log_text()}") from None
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
        self.peers(*NAMES, flags=("--peer-rate", 32 * MIB))
        self.go(*NAMES)
        found = self.wait_fetched(*NAMES)
        self.assert_same(*NAMES)
        self.assertEqual([list(sources) for sources in found.values()].count(["the service"]), 1, found)
        self.assertEqual(len({source for sources in found.values() for source in sources}), 4, f"each from another one: {found}")

    def test_hosts_that_give_nothing(self):
        self.serve(output_dir="runs-of-the-service")
        self.peer("north", "--peer-listen", "off")
        self.peer("east", "--peer-listen", "127.0.0.1:0", "--peer-host", "127.0.0.9")  # connections to it are refused
        self.peers("south", "west")
        self.go(*NAMES)
        found = self.wait_fetched(*NAMES)
        self.assert_same(*NAMES)
        self.assertNotIn("127.0.0.9", str(found))

    def test_a_stranger_gets_nothing(self):
        self.serve(output_dir="runs-of-the-service")
        port = 20000 + os.getpid() % 20000
        self.peers("north", flags=("--peer-listen", f"127.0.0.1:{port}"))
        self.go("north")
        self.wait_fetched("north")
        authority = self.folder / "hosts" / "north" / "peer" / "authority.pem"
        context = ssl.create_default_context(cafile=str(authority))
        for token in (None, "0" * 64, TOKENS["worker"], TOKENS["admin"]):
            for path in (f"/v1/checkpoints/{self.fingerprint}/config.json", "/v1/checkpoints/x/..%2f..%2fworker.token", "/"):
                headers = {"Range": "bytes=0-1", **({"Authorization": f"Bearer {token}"} if token else {})}
                request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers=headers)
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(request, context=context, timeout=30)
                self.assertIn(refused.exception.code, (401, 404), path)
        for file in (self.folder / "hosts/north/peer").glob("*.key"):
            self.assertEqual(file.stat().st_mode & 0o077, 0, file)


class SlowSource(Peers):
    def test_a_source_that_is_far_slower_than_the_service(self):
        """It would take most of an hour. The service, which gives to nobody, has the rest there in a moment."""
        self.serve(output_dir="runs-of-the-service")
        self.peers("north", flags=("--peer-rate", 20000))
        self.go("north")
        self.wait_fetched("north")
        self.peer("south")
        found = self.wait_fetched("south")["south"]
        self.assert_same("south")
        self.assertGreater(found.get("the service", 0), 50 * MIB, found)
        self.assertRegex(self.log("south"), r"it comes from service from now on, no more from https://")
        self.assertNotIn("is left", self.log("south"), "slowness is no fault")


class Faults(Peers):
    """One host has the checkpoint and gives it slowly. Something happens while another host fetches it."""

    def setUp(self):
        super().setUp()
        self.serve(output_dir="runs-of-the-service")
        self.peers("north", flags=("--peer-rate", 3 * MIB))
        self.evaluation = self.go("north")
        self.wait_fetched("north")

    def half_way(self, name):
        """Waits until a part of the checkpoint has come."""
        used = lambda: sum(f.stat().st_blocks * 512 for f in self.staged(name).glob(".staging-fetch-*/*"))
        self.wait_for("a part of it", lambda: used() > 9 * MIB)

    def comes_from_two(self, name):
        found = self.wait_fetched(name)[name]
        self.assert_same(name)
        self.assertEqual(len(found), 2, f"a part from north, and the rest: {found}")
        self.assertIn("the service", found)

    def test_a_source_that_is_killed(self):
        self.peer("south")
        self.half_way("south")
        self.agents["north"].kill()
        self.comes_from_two("south")

    def test_a_source_that_falls_silent(self):
        self.peer("south")
        self.half_way("south")
        self.agents["north"].send_signal(signal.SIGSTOP)
        self.comes_from_two("south")
        self.agents["north"].send_signal(signal.SIGCONT)

    def test_a_source_that_leaves(self):
        self.peer("south")
        self.half_way("south")
        self.agents["north"].send_signal(signal.SIGTERM)
        self.agents["north"].send_signal(signal.SIGTERM)
        self.comes_from_two("south")

    def test_a_source_whose_bytes_are_wrong(self):
        path = next(self.staged("north").glob(f"*/model-0000{self.SHARDS}-of-*"))
        path.chmod(0o600)
        with open(path, "r+b") as file:
            file.seek(5 * MIB)
            byte = file.read(1)
            file.seek(5 * MIB)
            file.write(bytes([byte[0] ^ 1]))
        self.peer("south")
        self.comes_from_two("south")
        self.assertRegex(self.log("south"), r"is left \(wrong\): bytes \d+ to \d+ of model-00003-of-00003.safetensors are not")
        self.peer("east")
        self.wait_fetched("east")
        self.assert_same("east")
        self.assertNotIn("wrong", self.log("east"), "nobody else is sent to north")

    def test_a_service_whose_copy_has_no_list_of_chunks(self):
        """An earlier version staged it. Everything comes from the service, and is hashed as a whole."""
        folder = self.folder / "staging" / self.fingerprint
        folder.chmod(0o700)
        (folder / ".evald-chunks.json").unlink()
        self.peer("south")
        self.assertEqual(list(self.wait_fetched("south")["south"]), ["the service"])
        self.assert_same("south")
        self.assertFalse((self.staged("south") / self.fingerprint / ".evald-chunks.json").exists())

    def test_the_service_is_killed(self):
        port = int(self.url.rsplit(":", 1)[1])
        self.peer("south")
        self.half_way("south")
        self.daemon.kill()
        self.daemon.communicate()
        self.serve(listen=f"127.0.0.1:{port}", output_dir="runs-of-the-service")
        for name in ("north", "south"):
            self.wait_host(name)
        self.call("POST", f"/v1/runs/{self.evaluation['id']}/cancel")
        self.finished(self.evaluation)
        self.go("north", "south")
        found = self.wait_fetched("south")["south"]
        self.assertNotIn("the service", found, "the next service knows what is staged at north")
        self.assert_same("south")

    def test_the_fetching_host_is_killed(self):
        self.peer("south")
        self.half_way("south")
        self.agents["south"].kill()
        self.agents["south"].wait()
        self.wait_host("south", "away")
        self.peer("south")
        self.wait_fetched("south")
        self.assert_same("south")
        self.assertEqual(list(self.staged("south").glob(".staging-*/*")), [], "the half-made copy is gone")


if __name__ == "__main__":
    unittest.main()
