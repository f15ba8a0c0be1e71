"""Who may use a service and what others may read: folders, modes, command lines, quotas."""
import json
import os
import pathlib
import stat
import subprocess
import unittest

from evald_case import BINARIES, EvaldCase
from service_case import Service

ROOT = os.geteuid() == 0
OTHER = 12345  # a user without an entry in the password database


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


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

    @unittest.skipUnless(ROOT, "only root can be another user")
    def test_without_a_home_nothing_goes_to_a_folder_that_anyone_could_have_made(self):
        self.make_suite(4, 4)
        config = self.write_config(state_dir=None, cache_dir=None)
        self.folder.chmod(0o777)
        environment = {name: value for name, value in os.environ.items() if name != "HOME" and not name.startswith("XDG_")}
        done = subprocess.run([str(BINARIES / "evald"), "run", str(config), "--quiet"], env=environment, user=OTHER, cwd="/",
                              capture_output=True, text=True, timeout=60)
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
        (self.folder / "runs").chmod(0o2775)
        self.serve()
        self.assertEqual(mode(self.folder / "runs"), 0o2775)


if __name__ == "__main__":
    unittest.main()
