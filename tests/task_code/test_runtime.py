"""The process that runs the Python functions of tasks (task_code/runtime), and its stand-in for the package datasets."""
import json
import os
import pathlib
import random
import site
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RUNTIME = ROOT / "task_code" / "runtime"
GOLDEN = ROOT / "tests" / "golden" / "task_code" / "rows.json"
GENERATED = ROOT / "tests" / "golden" / "metrics" / "generated.json"
sys.path.insert(0, str(RUNTIME))
from evald_task import metrics, rows  # noqa: E402
from row_operations import DRAWN, OPERATIONS, shown  # noqa: E402

try:
    import numpy  # noqa: F401
except ImportError:
    DRAWN = {}


class Rows(unittest.TestCase):
    def test_answers_are_those_of_the_package(self):
        cases = json.loads(GOLDEN.read_text())
        self.assertEqual(len(cases), 60)
        for case in cases:
            table = rows.Dataset.from_list(case["rows"])
            for name, operation in {**OPERATIONS, **DRAWN}.items():
                # Written as JSON, since 1 and 1.0 and True are equal in Python.
                found = json.dumps(shown(lambda: operation(table)))
                self.assertEqual(found, json.dumps(case["answers"][name]), (name, case["rows"]))

    def test_nothing_changes_the_table_itself(self):
        table = rows.Dataset.from_list([{"a": [1], "b": {"c": 2}}])
        for row in table:
            row["a"].append(5)
            row["b"]["c"] = 7
        table[0]["a"].append(6)
        table["a"][0].append(6)
        self.assertEqual(table.to_list(), [{"a": [1], "b": {"c": 2}}])

    def test_what_is_not_served_is_said(self):
        table = rows.Dataset.from_list([{"a": 1}])
        with self.assertRaisesRegex(TypeError, "keep_everything is not served without the package 'datasets'"):
            table.map(lambda row: row, keep_everything=True)
        with self.assertRaisesRegex(KeyError, "Column b not in the dataset"):
            table["b"]


class Metrics(unittest.TestCase):
    def test_values_are_the_harness_s(self):
        golden = json.loads(GENERATED.read_text())
        functions, equal = {}, 0
        exec(golden["own"], functions)
        for case in golden["cases"]:
            metric = case["metrics"][0]
            if "function" not in metric:
                continue  # tests/unit/metrics/generated_test.cc
            gold, result, several = case["gold"], case["result"], case["several"]
            if not several and type(gold) is not type(result) and not isinstance(result, list):
                if not isinstance(result, str):
                    continue  # evald casts the gold answer to text alone
                gold = str(gold)
            try:
                value = metrics.value_of(functions[metric["metric"]], metric["metric"], gold, result, metric["kwargs"], several)
            except Exception as error:
                self.assertEqual(type(error).__name__, case.get("error"), case)
                continue
            found = value if isinstance(value, dict) else {metric["metric"]: value}
            self.assertEqual(json.dumps(found), json.dumps(case.get("values")), case)
            equal += 1
        self.assertGreater(equal, 200)


class Process:
    """A process of the runtime, started and asked as evald does, but outside of a sandbox."""

    def __init__(self):
        ours, theirs = socket.socketpair()
        texts = {path.stem: path.read_text() for path in sorted((RUNTIME / "evald_task").glob("*.py"))}
        folder = tempfile.TemporaryDirectory()
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-s", "-B", "-c", (RUNTIME / "start.py").read_text(),
             json.dumps(site.getsitepackages()), json.dumps(texts), str(theirs.fileno()), "boxed"],
            pass_fds=(theirs.fileno(),), stderr=subprocess.PIPE, text=True, env={"TMPDIR": folder.name})
        theirs.close()
        self.channel = ours.makefile("rw")
        ours.close()
        self.wanted = []

    def send(self, message):
        self.channel.write(json.dumps(message) + "\n")
        self.channel.flush()
        return json.loads(self.channel.readline())

    def ask(self, call, **members):
        answer = self.send({"call": call, **members})
        while "want" in answer:
            self.wanted.append(answer["want"])
            answer = self.send(self.file(pathlib.Path(answer["want"])))
        return answer

    @staticmethod
    def file(path):
        if path.is_file():
            return {"file": path.read_bytes().decode("latin-1")}
        return {"folder": True} if path.is_dir() else {}

    def end(self):
        self.channel.close()
        _, said = self.process.communicate(timeout=30)
        self.folder.cleanup()
        return self.process.returncode, said


