"""Tasks whose answers are programs: from a file of answers to results, and what is refused before the run."""
import json
import os
import unittest

from evald_case import EvaldCase

TASK = """\
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: rows.jsonl}}}}
test_split: test
unsafe_code: true
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{tests}}}}"
repeats: {repeats}
generation_kwargs: {{until: ["<end>"], do_sample: true, temperature: 0.5}}
filter_list: [{{name: code, filter: [{{function: code_block}}]}}]
metric_list: [{{metric: passes, {arguments}}}]
"""

SUM = "print(sum(map(int, input().split())))"
CASES = json.dumps([{"input": f"{i} {i}\n", "output": f"{2 * i}\n", "testtype": "stdin"} for i in range(3)])


def fenced(code):
    return f"Here is the program:\n```\n{code}\n```\n"


class Programs(EvaldCase):
    def write_task(self, rows, name="programs", arguments="language: python", repeats=1):
        (self.tasks / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.tasks / f"{name}.yaml").write_text(TASK.format(name=name, arguments=arguments, repeats=repeats))

    def score(self, answers):
        file = self.folder / "answers.jsonl"
        file.write_text("".join(json.dumps({"task_id": task, "completion": text}) + "\n" for task, text in answers))
        done = self.evald("score", "--task", "programs", "--task-dir", self.tasks, "--generations", file, "--json",
                          "--output", self.folder / "runs", env={**os.environ, "XDG_CACHE_HOME": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["results"]["programs"]

    def test_programs_that_read_and_write_give_pass_at_k(self):
        rows = [{"task_id": f"T/{i}", "question": "Add.", "tests": "", "cases": CASES} for i in range(2)]
        self.write_task(rows, arguments="cases: cases, k: [1, 2]", repeats=2)
        result = self.score([("T/0", fenced(SUM)), ("T/0", fenced("print(0)")),
                             ("T/1", fenced("while True: pass")), ("T/1", "no program")])
        self.assertEqual(result["pass@1,code"], 0.25)
        self.assertEqual(result["pass@2,code"], 0.5)

    def test_each_document_names_its_language(self):
        rows = [{"task_id": "T/0", "question": "Twice.", "language": "sh", "tests": "[[ $(twice 4) = 8 ]]"},
                {"task_id": "T/1", "question": "Twice.", "language": "py", "tests": "assert twice(4) == 8"},
                {"task_id": "T/2", "question": "Twice.", "language": "pl", "tests": "die unless twice(4) == 8;"}]
        self.write_task(rows, arguments="language_column: language")
        result = self.score([("T/0", fenced("twice() { echo $(($1 * 2)); }")),
                             ("T/1", fenced("def twice(x): return 2 * x")),
                             ("T/2", fenced("sub twice { return 3 * $_[0]; }"))])
        self.assertAlmostEqual(result["passes,code"], 2 / 3)

    def test_what_cannot_be_scored_is_refused_before_the_run(self):
        rows = [{"task_id": "T/0", "question": "?", "tests": "", "language": "cobol"}]
        for arguments, message in (("language: pyton", "did you mean 'python'"),
                                   ("language_column: language", "the language 'cobol' is not known"),
                                   ("cases: casses", "has no column 'casses'"),
                                   ("cases: tests", "has no tests")):
            with self.subTest(arguments):
                self.write_task(rows, arguments=arguments)
                done = self.evald("run", self.write_config(tasks=["programs"]), "--quiet")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(message, done.stderr)

    def test_a_missing_compiler_is_named_with_the_line_that_installs_it(self):
        tools = {"lua": "lua5.4", "php": "php", "ruby": "ruby", "go": "go", "rust": "rustc", "typescript": "tsc"}
        missing = [name for name, tool in tools.items() if not os.path.exists(f"/usr/bin/{tool}")]
        if not missing:
            self.skipTest("every compiler is installed")
        self.write_task([{"task_id": "T/0", "question": "?", "tests": ""}], arguments=f"language: {missing[0]}")
        config = self.write_config(tasks=["programs"])
        for command in ("validate", "run"):
            done = self.evald(command, config)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(f"need /usr/bin/{tools[missing[0]]}, which is not there", done.stderr)
            self.assertIn("apt-get install", done.stderr)


if __name__ == "__main__":
    unittest.main()
