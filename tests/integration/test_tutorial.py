"""The commands of docs/tutorial.md, as they stand there, in one shell, from the first to the last."""
import os
import re
import socket
import subprocess
import unittest

from evald_case import BINARIES, SOURCE, EvaldCase


def blocks(page):
    """The blocks of commands (```sh) of a page."""
    return re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Tutorial(EvaldCase):
    def test_every_command_does_what_the_page_says(self):
        port = free_port()
        commands = [block.replace("evald serve ", f"evald serve --set listen=127.0.0.1:{port} ")
                    for block in blocks(SOURCE / "docs/tutorial.md")]
        self.assertGreater(len(commands), 7)
        script = "set -e\n" + "".join(f"echo '### block {i}'\n{block}" for i, block in enumerate(commands))
        home = self.folder / "home"
        home.mkdir()
        env = {"PATH": f"{BINARIES}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8",
               "EVALD_SERVER": f"http://127.0.0.1:{port}"}
        done = subprocess.run(["bash", "-c", script], cwd=SOURCE, env=env, capture_output=True, text=True, timeout=240)
        said = f"{done.stdout}\n{done.stderr}"
        self.assertEqual(done.returncode, 0, said)
        for expected in ("exact_match  ↑  0.9250", "exact_match  ↑  0.3250", "80     4      52", "### block 8"):
            self.assertIn(expected, said)
        junit = (home / "evals/gates.xml").read_text()
        self.assertIn("<testcase", junit)


if __name__ == "__main__":
    unittest.main()