class Calls(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.process = Process()
        self.addCleanup(self.process.end)

    def write(self, text, name="utils.py", folder=""):
        path = pathlib.Path(self.folder, folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return str(path.parent)

    def ask(self, call, **members):
        answer = self.process.ask(call, **members)
        self.assertIn("ok", answer, answer)
        return answer["ok"]

    def fault(self, call, **members):
        answer = self.process.ask(call, **members)
        self.assertIn("error", answer, answer)
        return answer["error"]

    def load(self, name, folder=None):
        function = [folder or self.folder, name]
        self.ask("load", folder=function[0], name=name, seed=7)
        return function

    def table(self, documents):
        return self.ask("rows", rows=documents, columns=list(documents[0]))["table"]

    def test_documents_are_processed_read_and_asked_for_their_texts(self):
        self.write("""
            def process_docs(dataset):
                return dataset.filter(lambda doc: doc["n"] % 2).map(lambda doc: {"double": 2 * doc["n"]})
            def doc_to_text(doc):
                return f"{doc['n']} and {doc['double']}"
            """)
        process_docs, doc_to_text = self.load("utils.process_docs"), self.load("utils.doc_to_text")
        table = self.table([{"n": i} for i in range(5)])
        self.ask("rows", rows=[{"n": 5}], columns=["n"], table=table)
        made = self.ask("process_docs", function=process_docs, table=table)
        self.assertEqual((made["count"], made["columns"]), (3, ["n", "double"]))
        self.assertEqual(self.ask("read", table=made["table"], first=1, count=9)["values"],
                         [[{"n": 3, "double": 6}], [{"n": 5, "double": 10}]])
        self.assertEqual(self.ask("apply", function=doc_to_text, table=made["table"], first=0, count=3)["values"],
                         [["1 and 2"], ["3 and 6"], ["5 and 10"]])

    def test_documents_are_drawn_with_the_harness_s_seed(self):
        self.write("""
            import random
            def process_docs(dataset):
                return dataset.map(lambda doc: {"drawn": random.random()})
            def samples():
                return [{"drawn": random.random()}]
            """)
        process_docs, samples = self.load("utils.process_docs"), self.load("utils.samples")
        first = random.Random(0).random()
        for _ in range(2):
            made = self.ask("process_docs", function=process_docs, table=self.table([{"n": 0}]))
            self.assertEqual(self.ask("read", table=made["table"], first=0, count=1)["values"], [[{"n": 0, "drawn": first}]])
            made = self.ask("samples", function=samples)
            self.assertEqual(self.ask("read", table=made["table"], first=0, count=1)["values"], [[{"drawn": first}]])

    def test_long_answers_come_in_parts(self):
        documents = self.ask("documents", table=self.table([{"text": "x" * 300_000} for _ in range(9)]))
        read = self.ask("read", table=documents["table"], first=0, count=9)["values"]
        self.assertEqual(len(read), 4)

    def aggregated(self, name, values, metric=""):
        items = self.ask("items", values=values[:1])["items"]
        self.ask("items", values=values[1:], items=items)
        return self.ask("aggregate", function=self.load(name), items=items, metric=metric)["value"]

    def test_values_that_json_would_change_come_back_as_they_were(self):
        self.write("""
            import math
            def process_results(doc, results):
                return {"all": {"pair": (results[0], doc["n"]), "nan": math.nan, "set": {1}, "big": 1 << 70, 5: "five"},
                        "plain": [doc["n"], "a"], "dropped": (1, 2)}
            def aggregate(items):
                assert all(type(item) is dict and type(item["pair"]) is tuple and type(item["set"]) is set for item in items)
                assert items[0]["big"] == 1 << 70 and math.isnan(items[0]["nan"]) and items[0][5] == "five"
                return sum(item["pair"][1] for item in items) / len(items)
            """)
        process = self.load("utils.process_results")
        values = self.ask("process_results", function=process, documents=[[{"n": 1}], [{"n": 2}]], results=[["a"], ["b"]],
                          form="texts", keep=["all", "plain", "absent"])["values"]
        shown, kept = values[1]
        self.assertEqual(shown["all"], {"pair": ["b", 2], "nan": "nan", "set": [1], "big": str(1 << 70), "5": "five"})
        self.assertEqual(list(kept), ["all"])  # JSON holds the others, or no function gets them
        packed = [[shown["all"], kept["all"]] for shown, kept in values]
        self.assertEqual(self.aggregated("utils.aggregate", packed), 1.5)

    def test_values_of_built_in_metrics_have_the_types_of_the_harness(self):
        self.write("""
            def shown(items):
                return repr(items)
            def kinds(items):
                return [[type(part).__name__ for part in item] for item in items]
            """)
        for metric, values, shown in (("acc", [1.0, "-inf"], "[1.0, -inf]"), ("exact_match", [1, 0.5], "[1, 0.5]"),
                                      ("word_perplexity", [["-inf", 3], [-2.5, 4]], "[(-inf, 3), (-2.5, 4)]"),
                                      ("likelihood", [[1, [-1.5, "-inf"]], [[0, 2], []]], "[(1, (-1.5, -inf)), ([0, 2], ())]")):
            self.assertEqual(self.aggregated("utils.shown", [[value] for value in values], metric), shown)
        numpy = self.process.ask("load", folder="", name="numpy.array", seed=1).get("ok")
        kinds = self.aggregated("utils.kinds", [[[0, 1]], [[[0, 2], 1]]], "f1")
        self.assertEqual(kinds, [["int", "int64" if numpy else "int"], ["list", "int64" if numpy else "int"]])
        kinds = self.aggregated("utils.kinds", [[[0, [0.25, 0.75]]], [[1, [0.5, 0.5]]]], "brier_score")
        self.assertEqual(kinds, [["int", "ndarray" if numpy else "list"]] * 2)

    def test_an_aggregation_may_give_anything_and_draws_with_the_seed_of_the_harness(self):
        self.write("""
            import random, math
            def drawn(items): return random.random()
            def nan(items): return math.nan
            def named(items): return {"short": 0.5, 8: True}
            def none(items): return None
            """)
        for _ in range(2):
            self.assertEqual(self.aggregated("utils.drawn", [[1]]), random.Random(0).random())
        self.assertEqual(self.aggregated("utils.nan", [[1]]), "nan")
        self.assertEqual(self.aggregated("utils.named", [[1]]), {"short": 0.5, "8": True})
        self.assertIsNone(self.aggregated("utils.none", [[1]]))

    def test_lm_eval_s_own_aggregations_are_known(self):
        folder = self.write("from lm_eval.api.metrics import mean as average\ndef mean(items): return 0\n")
        load = lambda name: self.ask("load", folder=folder, name=name, seed=1)["aggregation"]
        self.assertEqual((load("utils.average"), load("utils.mean")), ("mean", ""))

    def test_responses_have_the_types_that_the_harness_gives_them(self):
        self.write("def shown(doc, results): return {'shown': repr(results)}\n")
        function = self.load("utils.shown")
        for form, results, shown in (("pairs", [[-1, False], ["-inf", True]], "[(-1.0, False), (-inf, True)]"),
                                     ("numbers", ["nan", -2.5], "[nan, -2.5]"), ("texts", [["a"], "b"], "[['a'], 'b']")):
            values = self.ask("process_results", function=function, documents=[[{}]], results=[results], form=form)["values"]
            self.assertEqual(values, [[{"shown": shown}, {}]])

    FILTERS = """
        from lm_eval.filters.extraction import RegexFilter
        def upper(resps, docs):
            return [[text.upper() + str(doc["n"]) for text in texts] for texts, doc in zip(resps, docs)]
        class Numbers(RegexFilter):
            def __init__(self, ending, **settings):
                super().__init__(**settings)
                self.ending = ending
            def apply(self, resps, docs):
                return map(lambda texts: [text + self.ending for text in texts], super().apply(resps, docs))
        def kind(resps, docs):
            return [type(resps).__name__ for _ in resps]
        def drawn(resps, docs):
            import random
            return [random.random() for _ in resps]
        def counted(resps, docs):
            return [len(docs) for _ in resps]
        """

    def filtered(self, name, responses, document=None, custom=True, lazy=False, **settings):
        return self.ask("filter", function=self.load(name), custom=custom, settings=settings, responses=responses,
                        document=[document or {"n": 1}], lazy=lazy)

    def test_a_filter_is_a_function_or_a_class(self):
        self.write(self.FILTERS)
        self.assertEqual(self.filtered("utils.upper", ["a 12", "b"]), {"left": ["A 121", "B1"], "lazy": False})
        numbers = self.filtered("utils.Numbers", ["a 3 4", "b"], custom=False, ending="!", regex_pattern=r"(\d+)", group_select=-1)
        self.assertEqual(numbers, {"left": ["4!", "[invalid]!"], "lazy": True})
        self.assertEqual([self.filtered("utils.kind", ["a"], lazy=lazy)["left"] for lazy in (False, True)], ["list", "map"])
        self.assertEqual(self.filtered("utils.drawn", ["a"]), self.filtered("utils.drawn", ["b"]))  # by the document
        self.assertNotEqual(self.filtered("utils.drawn", ["a"]), self.filtered("utils.drawn", ["a"], {"n": 2}))

    def test_what_is_no_result_of_a_filter_is_refused(self):
        for code, custom, message in (
                ("def f(resps, docs): return resps[:0]", True, "0 lists of responses for 1 documents"),
                ("def f(resps, docs): pass", True, "gives None, expected a list with an entry for each document"),
                ("def f(resps, docs): return tuple(resps)", True, "of type tuple, expected a list or an iterator"),
                ("def f(resps, docs): return [('a',)]", True, "('a',) of type tuple for a document"),
                ("def f(resps, docs): return [[float('nan')]]", True, "[nan] of type list for a document"),
                ("def f(resps, docs): return (map(str, texts) for texts in resps)", True, "of type map for a document"),
                ("def f(resps, docs):\n    for doc in docs: doc['seen'] = 1\n    return resps", True, "the filter changes the responses"),
                ("def f(resps, docs):\n    for texts in resps: texts[0] = 'A'\n    return resps", True, "the filter changes the responses"),
                ("def f(resps, docs): return resps", False, "missing 2 required positional arguments"),
                ("def f(**settings): return settings", False, "has no attribute 'apply'")):
            with self.subTest(code=code):
                self.setUp()
                self.write(code + "\n")
                fault = self.fault("filter", function=self.load("utils.f"), custom=custom, settings={}, responses=["a"], document=[{}],
                                   lazy=False)
                self.assertIn(message, fault["message"])

    def checked(self, name, items, custom=True, **settings):
        number = self.ask("items", values=[{"doc_id": i, "document": [{"n": i}], "given": given, "left": left}
                                           for i, (given, left) in enumerate(items)])["items"]
        return self.ask("check_filter", function=self.load(name), custom=custom, settings=settings, items=number, lazy=False, seed=1)

    def test_a_filter_gives_the_same_for_all_documents_together(self):
        self.write(self.FILTERS)
        self.assertEqual(self.checked("utils.upper", [(["a"], ["A0"]), (["b"], ["B1"])]), {})
        self.assertEqual(self.checked("utils.upper", [(["a"], ["A0"]), (["b"], ["B"])]),
                         {"document": 1, "alone": "['B']", "together": "['B1']"})
        self.assertEqual(self.checked("utils.counted", [([], 1), ([], 1)]), {"document": 0, "alone": "1", "together": "2"})
        self.assertEqual(self.checked("utils.counted", [([], True)]), {"document": 0, "alone": "True", "together": "1"})

    METRICS = """
        def near(predictions, references, least=1):
            return float(predictions[0].startswith(references[0][:least]))
        def pair(items):
            return items
        def own(references, predictions):
            return {"own": len(predictions[0])}
        def exact_match(references, predictions):
            return {"exact_match": sum(a == b for a, b in zip(references, predictions)) / len(references)}
        """

    def scored(self, name, gold, result, several=False, takes="number", **settings):
        return self.ask("metric", function=self.load(name), name=name.split(".")[1], gold=gold, result=result, settings=settings,
                        several=several, takes=takes)["value"]

    def test_a_metric_is_called_as_the_harness_calls_it(self):
        self.write(self.METRICS)
        self.assertEqual(self.scored("utils.near", "abc", "abx"), [1.0])
        self.assertEqual(self.scored("utils.near", "abc", "abx", least=3), [0.0])
        self.assertEqual(self.scored("utils.own", "abc", "abx"), [3])
        self.assertEqual(self.scored("utils.pair", "abc", "abx", takes="function"), [["abc", "abx"]])  # a list, as in the harness
        self.assertEqual(self.scored("utils.pair", "abc", "abx", takes="function", least=3), [["abc", "abx"]])
        for golds, result, value in ((["x", "a"], "a", 1.0), (["x"], "a", 0.0), ([], "a", 0.0)):
            self.assertEqual(self.scored("utils.near", golds, result, several=True), [value])
        self.assertEqual(self.scored("utils.pair", ["x"], "a", several=True), [1.0])
        self.assertEqual(self.scored("utils.pair", [], "a", several=True), [0.0])
        self.assertEqual(self.scored("utils.exact_match", ["x", "a"], "a", several=True), [1.0])
        self.assertEqual(self.scored("utils.exact_match", "a", "a"), [1.0])

    def test_values_of_a_metric_fit_its_aggregation(self):
        for value, takes, found in (("1.5", "number", [1.5]), ("True", "number", [True]), ("float('nan')", "number", ["nan"]),
                                    ("(1, 0)", "any", [[1, 0]]), ("{'f': 2}", "number", [2]),
                                    ("'text'", "number", "'text' of type str, expected a number"),
                                    ("None", "number", "None of type NoneType, expected a number"),
                                    ("1 << 70", "number", "of type int, expected a number"), ("[1]", "number", "of type list, expected a number"),
                                    ("1j", "number", "of type complex, expected a number"),
                                    ("{'f': 2, 'g': 3}", "number", "a mapping of ['f', 'g'], expected a value, or a mapping with the one key 'f'")):
            with self.subTest(value=value):
                self.setUp()
                self.write(f"def f(references, predictions): return {value}\n")
                call = {"function": self.load("utils.f"), "name": "f", "gold": "a", "result": "b", "settings": {}, "several": False,
                        "takes": takes}
                if isinstance(found, list):
                    self.assertEqual(self.ask("metric", **call)["value"], found)
                else:
                    self.assertIn(found, self.fault("metric", **call)["message"])

    @unittest.skipUnless("numpy" in sys.modules, "numpy is not installed for this Python")
    def test_numbers_of_numpy_with_fewer_bits_are_refused(self):
        self.write("import numpy\ndef wide(references, predictions): return numpy.float64(0.1)\n"
                   "def yes(references, predictions): return numpy.bool_(True)\n"
                   "def narrow(references, predictions): return numpy.float32(0.1)\n")
        self.assertEqual(self.scored("utils.wide", "a", "b"), [0.1])
        self.assertEqual(self.scored("utils.yes", "a", "b"), [True])
        fault = self.fault("metric", function=self.load("utils.narrow"), name="narrow", gold="a", result="b", settings={}, several=False,
                           takes="number")
        self.assertIn("of type float32, expected a number", fault["message"])

    def test_a_function_that_tries_to_start_a_program_gives_no_score(self):
        self.write("""
            import importlib.abc, importlib.machinery, subprocess, sys
            class Looks(importlib.abc.MetaPathFinder, importlib.abc.Loader):
                def find_spec(self, name, path=None, target=None):
                    return importlib.machinery.ModuleSpec(name, self) if name == "looks" else None
                def create_module(self, spec):
                    return None
                def exec_module(self, module):
                    hidden([], [])
            def hidden(references, predictions):
                try:
                    subprocess.run(["no_such_program"], check=True)
                    return 1
                except Exception:
                    return 0
            def other(references, predictions):
                return 1
            def results(doc, results):
                return {"x": hidden([], [])}
            def loaded(items):
                sys.meta_path.insert(0, Looks())
                import looks
                return len(items)
            """)
        fault = self.fault("metric", function=self.load("utils.hidden"), name="hidden", gold="a", result="b", settings={}, several=False,
                           takes="number")
        self.assertRegex(fault["message"], "tries to start a program .*no_such_program.*, which task code may not")
        self.assertEqual(self.scored("utils.other", "a", "b"), [1])
        fault = self.fault("process_results", function=self.load("utils.results"), documents=[[{}]], results=[["a"]], form="texts")
        self.assertIn("tries to start a program", fault["message"])
        self.assertEqual(self.aggregated("utils.loaded", [[1], [2]]), 2)  # modules may look for programs while they are imported

    def test_a_metric_has_the_name_of_its_function(self):
        self.write("def first(references, predictions): return 1\nsecond = first\n")
        self.assertEqual(self.ask("load", **dict(zip(("folder", "name"), self.load("utils.second"))), seed=1)["name"], "first")
        fault = self.fault("metric", function=self.load("utils.second"), name="second", gold="a", result="b", settings={}, several=False,
                           takes="number")
        self.assertIn("the function calls itself 'first'", fault["message"])

    def test_a_fault_names_file_line_and_document(self):
        folder = self.write("""
            def doc_to_text(doc):
                return doc["absent"]
            def none(dataset):
                pass
            """)
        documents = self.ask("documents", table=self.table([{"absent": "here"}, {"absent": "there"}]))
        self.ask("apply", function=self.load("utils.doc_to_text"), table=documents["table"], first=0, count=2)
        documents = self.ask("documents", table=self.table([{"n": 1}]))
        fault = self.fault("apply", function=self.load("utils.doc_to_text"), table=documents["table"], first=0, count=1)
        self.assertEqual(fault, {"type": "KeyError", "message": "'absent'", "at": f"{folder}/utils.py:3", "document": 0})
        fault = self.fault("process_docs", function=self.load("utils.none"), table=self.table([{"n": 1}]))
        self.assertIn("gives None, expected documents", fault["message"])

    def test_a_module_that_is_missing_or_wrong_is_named(self):
        folder = self.write("import no_such_package.inside\ndef f(doc): pass\n", "missing.py")
        self.assertEqual(self.fault("load", folder=folder, name="missing.f", seed=1)["missing"], "no_such_package")
        self.write("def f(doc:\n", "wrong.py")
        fault = self.fault("load", folder=folder, name="wrong.f", seed=1)
        self.assertEqual((fault["type"], fault["at"]), ("SyntaxError", f"{folder}/wrong.py:1"))
        self.write("from datasets import interleave_datasets\n", "package.py")
        self.assertIn("datasets", self.fault("load", folder=folder, name="package.f", seed=1)["message"])
        self.write("f = 1\n", "empty.py")
        self.assertIn("has no function 'g'", self.fault("load", folder=folder, name="empty.g", seed=1)["message"])

    def test_modules_of_lm_eval_tasks_find_one_another(self):
        root = "lm_eval/tasks/"
        self.write("WORDS = ['a', 'b']\n", "common.py", root + "first")
        folder = self.write("""
            from lm_eval.tasks.first.common import WORDS
            from .beside import more
            def samples():
                return [{"word": word} for word in WORDS + more]
            """, folder=root + "second")
        self.write("more = ['c']\n", "beside.py", root + "second")
        made = self.ask("samples", function=self.load("utils.samples", folder))
        self.assertEqual(self.ask("read", table=made["table"], first=0, count=9)["values"], [[{"word": w}] for w in "abc"])

    def test_a_module_reads_the_files_beside_it(self):
        folder = self.write("""
            import json, pathlib
            NAMES = json.loads((pathlib.Path(__file__).resolve().parent.parent / "names.json").read_text())
            def f(doc):
                with open(__file__.replace("utils.py", "late.txt")) as late:
                    return NAMES[doc["n"]] + late.read()
            """, folder="inner")
        self.write('["a", "b"]', "names.json")
        self.write("!", "late.txt", folder="inner")
        function = self.load("utils.f", folder)
        documents = self.ask("documents", table=self.table([{"n": 1}]))
        ask = lambda: self.ask("apply", function=function, table=documents["table"], first=0, count=1)
        self.assertEqual((ask(), ask()), ({"values": [["b!"]]},) * 2)
        paths = [f"{folder}/utils.py", f"{self.folder}/names.json", f"{folder}/late.txt"]
        self.assertEqual(self.process.wanted, paths)  # each once

    def test_a_score_does_not_depend_on_the_documents_scored_before(self):
        self.write("import random\ndef score(doc, results): return {'acc': random.random()}\n")
        function = self.load("utils.score")

        def scores(documents):
            answer = self.ask("process_results", function=function, documents=[[one] for one in documents],
                              results=[["a"]] * len(documents), form="texts")
            return [value[0]["acc"] for value in answer["values"]]

        documents = [{"n": i} for i in range(6)]
        together = scores(documents)
        self.assertEqual(len(set(together)), 6)
        self.assertEqual(together, [scores([document])[0] for document in documents])
        self.assertEqual(together, scores(documents[::-1])[::-1])

    def test_a_target_that_is_a_tuple_may_be_asked_for_as_text(self):
        self.write("def f(doc): return ('a', doc['n']) if doc['n'] else ['a']\n")
        documents = self.ask("documents", table=self.table([{"n": 1}, {"n": 0}]))
        ask = lambda **how: self.ask("apply", function=self.load("utils.f"), table=documents["table"], first=0, count=2, **how)  # noqa: E731
        self.assertEqual([value[0] for value in ask()["values"]], [["a", 1], ["a"]])
        self.assertEqual(ask(tuples_as_text=True)["values"], [["('a', 1)"], [["a"]]])

    def test_what_functions_print_is_no_answer(self):
        self.write("print('imported')\ndef f(doc):\n    print('called')\n    return 1\n")
        documents = self.ask("documents", table=self.table([{"n": 1}]))
        self.assertEqual(self.ask("apply", function=self.load("utils.f"), table=documents["table"], first=0, count=1)["values"], [[1]])
        self.assertEqual(self.process.end(), (0, "imported\ncalled\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
