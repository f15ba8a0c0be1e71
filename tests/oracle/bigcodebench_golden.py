#!/usr/bin/env python3
"""Makes tests/golden/metrics/bigcodebench.jsonl: verdicts of BigCodeBench's own executor on made-up problems and answers.

    pip install --no-deps bigcodebench ; pip install numpy psutil
    bigcodebench_golden.py > tests/golden/metrics/bigcodebench.jsonl

A line is {"code_prompt", "complete_prompt", "test", "answer", "passed"}. The program is made as `bigcodebench.evaluate` makes
a calibrated one: the head, `pass`, then prompt and answer.
"""

import json

from bigcodebench.eval import PASS, untrusted_check

IMPORTS = "import os\nimport random\n"
HEAD = IMPORTS + "def task_func(values):\n"
PROMPT = IMPORTS + 'def task_func(values):\n    """The sum of the values, ä included."""\n'
TEST = """import unittest
class TestCases(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(task_func([1, 2]), 3)
    def test_none(self):
        self.assertEqual(task_func([]), 0)
"""
RIGHT = "    return sum(values)\n"


def tests(body, head="import os, sys, tempfile, unittest\nfrom unittest.mock import patch\n", base="unittest.TestCase"):
    return f"{head}class TestCases({base}):\n" + "".join(f"    {line}\n" for line in body.splitlines())


CASES = [
    (TEST, RIGHT),
    (TEST, "    return 3\n"),
    (TEST, "    return sum(values"),
    (TEST, ""),
    (TEST, "    return sum(values)\nraise ValueError('late')\n"),
    (TEST, "    import sys\n    sys.exit(0)\n"),
    (TEST, RIGHT + "import sys\nsys.exit(0)\n"),
    (TEST, RIGHT + "os._exit(0)\n"),
    (TEST, "    os._exit(0)\n"),
    (TEST, "    raise KeyboardInterrupt\n"),
    (TEST, "\treturn sum(values)\n"),
    (TEST, RIGHT + "if __name__ == '__main__':\n    raise SystemExit(1)\n"),
    (TEST, RIGHT + "class TestCases:\n    pass\n"),
    (TEST, RIGHT + "for i in range(1000):\n    print('x' * 100)\n"),
    (TEST, RIGHT + "del task_func\n"),
    ("import unittest\n", RIGHT),
    ("class TestCases:\n    pass\n", RIGHT),
    (tests("pass"), RIGHT),
    (tests("def test_skip(self):\n    self.skipTest('no')"), RIGHT),
    (tests("@unittest.expectedFailure\ndef test_fails(self):\n    self.fail()"), RIGHT),
    (tests("@unittest.expectedFailure\ndef test_passes(self):\n    pass"), RIGHT),
    (tests("def test_parts(self):\n    for i in range(3):\n        with self.subTest(i):\n            self.assertLess(i, 2)"), RIGHT),
    (tests("@classmethod\ndef setUpClass(cls):\n    raise OSError\ndef test_any(self):\n    pass"), RIGHT),
    (tests("def setUp(self):\n    open('here.txt', 'w').write('1')\ndef tearDown(self):\n    os.remove('here.txt')\n"
           "def test_file(self):\n    self.assertTrue(os.path.exists('here.txt'))"), RIGHT),
    (tests("def test_patched(self):\n    with patch('__test__.random.random', return_value=2):\n"
           "        self.assertEqual(task_func([]), 2)"), "    return random.random()\n"),
    (tests("@patch('builtins.print')\ndef test_told(self, told):\n    task_func([1])\n    told.assert_called_once_with(1)"),
     "    print(sum(values))\n"),
    (tests("async def test_awaited(self):\n    self.assertEqual(task_func([1]), 1)", base="unittest.IsolatedAsyncioTestCase"), RIGHT),
    (tests("def test_output(self):\n    import io, contextlib\n    out = io.StringIO()\n    with contextlib.redirect_stdout(out):\n"
           "        task_func([4])\n    self.assertEqual(out.getvalue(), '4\\n')"), "    print(sum(values))\n"),
    (tests("def test_input(self):\n    with patch('builtins.input', return_value='7'):\n        self.assertEqual(task_func([]), 7)"),
     "    return int(input())\n"),
]


def passed(test, answer):
    code = HEAD + "\n    pass\n" + PROMPT + answer
    verdict, _ = untrusted_check(code, test, "task_func", 30 * 1024, 30 * 1024, 10, min_time_limit=5, gt_time_limit=5)
    return verdict == PASS


def main():
    for test, answer in CASES:
        line = {"code_prompt": HEAD, "complete_prompt": PROMPT, "test": test, "answer": answer, "passed": passed(test, answer)}
        print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
