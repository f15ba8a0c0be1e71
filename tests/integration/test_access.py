"""Access to a service, and the files that others may read: folders, modes, command lines, quotas."""
import json
import os
import pathlib
import re
import resource
import stat
import struct
import subprocess
import time
import unittest

from evald_case import BINARIES, EvaldCase
from service_case import Service

ROOT = os.geteuid() == 0
OTHER = 12345  # a user without an entry in the password database


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def give_to_other(folder):
    """Gives a user all rights to what will be made in the folder: a default ACL, as by setfacl -d -m u:12345:rwx."""
    entries = [(1, 7, 0xffffffff), (2, 7, OTHER), (4, 7, 0xffffffff), (0x10, 7, 0xffffffff), (0x20, 7, 0xffffffff)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(folder, "system.posix_acl_default", acl)
    except OSError as error:
        raise unittest.SkipTest("the file system has no ACLs") from error


class Folders(EvaldCase):
    def test_state_and_cache_are_for_their_user_only(self):
        self.make_suite(4, 4)
        (self.folder / "state").mkdir(0o755)
        self.run_done(self.write_config())
        self.assertEqual(mode(self.folder / "state"), 0o700)
        self.assertEqual(mode(self.folder / "cache"), 0o700)

    def test_folders_that_others_may_write_are_refused(self):
        self.make_suite(4, 4)
        for key in ("state", "cache"):
            folder = self.folder / f"{key}-open"
            folder.mkdir()
            folder.chmod(0o777)
            done = self.evald("run", self.write_config(**{f"{key}_dir": str(folder)}), "--quiet")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"{key}-open: may be written by others (mode 777)", done.stderr)
            self.assertIn(f"{key}_dir", done.stderr)

    def test_a_run_may_be_written_by_its_user_only_whatever_umask_and_acl_grant(self):
        """Whoever may write to the folder of a command at work can exchange the command's program."""
        self.make_suite(4, 4)
        (self.folder / "runs").mkdir()
        (self.folder / "runs").chmod(0o1777)
        give_to_other(self.folder / "runs")
        before = os.umask(0)
        try:
            self.run_done(self.write_config())
        finally:
            os.umask(before)
        written = list((self.folder / "runs").glob("*/**/*")) + list((self.folder / "runs").glob("*"))
        self.assertTrue(written)
        self.assertEqual([str(path) for path in written if not path.is_symlink() and mode(path) & 0o022], [])

    @unittest.skipUnless(ROOT, "only root can give folders to another user")
    def test_a_run_s_folder_of_another_user_is_not_taken(self):
        """Others may make folders below an output.dir such as /tmp/runs."""
        self.make_suite(4, 4)
        planted = self.folder / "runs" / "nightly"
        planted.mkdir(parents=True)
        planted.chmod(0o777)
        os.chown(planted, OTHER, OTHER)
        config = self.write_config(output={"dir": "runs", "name": "nightly"})
        done = self.evald("run", config, "--quiet")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"nightly: the run's folder belongs to user {OTHER}, expected 0", done.stderr)
        self.assertEqual(list(planted.iterdir()), [])
        planted.rename(self.folder / "elsewhere")
        planted.symlink_to(self.folder / "elsewhere")
        self.assertNotEqual(self.evald("run", config, "--quiet").returncode, 0)
        self.assertEqual(list((self.folder / "elsewhere").iterdir()), [])

    @unittest.skipUnless(ROOT, "only root can give folders to another user")
    def test_a_run_of_another_user_is_not_resumed(self):
        self.make_suite(4, 4)
        config = self.write_config(output={"dir": "runs", "name": "mine"})
        self.run_done(config)
        folder = self.folder / "runs" / "mine"
        record = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps({**record, "state": "running"}))
        os.chown(folder, OTHER, OTHER)
        for arguments in (("--resume",), ("--resume", "mine")):
            done = self.evald("run", config, "--quiet", *arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"belongs to user {OTHER}, expected 0", done.stderr)
        os.chown(folder, 0, 0)
        self.run_done(config, "--resume", "mine")

    def test_a_service_whose_folders_others_may_write_does_not_start(self):
        for key in ("cache_dir", "staging.root"):
            folder = self.folder / f"open-{key}"
            folder.mkdir()
            folder.chmod(0o777)
            done = self.evald("serve", "--set", "listen=127.0.0.1:0", "--set", f"state_dir={self.folder / 'state'}",
                              "--set", f"cache_dir={self.folder / 'cache'}", "--set", f"{key}={folder}", timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"open-{key}: may be written by others (mode 777)", done.stderr)

    @unittest.skipUnless(ROOT, "only root can be another user")
    def test_without_a_home_nothing_goes_to_a_folder_that_anyone_could_have_made(self):
        self.make_suite(4, 4)
        config = self.write_config(state_dir=None, cache_dir=None)
        self.folder.chmod(0o777)
        environment = {name: value for name, value in os.environ.items() if name != "HOME" and not name.startswith("XDG_")}
        try:
            done = subprocess.run([str(BINARIES / "evald"), "run", str(config), "--quiet"], env=environment, user=OTHER, cwd="/",
                                  capture_output=True, text=True, timeout=60)
        except PermissionError:
            self.skipTest("another user may not read this build")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"uid {OTHER}", done.stderr)
        self.assertIn("set cache_dir", done.stderr)
        self.assertFalse(pathlib.Path("/tmp/.cache/evald").exists())


