"""The steps of the example workflows that need no hosted runner, run in the same way as in CI: in a repository that has
nothing of evald's sources, with a release that is fetched over HTTP."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import ci_steps
from evald_case import BINARIES, EvaldCase

PROGRAMS = ("evald", "evald-worker", "evald-metric", "evald-prepare")


def make_release(folder, version):
    """A release of the programs that are tested, in the form of scripts/package's. It brings no libraries."""
    tree = f"evald-{version}-linux-x86_64"
    with tarfile.open(folder / f"{tree}.tar.gz", "w:gz", compresslevel=1) as out:
        for program in PROGRAMS:
            out.add(BINARIES / program, f"{tree}/lib/evald/{program}")
        link = tarfile.TarInfo(f"{tree}/bin/evald")
        link.type, link.linkname = tarfile.SYMTYPE, "../lib/evald/evald"
        out.addfile(link)
    digest = hashlib.sha256((folder / f"{tree}.tar.gz").read_bytes()).hexdigest()
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  evald_{version}_amd64.deb\n{digest}  {tree}.tar.gz\n")


class Examples(EvaldCase):
    @classmethod
    def setUpClass(cls):
        cls.release = pathlib.Path(tempfile.mkdtemp(prefix="evald-release-"))
        cls.addClassCleanup(shutil.rmtree, cls.release)
        make_release(cls.release, ci_steps.variables("github-actions.yml", "env:")["EVALD_VERSION"])
        cls.server = ci_steps.serve(cls.release)
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)

    def setUp(self):
        super().setUp()
        self.repository = self.folder / "repository"
        ci_steps.make_repository(self.repository)

    def environment(self, values, **changes):
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "CI_", "EVALD"))}
        return {**plain, **values, "EVALD_RELEASE": self.server.url, "XDG_STATE_HOME": str(self.folder / "state"),
                "XDG_CACHE_HOME": str(self.folder / "cache"), **changes}

    def shell(self, script, environment):
        return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=self.repository, env=environment, text=True,
                              capture_output=True, timeout=300)

    def test_github_actions(self):
        steps = ci_steps.github_steps()
        self.assertEqual(list(steps), ["Allow sandboxes", "Install tools", "Fetch evald", "Show what this machine can do",
                                       "Evaluate the baseline", "Evaluate the checkpoint"])
        summary, path = self.folder / "summary.md", self.folder / "path"
        environment = self.environment(ci_steps.variables("github-actions.yml", "env:"), GITHUB_ACTIONS="true",
                                       GITHUB_STEP_SUMMARY=str(summary), GITHUB_PATH=str(path))
        for name in list(steps)[2:]:
            done = self.shell(steps[name], environment)
            self.assertEqual(done.returncode, 0, f"{name}\n{done.stdout}\n{done.stderr}")
            if name == "Fetch evald":
                environment["PATH"] = f"{path.read_text().strip()}:{environment['PATH']}"
                self.assertTrue(shutil.which("evald", path=environment["PATH"]).startswith(str(self.repository)))
        self.assertIn("::notice title=evald%3A pass::4 of 4 gates met", done.stdout)
        self.assertIn("## evald: pass", summary.read_text())
        self.check_files(0)
        worse = dict(environment, CHECKPOINT="checkpoints/step-00100")
        script = steps["Evaluate the checkpoint"].replace("output.name=candidate", "output.name=early")
        done = self.shell(script, worse)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("::error title=evald gate fail", done.stdout)
        self.check_files(3)

    def test_gitlab(self):
        environment = self.environment(ci_steps.variables("gitlab-ci.yml", "variables:"))
        before, commands = ci_steps.gitlab_commands("before_script"), ci_steps.gitlab_commands("script")
        self.assertEqual(len(commands), 3)
        self.assertIn("apparmor", before[0])
        self.assertIn("apt-get", before[1])
        done = self.shell("\n".join(before[2:] + commands), environment)  # one shell, as the runner's
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
        self.check_files(0)
        self.assertIn("evald: pass", (self.repository / "evaluation/out/report.md").read_text())

    def test_another_file_than_the_release_says_is_not_run(self):
        other = self.folder / "other"
        shutil.copytree(self.release, other)
        with open(next(other.glob("*.tar.gz")), "ab") as out:
            out.write(b"x")
        server = ci_steps.serve(other)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        environment = self.environment(ci_steps.variables("github-actions.yml", "env:"), EVALD_RELEASE=server.url,
                                       GITHUB_PATH=str(self.folder / "path"))
        done = self.shell(ci_steps.github_steps()["Fetch evald"], environment)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("FAILED", done.stdout)
        self.assertFalse((self.folder / "path").exists())

    def check_files(self, failures):
        out = self.repository / "evaluation/out"
        root = ElementTree.parse(out / "gates.xml").getroot()
        self.assertEqual(int(root.get("failures")), failures)
        self.assertTrue((out / "report.html").read_text().startswith("<!doctype html>"))


if __name__ == "__main__":
    if not os.access(BINARIES / "evald", os.X_OK):
        raise SystemExit(f"no evald in {BINARIES}")
    unittest.main(verbosity=2)
