"""Pages whose commands tests run as they are written."""
import os
import re
import socket
import subprocess

from evald_case import BINARIES, SOURCE, EvaldCase


def fences(page):
    """The blocks between fences of a page below the sources: (language, text), in order. A block of output has the
    language ""."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", (SOURCE / page).read_text(), re.MULTILINE | re.DOTALL)


def blocks(page):
    """The blocks of commands (```sh) of a page."""
    return [text for language, text in fences(page) if language == "sh"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class PageCase(EvaldCase):
    """A home of its own, and a service's port of its own, for a page's commands."""

    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.home = self.folder / "home"
        self.home.mkdir()
        self.env = {"PATH": f"{BINARIES}:{os.environ['PATH']}", "HOME": str(self.home), "LANG": "C.UTF-8",
                    "EVALD_SERVER": f"http://127.0.0.1:{self.port}"}

    def on_own_port(self, commands):
        return (commands.replace("evald serve ", f"evald serve --set listen=127.0.0.1:{self.port} ")
                .replace("localhost:8642", f"127.0.0.1:{self.port}"))

    def shell(self, commands, cwd=SOURCE, statuses=(0,), seconds=240):
        """Runs the commands in a shell that ends at the first one that fails. Returns all that they said."""
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", commands], cwd=cwd, env=self.env, capture_output=True,
                              text=True, timeout=seconds)
        said = f"{done.stdout}\n{done.stderr}"
        self.assertIn(done.returncode, statuses, f"{commands}\n{said}")
        return said

    def check_all_known(self, page, run, not_run):
        """Every block between fences of the page begins with a line of `run` or of `not_run` (with the reason), and no
        line stands there in vain."""
        first = [text.splitlines()[0].split("  ")[0] for _, text in fences(page)]
        self.assertEqual(sorted(first), sorted([*run, *not_run]),
                         f"{page}: run each block in this test, or name it there with the reason why it cannot run here")
