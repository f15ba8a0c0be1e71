"""The steps of the example workflows that need no hosted runner, run in the same way as in CI."""
import os
import re
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from evald_case import BINARIES, SOURCE, EvaldCase

CI = SOURCE / "examples" / "ci"


def block(lines, start):
    """The lines below `start` that are indented deeper than `start`."""
    depth = len(lines[start]) - len(lines[start].lstrip())
    found = []
    for line in lines[start + 1:]:
        if line.strip() and len(line) - len(line.lstrip()) <= depth:
            break
        found.append(line)
    return found


def github_steps():
    """name -> script of every `run:` step."""
    lines = (CI / "github-actions.yml").read_text().splitlines()
    steps, name = {}, None
    for i, line in enumerate(lines):
        named = re.match(r"\s+- name: (.*)", line)
        if named:
            name = named.group(1)
        run = re.match(r"\s+run: (.*)", line)
        if run:
            steps[name] = "\n".join(x.strip() for x in block(lines, i)) if run.group(1) == "|" else run.group(1)
    return steps


def gitlab_script():
    """The commands of `script:`, folded as `>-` folds them."""
    lines = (CI / "gitlab-ci.yml").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() == "script:")
    commands = []
    for line in block(lines, start):
        if line.strip().startswith("- "):
            commands.append(line.strip()[2:] if line.strip() != "- >-" else "")
        else:
            commands[-1] = (commands[-1] + " " + line.strip()).strip()
    return commands


def variables(name, key):
    lines = (CI / name).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() == key)
    return dict(line.strip().split(": ", 1) for line in block(lines, start) if line.strip())


class Examples(EvaldCase):
    def environment(self, values, **changes):
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "CI_"))}
        # $PWD/$OUT must be in the scratch folder, so OUT is a path from the checkout to there.
        out = os.path.relpath(self.folder / "evaluation", SOURCE)
        return {**plain, **values, "EVALD": str(BINARIES / "evald"), "OUT": out,
                "XDG_STATE_HOME": str(self.folder / "state"), "XDG_CACHE_HOME": str(self.folder / "cache"), **changes}

    def shell(self, script, environment):
        return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=SOURCE, env=environment, text=True,
                              capture_output=True, timeout=300)

    def test_github_actions(self):
        steps = github_steps()
        self.assertEqual(list(steps), ["Allow sandboxes", "Build", "Show what this machine can do", "Evaluate the baseline",
                                       "Evaluate the checkpoint"])
        summary = self.folder / "summary.md"
        environment = self.environment(variables("github-actions.yml", "env:"), GITHUB_ACTIONS="true",
                                       GITHUB_STEP_SUMMARY=str(summary))
        for name in ("Show what this machine can do", "Evaluate the baseline", "Evaluate the checkpoint"):
            done = self.shell(steps[name], environment)
            self.assertEqual(done.returncode, 0, f"{name}\n{done.stdout}\n{done.stderr}")
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
        environment = self.environment(variables("gitlab-ci.yml", "variables:"))
        commands = gitlab_script()
        self.assertEqual(len(commands), 3)
        for command in commands:
            done = self.shell(command, environment)
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}\n{done.stderr}")
        self.check_files(0)
        self.assertIn("evald: pass", (self.folder / "evaluation/report.md").read_text())

    def check_files(self, failures):
        root = ElementTree.parse(self.folder / "evaluation/gates.xml").getroot()
        self.assertEqual(int(root.get("failures")), failures)
        self.assertTrue((self.folder / "evaluation/report.html").read_text().startswith("<!doctype html>"))


if __name__ == "__main__":
    if not os.access(BINARIES / "evald", os.X_OK):
        raise SystemExit(f"no evald in {BINARIES}")
    unittest.main(verbosity=2)
