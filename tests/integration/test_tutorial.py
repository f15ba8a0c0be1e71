"""The commands of docs/tutorial.md, as they stand there, in one shell, from the first to the last."""
import unittest

from page_case import PageCase, blocks


class Tutorial(PageCase):
    def test_every_command_does_what_the_page_says(self):
        commands = [self.on_own_port(block) for block in blocks("docs/tutorial.md")]
        self.assertGreater(len(commands), 7)
        said = self.shell("".join(f"echo '### block {i}'\n{block}" for i, block in enumerate(commands)))
        for expected in ("exact_match  ↑  0.9250", "exact_match  ↑  0.3250", "80     4      52", "### block 8"):
            self.assertIn(expected, said)
        junit = (self.home / "evals/gates.xml").read_text()
        self.assertIn("<testcase", junit)


if __name__ == "__main__":
    unittest.main()
