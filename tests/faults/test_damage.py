"""Damaged files are found, named, and rebuilt from other files if possible."""
import contextlib
import signal
import sqlite3
import unittest

from fault_case import FULL, PATIENCE_S, FaultCase, sample


class Damage(FaultCase):
    SLOW = {"name": "emulated", "concurrency": 4, "delay_ms": 8, "jitter": 0.5}

    def flip(self, path, times=1, first=0):
        """Puts other bytes at random places of a file, from `first` on."""
        content = bytearray(path.read_bytes())
        for _ in range(times):
            content[self.rng.randrange(first, len(content))] ^= 1 << self.rng.randrange(8)
        path.write_bytes(content)

    def cut_short(self, path):
        content = path.read_bytes()
        path.write_bytes(content[:self.rng.randrange(len(content))])

    def interrupted(self, config, scored=3):
        """A run that was killed after some scores were committed. Returns its folder."""
        self.killed_at("run.scores_committed", scored, config)
        return self.runs()[0]

    def finish_in_two(self, config, expected, what):
        """Like `finish`. SQLite does not check some bits. A file's hash may show the first life that such bits are
        wrong; the second life does their work again."""
        status, said = self.resume(config)
        # the damaged bits hold the schema version: refused with a message that names it
        if status == 2 and "schema version" in said:
            self.assertIn("state.db", said)
            (self.disk / "state" / "state.db").unlink()
        if status:
            said += self.finish(config, expected, f"{what}\n{said}")
        self.compare(self.runs()[0], expected, what)
        return said

    def aside(self):
        return sorted(p.name for p in (self.disk / "state").glob("state.db.damaged-*") if not p.name.endswith("-wal"))

    # ---- the database

    def damages(self):
        """Ways in which a database file may be damaged: (name, function of state.db's path)."""
        size = 4096
        ways = [("is no database", lambda p: p.write_bytes(self.rng.randbytes(3 * size))),
                ("has a broken header", lambda p: p.write_bytes(b"SQLight" + p.read_bytes()[7:])),
                ("has a page of zeros", lambda p: p.write_bytes(p.read_bytes()[:size] + bytes(size) + p.read_bytes()[2 * size:])),
                ("has flipped bits", lambda p: self.flip(p, 40, first=100)),  # the header has a case of its own
                ("is cut short", self.cut_short),
                ("is empty", lambda p: p.write_bytes(b""))]
        return ways

    def fold_wal(self):
        """Moves the content of the WAL into state.db, as a checkpoint of SQLite does; otherwise damage to state.db
        would not matter. False if a process is in the middle of a transaction."""
        with contextlib.closing(sqlite3.connect(self.disk / "state" / "state.db", timeout=1)) as database:
            return database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0

    def test_a_damaged_database_is_set_aside_and_made_anew_from_the_files(self):
        config = self.config(engine=self.SLOW)
        expected = self.undisturbed(config)
        for name, damage in sample(self.damages(), 3, self.rng):
            with self.subTest(damage=name):
                self.clear()
                run = self.interrupted(config)
                committed = {p: p.read_bytes() for p in run.glob("generations/*/*.jsonl")}
                self.fold_wal()
                damage(self.disk / "state" / "state.db")
                finish = self.finish_in_two if name == "has flipped bits" else self.finish
                said = finish(config, expected, f"the database {name}")
                if self.aside():
                    self.assertIn("state.db", said)
                    self.assertIn(f"set aside as {self.disk / 'state' / self.aside()[0]}", said)
                if name in ("is no database", "has a broken header"):
                    self.assertEqual(self.aside(), ["state.db.damaged-1"])
                for path, content in committed.items():
                    self.assertEqual(path.read_bytes(), content, "what was complete is adopted, not made again")

    def test_what_is_said_of_damage_can_be_read(self):
        config = self.config(engine=self.SLOW)
        expected = self.undisturbed(config)
        self.interrupted(config)
        self.fold_wal()
        database = self.disk / "state" / "state.db"
        content = database.read_bytes()
        self.assertIn(b"costs", content)
        database.write_bytes(content.replace(b"costs", b"co\xf3\x1b["))  # not UTF-8, and a terminal's control sequence
        said = self.finish(config, expected, "a name in the database's schema")
        self.assertIn(r"co\xf3\x1b[", said)
        self.assertIn("set aside as", said)

    def test_flipped_bits_anywhere_in_the_database(self):
        config = self.config(engine=self.SLOW)
        expected = self.undisturbed(config)
        for _ in range(40 if FULL else 2):
            self.clear()
            self.interrupted(config)
            if self.rng.random() < 0.5:
                self.fold_wal()
            state = self.disk / "state"
            victim = self.rng.choice([p for p in (state / "state.db", state / "state.db-wal") if p.exists() and p.stat().st_size])
            with self.subTest(victim=victim.name):
                self.flip(victim, self.rng.choice([1, 3, 30]))
                self.finish_in_two(config, expected, f"flipped bits in {victim.name}")

    def test_a_database_in_use_is_not_set_aside(self):
        self.make_suite(300, 4)
        config = self.config(engine={**self.SLOW, "delay_ms": 2000})  # the test does not wait for the run
        first = self.start("run", config, "--quiet", start_new_session=True)

        def stopped():
            first.send_signal(signal.SIGSTOP)  # otherwise it would notice and end
            if self.fold_wal():
                return True
            first.send_signal(signal.SIGCONT)
            return False
        try:
            self.wait_for("it to work", lambda: list(self.disk.glob("runs/*/generations/*/*")))
            database = self.disk / "state" / "state.db"
            self.wait_for("it to stand outside of a transaction", stopped)
            database.write_bytes(b"x" * 4096)
            status, said = self.life(config)
            self.assertEqual(status, 3, said)
            self.assertIn(str(database), said)
            self.assertIn("another evald uses this state folder", said)
            self.assertEqual(self.aside(), [])
        finally:
            first.kill()
            first.communicate()
            self.wait_until_gone(first.pid)

    def test_a_service_finds_its_runs_again(self):
        expected = self.undisturbed(self.config(engine=self.SLOW))
        self.assertTrue(self.serve())
        first = self.submit("first", engine=self.SLOW)
        self.assertEqual(self.run_over(first["id"])["state"], "done")
        second = self.submit("second", engine=self.SLOW)
        self.wait_for("the second to work", lambda: list(self.disk.glob(f"runs/{second['directory'].split('/')[-1]}/scores/*/*.jsonl")))
        self.end_daemon()
        self.fold_wal()
        (self.disk / "state" / "state.db").write_bytes(b"no database any more" * 400)
        self.assertTrue(self.serve(), self.daemon_log())
        self.assertEqual(self.aside(), ["state.db.damaged-1"])
        for key, run in (("first", first), ("second", second)):
            self.assertEqual(self.submit(key, engine=self.SLOW)["id"], run["id"], "its key is known")
            self.check_done(self.run_over(run["id"]), expected, f"the {key} run")
        self.assertEqual([r["id"] for r in self.call("GET", "/v1/runs")["runs"]], [second["id"], first["id"]])
        self.assertEqual(self.end_daemon(15), 0, self.daemon_log())

    # ---- a run's files

    def test_damaged_files_are_set_aside_and_done_again(self):
        config = self.config(engine=self.SLOW)
        expected = self.undisturbed(config)
        ways = [(kind, harm) for kind in ("generations", "scores") for harm in (self.flip, self.cut_short)]
        for kind, harm in sample(ways, 2, self.rng):
            with self.subTest(kind=kind, harm=harm.__name__):
                self.clear()
                run = self.interrupted(config)
                with contextlib.closing(sqlite3.connect(self.disk / "state" / "state.db")) as database:
                    rows = database.execute("SELECT path FROM files WHERE kind = ?", [int(kind == "scores")]).fetchall()
                victim = run / self.rng.choice(rows)[0]
                harm(victim)
                said = self.finish(config, expected, f"{harm.__name__} in {victim}")
                self.assertIn(str(victim), said)
                self.assertTrue(victim.with_name(victim.name + ".damaged").exists())

    def test_a_file_that_changes_while_the_run_works_makes_no_results(self):
        self.make_suite(120, 8)
        expected = self.undisturbed(self.config(engine=self.SLOW))
        # The run still takes seconds when its first scores are committed.
        config = self.config(engine={**self.SLOW, "delay_ms": 300})
        process = self.start("run", config, "--quiet", start_new_session=True)
        victim = self.wait_for("scores", lambda: list(self.disk.glob("runs/*/scores/sums/*.jsonl")))[0]
        line = victim.read_text()
        victim.write_text(line.replace('"exact_match":0.0', '"exact_match":1.0', 1))
        self.assertNotEqual(victim.read_text(), line)
        _, said = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 3, said)
        self.assertIn(f"{victim}: changed since it was committed", said)
        self.assertEqual(list(self.disk.glob("runs/*/results.json")), [])
        self.finish(config, expected, "scores that changed")

    def test_a_damaged_record_of_another_run_is_passed_over(self):
        config = self.config(engine=self.SLOW)
        expected = self.undisturbed(config)
        self.interrupted(config)
        for name, text in (("half", '{"id": "a", "sta'), ("list", "[]"), ("numbers", '{"id":1,"state":2,"created":"x","deciding":3}')):
            (self.disk / "runs" / name).mkdir()
            (self.disk / "runs" / name / "run.json").write_text(text)
            status, said = self.life(config, "--resume", self.disk / "runs" / name)
            self.assertEqual(status, 2, said)
            self.assertIn(f"{self.disk}/runs/{name}/run.json", said)
        self.finish(config, expected, "beside damaged records")

    def test_a_damaged_memo_of_staging_is_passed_over(self):
        config = self.native()
        expected = self.undisturbed(config)
        self.assertEqual(self.life(config)[0], 0)
        memo = list((self.disk / "state" / "staging").glob("*.json"))
        self.assertEqual(len(memo), 1)
        for harm in (self.flip, self.cut_short, lambda p: p.write_bytes(b"")):
            harm(memo[0])
            for run in self.runs():
                (run / "results.json").unlink()
                run.rename(self.folder / f"old-{self.rng.random()}")
            status, said = self.life(config)
            self.assertEqual(status, 0, said)
            self.compare(self.runs()[0], expected, "with a damaged memo")


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
