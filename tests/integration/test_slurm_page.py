"""The commands of docs/slurm.md, as they stand there, on a real Slurm."""
import json
import shutil
import unittest

from evald_case import SOURCE
from page_case import PageCase, blocks
from slurm_cluster import SlurmCluster

SCORE = "quickstart_math"  # its row of the table is there in each way


@unittest.skipIf(SlurmCluster.missing(), SlurmCluster.missing())
class SlurmPage(PageCase):
    def test_every_command_does_what_the_page_says(self):
        cluster = SlurmCluster(self.folder / "slurm")
        self.addCleanup(cluster.close)
        self.env |= {"SLURM_CONF": cluster.environment["SLURM_CONF"], "USER": "root"}
        here = self.folder / "evald"
        shutil.copytree(SOURCE / "examples", here / "examples")
        commands = blocks("docs/slurm.md")
        dry, run, inside, folder, serve, *rest = [index for index, _ in enumerate(commands)]
        shown = self.shell(commands[dry], here)
        self.assertIn("sbatch", shown)
        self.assertFalse(cluster.jobs())
        alone = self.shell(commands[run], here)
        self.assertEqual(len(cluster.jobs()), 2)
        self.shell(commands[inside], here)
        log, = here.glob("evald-*.log")
        for said in (alone, log.read_text()):
            for line in self.expected_rows():
                self.assertIn(line, said)
        service = "".join(commands[folder:]).replace(
            "evald serve ", f"evald serve --set listen=127.0.0.1:{self.port} --set state_dir={self.folder}/service ")
        said = self.shell("trap 'kill %1; wait' EXIT\n" + service + "\nevald status --once --json\n", here)
        runs = json.loads(next(line for line in said.splitlines() if line.startswith('{"')))["runs"]
        self.assertEqual([run["state"] for run in runs], ["done"], said)
        self.assertIn("slurm", said)

    def expected_rows(self):
        readme = (SOURCE / "README.md").read_text()
        table = readme[readme.index("\nTask"):].splitlines()
        rows = [line for line in table[:12] if line.strip().startswith("quickstart")]
        self.assertTrue(rows)
        return rows


if __name__ == "__main__":
    unittest.main()