class Modes(Service):
    def test_what_the_service_writes_is_for_its_user_only(self):
        before = os.umask(0o022)
        try:
            self.serve(output_dir=None)
            self.submit(sums=4, choice=4)
        finally:
            os.umask(before)
        self.assertEqual(mode(self.folder / "state"), 0o700)
        self.assertEqual(mode(self.folder / "state" / "runs"), 0o700)

    def test_an_output_folder_that_is_there_keeps_its_mode(self):
        (self.folder / "runs").mkdir()
        (self.folder / "runs").chmod(0o2755)
        self.serve()
        self.assertEqual(mode(self.folder / "runs"), 0o2755)

    def test_runs_may_be_written_by_their_user_only(self):
        """Whoever may write to a run's folder can put links there, or exchange the folder."""
        (self.folder / "runs").mkdir()
        (self.folder / "runs").chmod(0o2755)
        before = os.umask(0o002)
        try:
            self.serve()
            run = self.submit(sums=4, choice=4)
        finally:
            os.umask(before)
        self.wait_for("the end", lambda: self.state(run) == "done", 60)
        written = list((self.folder / "runs").rglob("*"))
        self.assertTrue(written)
        self.assertEqual([str(path) for path in written if mode(path) & 0o022], [])

    def test_runs_may_be_written_by_their_user_only_whatever_an_acl_grants(self):
        (self.folder / "runs").mkdir()
        give_to_other(self.folder / "runs")
        self.serve()
        run = self.submit(sums=4, choice=4)
        self.wait_for("the end", lambda: self.state(run) == "done", 60)
        written = list((self.folder / "runs").rglob("*"))
        self.assertTrue(written)
        self.assertEqual([str(path) for path in written if mode(path) & 0o022], [])

    def test_an_output_folder_that_others_may_write_is_refused(self):
        (self.folder / "runs").mkdir()
        (self.folder / "runs").chmod(0o2775)
        done = self.evald("serve", "--set", "listen=127.0.0.1:0", "--set", f"state_dir={self.folder / 'state'}",
                          "--set", f"output_dir={self.folder / 'runs'}", timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("runs: may be written by others (mode 2775)", done.stderr)
        self.assertIn("set output_dir to a folder of your own", done.stderr)

    @unittest.skipUnless(ROOT, "only root can give folders to another user")
    def test_a_run_that_another_user_put_there_is_not_taken_up(self):
        self.serve()
        run = self.submit(sums=4, choice=4)
        self.wait_for("the end", lambda: self.state(run) == "done", 60)
        folder = next(path.parent for path in (self.folder / "runs").glob("*/run.json"))
        self.kill()
        planted = folder.with_name("planted")
        record = json.loads((folder / "run.json").read_text())
        planted.mkdir()
        (planted / "run.json").write_text(json.dumps({**record, "id": "r-planted", "state": "running"}))
        os.chown(planted, OTHER, OTHER)
        self.serve()
        runs = [one["id"] for one in json.loads(self.ask("GET", "/v1/runs")[2])["runs"]]
        self.assertEqual(runs, [run])

    def test_settings_of_an_engine_are_on_no_command_line(self):
        """Every user of the machine may read command lines, and settings may hold keys."""
        self.serve()
        self.submit(sums=400, choice=4, engine={"name": "emulated", "delay_ms": 71, "concurrency": 1})
        lines = []
        deadline = time.monotonic() + 60
        while not lines and time.monotonic() < deadline:
            time.sleep(0.05)
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    line = (process / "cmdline").read_bytes().split(b"\0")
                    if b"--settings" not in line:
                        continue
                    parent = re.search(r"^PPid:\s*(\d+)", (process / "status").read_text(), re.M).group(1)
                    if str(self.folder).encode() in pathlib.Path("/proc", parent, "cmdline").read_bytes():
                        lines.append(line)
                except OSError:
                    pass
        self.assertTrue(lines, "no worker was seen")
        for line in lines:
            self.assertEqual(line[line.index(b"--settings") + 1], b"-")


class OpenFiles(EvaldCase):
    @staticmethod
    def limited(soft, hard):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def test_a_limit_that_is_too_low_is_said_at_once(self):
        self.make_suite(4, 4)
        for arguments in (("run", self.write_config(), "--quiet"),
                          ("serve", "--set", "listen=127.0.0.1:0", "--set", f"state_dir={self.folder / 'state'}")):
            done = self.evald(*arguments, preexec_fn=self.limited(64, 64), timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, r"the limit of open files is 64, and \d+ are needed")

    def test_a_soft_limit_is_raised(self):
        self.make_suite(4, 4)
        self.run_done(self.write_config(), preexec_fn=self.limited(64, 4096))


class Quotas(Service):
    def test_a_user_has_so_many_runs_and_no_more(self):
        self.serve(quotas={"runs_per_user": 2}, active_runs=1)
        self.make_suite(400, 4)
        config = {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": {"name": "emulated", "delay_ms": 500, "concurrency": 1}}

        def submit(user, **headers):
            status, fields, body = self.ask("POST", "/v1/runs", json.dumps({"config": config, "user": user}),
                                            Content_Type="application/json", **headers)
            return status, fields, json.loads(body)
        self.assertEqual(submit("ada", Idempotency_Key="first")[0], 201)
        self.assertEqual(submit("ada")[0], 201)
        status, fields, problem = submit("ada")
        self.assertEqual(status, 429, problem)
        self.assertIn("Retry-After", fields)
        self.assertIn("'ada' has 2 runs", problem["detail"])
        self.assertEqual(submit("ada", Idempotency_Key="first")[0], 200, "a repeated submission is the first one")
        self.assertEqual(submit("bob")[0], 201)
        self.assertEqual(len(list((self.folder / "runs").iterdir())), 3)
        runs = json.loads(self.ask("GET", "/v1/runs?user=ada")[2])["runs"]
        self.ask("POST", f"/v1/runs/{runs[0]['id']}/cancel")
        deadline = time.monotonic() + 60
        while self.state(runs[0]["id"]) != "cancelled" and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(submit("ada")[0], 201)


if __name__ == "__main__":
    unittest.main()
