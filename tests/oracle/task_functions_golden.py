#!/usr/bin/env python3
"""Makes tests/golden/datasets/task_functions.json: what the Python functions of lm-evaluation-harness 0.4.13 give that evald
has built in (datasets/functions.cc, metrics/scoring/task_results.cc, metrics/bbh_filters.cc), for 10,000 made-up documents
each. Documents are odd: brackets that do not close, empty texts, missing values, characters of many scripts.

The file holds no documents but recipes, by which tests/unit/datasets/task_functions_test.cc makes the same ones: both sides
draw with random.Random of CPython. It has the first outputs, and of all a hash for each 100.

    task_functions_golden.py > tests/golden/datasets/task_functions.json

It needs lm_eval 0.4.13 with sacrebleu and rouge_score (which the module of truthfulqa imports), scipy and numpy. numpy's exp
is the C library's where its own for AVX-512 is switched off, as below.
"""
import contextlib
import hashlib
import importlib
import io
import json
import os
import random
import sys
import warnings

os.environ.setdefault("NPY_DISABLE_CPU_FEATURES", "X86_V4 AVX512_ICL AVX512_SPR")
warnings.simplefilter("ignore")

DOCUMENTS, BLOCK, SHOWN, SEED = 10_000, 100, 20, 20261127
OWN_SEED = 42

POOLS = {
    "prose": ["The cat", "sat on", "the mat", " ", "  ", "   ", ".", ". ", "\n", "\t", "\u00a0", "\u2003", "[title]", " [title]",
              "[header] ", "[", "]", "[a b]", "[a\nb]", "été", "straße", "ǆ", "İstanbul", "ΟΔΟΣ", "中文", "🦊", "_", "x_y", "!",
              "'s", "A", "Z", "0", "9", "((", "))", "\"", "'", "\\", "\u200b", "e\u0301"],
    "wiki": [" @-@ ", " @,@ ", " @.@ ", " : ", " ; ", " . ", " ! ", " ? ", " , ", "( ", " )", "(", ")", "[ ", " ]", "[", "]", "{ ",
             " }", "{", "}", "\" ", " \"", "\"", "' ", " '", "'", "s '", " 's", "/' 5/", "/' 5", "/' ", "= = = =", "= = =", "= =",
             "= ", " =", " \u00b0 ", " \n", "\n ", "\n", " N ", "N", "game", "1999", " ", "  ", "\u00a0", "\u3000", "\x1f", "ß",
             "日本", "s", "5/", "<unk>"],
    "math": ["\\boxed{", "\\boxed ", "\\fbox{", "}", "}", "{", "$", "$", "\\frac", "\\frac{1}{2}", "\\dfrac{3}", "\\tfrac12",
             "\\sqrt", "\\sqrt3", "\\sqrt{2}", "1", "2", "12", "3/4", "/", "-", "=", "x = ", "k=", "xyz=", "0.5", ".5", " .5", "{.5}",
             "\\text{ ", "\\text{ cm}", "\\left(", "\\right)", "^{\\circ}", "^\\circ", "\\%", "%", "\\$", "\\!", "\\\\", "\n", " ",
             "é", "²", "٣", "_", "1_000", "00", "-0", "+5", "\\pi", ".", "\\n", "a", "b", ",", "x^2", "½", "\t"],
    "simple": ["1", "2", "3", "12", "-", "/", ".", "0.5", "x", "\\frac", "{", "}", "\\sqrt", " ", "=", "$", "\\pi", "a", "7"],
    "answer": ["1", "12", "3.0", "1,000", "-5", "$5", "a", "an", "the", "The", "A ", " an ", "cat's", "dog-house", " ", "  ", "-", ".",
               "!", "été", "Σ", "ΑΣ", "nan", "inf", "1e5", "1_0", "٣", "½", "\u00a0", "yards", "“", "”", "b", "bb", "theory",
               "an_", "_a", "0", "-0", "1.", "(2)", "%", "İ", "\t", "\n"],
    "word": ["yes", "no", "Yes", "True", "False", "not", "valid", "invalid", "(A)", "(B)", "(C)", "(a)", "A", "B", ": A", ":  B", ":C",
             " ", " ", "\n", ".", ",", "apple", "pear", "apple pear", "Pear", "fig", "figs", "-", "_", "é", "—", "(", ")", "^"],
    "sentence": ["the", "cat", "cats", "sat", " ", " ", " ", " ", " . ", ".", ". ", ",", "5", "1,000", "3.5", "½", "\n", "\n", "-", "'s",
                 "“", "”", "$", "€", "+", "<", "é", "Été", "日本", "。", "\u212a", "İ", "²", "٣", "\u00a0", "!", "_", "a", "A", "word"],
    "name": ["apple", "pear", "fig", "figs", "kiwi", "grape", "élan", "plum"],
}


def draw(rng, recipe):
    """A value that a recipe makes. The test has the same function in C++."""
    if "pick" in recipe:
        return recipe["pick"][rng.randrange(len(recipe["pick"]))]
    if "text" in recipe:
        pool = POOLS[recipe["text"]]
        return "".join(pool[rng.randrange(len(pool))] for _ in range(rng.randrange(recipe["most"] + 1)))
    if "join" in recipe:
        return "".join(draw(rng, part) for part in recipe["join"])
    if "list" in recipe:
        count = recipe["least"] + rng.randrange(recipe["most"] - recipe["least"] + 1)
        return [draw(rng, recipe["list"]) for _ in range(count)]
    if "object" in recipe:
        return {name: draw(rng, part) for name, part in recipe["object"].items()}
    if "number" in recipe:
        return rng.randrange(recipe["number"])
    if "likelihood" in recipe:
        return [-rng.randrange(recipe["likelihood"]) / 64, rng.randrange(2) == 1]
    if "optional" in recipe:
        return None if rng.randrange(recipe["of"]) == 0 else draw(rng, recipe["optional"])
    if "repr" in recipe:
        return repr(draw(rng, recipe["repr"]))
    raise ValueError(recipe)


def text(pool, most):
    return {"text": pool, "most": most}


def boxed(pool):
    """Mostly one box, mostly closed."""
    return {"join": [text(pool, 3), {"pick": ["\\boxed{", "\\boxed{", "\\boxed{", "\\boxed ", "\\fbox{", "\\boxed{{"]},
                     text("simple", 4), {"pick": ["}", "}", "}", "} $", "", "}}"]}, {"pick": ["", ".", " $x$", "\n$y$"]},
                     text(pool, 1)]}


DATE = {"object": {"day": {"pick": ["", "3"]}, "month": {"pick": ["", "May"]}, "year": {"pick": ["", "1999", " 8 "]}}}
SPANS = {"list": text("answer", 3), "least": 0, "most": 3}
NUMBER = {"pick": ["", "", "3", "1,000", "12.5"]}
PROBLEM = {"object": {"question": {"join": [text("prose", 4), {"pick": ["", "", "  _  .", " _ .", "  _  . "]}]},
                      "answer": {"pick": ["A", "B", "C", "D", "A", "B", "C", "D", "E"]},
                      "options": {"list": text("prose", 3), "least": 4, "most": 5}}}
BBH = {"input": {"join": [text("prose", 3), {"pick": ["", "Options:\n"]}, {"pick": ["(A) yes\n", "(A) apple\n", ""]},
                          {"pick": ["(B) no\n", "(B) apple pear\n", "(B)  Pear.\n"]}, {"pick": ["(C) fig", "", "(C) "]}]}}

RECIPES = {
    "hellaswag/utils.process_docs": {
        "kind": "docs", "doc": {"ctx_a": text("prose", 6), "ctx_b": text("prose", 4), "activity_label": text("prose", 2),
                                "endings": {"list": text("prose", 5), "least": 0, "most": 4}, "source_id": text("prose", 1),
                                "label": {"pick": [0, 1, "0", "1", "2", "3", " 2 ", "1_0", "٣", "x", "", True, 1.5]}}},
    "winogrande/preprocess_winogrande.doc_to_text": {"kind": "doc", "like": "winogrande"},
    "winogrande/preprocess_winogrande.doc_to_target": {"kind": "doc", "like": "winogrande"},
    "winogrande/preprocess_winogrande.doc_to_choice": {
        "kind": "doc", "name": "winogrande",
        "doc": {"sentence": {"join": [text("prose", 4), {"pick": ["_", "_", "_", " _ ", ""]}, text("prose", 4)]}, "option1": text("prose", 2), "option2": text("prose", 2),
                "answer": {"pick": ["1", "2", "1", "2", "", "3", None]}}},
    "race/preprocess_race.doc_to_text": {"kind": "doc", "like": "race"},
    "race/preprocess_race.doc_to_target": {"kind": "doc", "like": "race"},
    "race/preprocess_race.doc_to_choice": {
        "kind": "doc", "name": "race", "doc": {"article": text("prose", 8),
                                               "problems": {"repr": {"list": PROBLEM, "least": 1, "most": 4}}}},
    "mmlu_pro/utils.doc_to_text": {"kind": "doc", "like": "mmlu_pro"},
    "mmlu_pro/utils.fewshot_to_text": {"kind": "doc", "like": "mmlu_pro"},
    "mmlu_pro/utils.fewshot_to_target": {
        "kind": "doc", "name": "mmlu_pro",
        "doc": {"question": text("prose", 6), "options": {"list": text("prose", 3), "least": 0, "most": 12},
                "cot_content": {"join": [{"pick": ["", "A: Let's think step by step. ", "A: Let's think step by step."]},
                                         text("prose", 6)]},
                "category": {"pick": ["biology", "business", "chemistry", "computer science", "economics", "engineering", "health",
                                      "history", "law", "math", "other", "philosophy", "physics", "psychology", "Math", ""]}}},
    **{f"mmlu_pro/utils.process_{subject}": {"kind": "docs", "like": "mmlu_pro", "together": True}
       for subject in ("biology", "business", "chemistry", "computer_science", "economics", "engineering", "health", "history",
                       "law", "math", "other", "philosophy", "physics", "psychology")},
    "gpqa/zeroshot/utils.process_docs": {"kind": "docs", "like": "gpqa", "together": True},
    "gpqa/n_shot/utils.process_docs": {"kind": "docs", "like": "gpqa", "together": True},
    "gpqa/generative/utils.process_docs": {
        "kind": "docs", "name": "gpqa", "together": True,
        "doc": {"Question": text("prose", 5), "Correct Answer": {"optional": text("prose", 3), "of": 20},
                **{f"Incorrect Answer {n}": {"optional": text("prose", 3), "of": 20} for n in (1, 2, 3)}}},
    "wikitext/preprocess_wikitext.wikitext_detokenizer": {"kind": "doc", "like": "wikitext"},
    "wikitext/preprocess_wikitext.process_results": {
        "kind": "results", "name": "wikitext", "doc": {"page": text("wiki", 40)}, "results": {"list": {"number": 1000}, "least": 1,
                                                                                             "most": 1}},
    "drop/utils.process_docs": {
        "kind": "docs", "doc": {"query_id": text("answer", 1), "passage": text("prose", 3), "question": text("prose", 3),
                                "answer": {"object": {"number": NUMBER, "date": DATE, "spans": SPANS, "hit_id": text("name", 1)}},
                                "validated_answers": {"object": {
                                    "number": {"list": NUMBER, "least": 2, "most": 2},
                                    "date": {"list": DATE, "least": 2, "most": 2},
                                    "spans": {"list": SPANS, "least": 2, "most": 3}}}}},
    "drop/utils.process_results": {
        "kind": "results",
        "doc": {"answers": {"list": {"list": text("answer", 4), "least": 1, "most": 3}, "least": 0, "most": 3}},
        "results": {"list": text("answer", 6), "least": 1, "most": 1}},
    "hendrycks_math/utils.process_docs": {
        "kind": "docs", "doc": {"problem": text("math", 3), "level": text("name", 1), "solution": boxed("math")}},
    "hendrycks_math/utils.process_results": {
        "kind": "results", "doc": {"solution": boxed("simple")},
        "results": {"list": {"join": [{"pick": ["", "$", "The answer is $"]}, text("simple", 4), {"pick": ["", "$", "$."]},
                                      text("math", 1)]}, "least": 1, "most": 1}},
    "aime/utils.process_results": {
        "kind": "results", "doc": {"Problem": text("math", 1), "Answer": {"pick": ["1", "2", "12", "7", 12, 7, None, "\\frac12", "0.5"]}},
        "results": {"list": boxed("math"), "least": 1, "most": 1}},
    "agieval/utils.process_results": {
        "kind": "results", "doc": {"answer": {"optional": {"join": [text("simple", 3), text("math", 1)]}, "of": 20}},
        "results": {"list": {"join": [text("math", 4), text("simple", 3)]}, "least": 1, "most": 1}},
    "agieval/utils.process_results_mcqa": {
        "kind": "results", "doc": {"choices": {"list": text("prose", 4), "least": 1, "most": 5},
                                   "gold": {"list": {"number": 5}, "least": 0, "most": 3}},
        "results": {"list": {"likelihood": 4000}, "least": 5, "most": 5}, "as_many_as": ["choices"]},
    "truthfulqa/utils.process_results_mc2": {
        "kind": "results", "doc": {"mc2_targets": {"object": {"labels": {"list": {"number": 2}, "least": 1, "most": 20}}}},
        "results": {"list": {"likelihood": 6000}, "least": 20, "most": 20}, "as_many_as": ["mc2_targets", "labels"]},
    "truthfulqa/utils.process_docs_gen": {
        "kind": "docs", "doc": {"question": text("prose", 4), "correct_answers": {"list": text("prose", 3), "least": 0, "most": 3},
                                "incorrect_answers": {"list": {"join": [text("prose", 2), {"pick": ["", ".", "I have no comment."]}]},
                                                      "least": 0, "most": 3}}},
    "truthfulqa/utils.process_results_gen": {
        "kind": "results", "doc": {name: {"list": text("sentence", 9), "least": least, "most": 3}
                                   for name, least in (("correct_answers", 1), ("incorrect_answers", 0))},
        "results": {"list": text("sentence", 12), "least": 1, "most": 1}},
    "bbh/zeroshot/utils.MultiChoiceRegexFilter": {
        "kind": "filter", "doc": BBH, "results": {"list": text("word", 6), "least": 1, "most": 3},
        "settings": {"group_select": 0, "ignore_case": True, "ignore_punctuation": True, "regex_pattern": "(\\([A-Z]\\))"}},
    "bbh/zeroshot/utils.MapRegexFilter": {
        "kind": "filter", "doc": BBH, "results": {"list": text("word", 6), "least": 1, "most": 3},
        "settings": {"group_select": 0, "ignore_case": True, "regex_pattern_to_value": {
            "\\b(?:no|not)\\b": "No", "\\b(?:yes)\\b": "Yes", "valid": True, "apple|fig": ""}}},
    "bbh/zeroshot/utils.WordSortFilter": {
        "kind": "filter", "doc": {"input": {"join": [text("prose", 1), {"pick": ["List:", "List: ", "List:\n", ""]},
                                                     {"join": [text("name", 1), {"pick": [" "]}, text("name", 1), {"pick": [" ", "\n"]},
                                                               text("name", 1)]}, {"pick": ["", "List: kiwi"]}]}},
        "results": {"list": text("word", 8), "least": 1, "most": 2}, "settings": {}},
}


class Rows(list):
    """What process_docs needs of datasets.Dataset."""

    def map(self, function):
        return Rows({**row, **function(row)} for row in self)

    def filter(self, function):
        return Rows(row for row in self if function(row))


def recipe_of(name):
    recipe = RECIPES[name]
    if "like" not in recipe:
        return recipe
    like = next(other for other in RECIPES.values() if other.get("name") == recipe["like"])
    return {**like, **recipe}


def plain(value):
    """JSON as evald keeps values: tuples as lists, numpy's numbers as Python's, numbers that JSON has not as text."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return str(value)
    return value


def responses_of(recipe, case):
    results = case["results"]
    if "as_many_as" in recipe:
        counted = case["doc"]
        for key in recipe["as_many_as"]:
            counted = counted[key]
        results = results[:len(counted)]
    if recipe["kind"] == "results":
        results = [tuple(one) if isinstance(one, list) else one for one in results]
    return results


def called(function, recipe, case):
    if recipe["kind"] == "doc":
        return function(case["doc"])
    if recipe["kind"] == "results":
        return function(case["doc"], responses_of(recipe, case))
    return list(function(**recipe["settings"]).apply([case["results"]], [case["doc"]]))[0]


def safely(work):
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            return plain(work())
        except Exception:
            return {"raises": True}


def outputs(function, recipe, cases):
    """One output for each case; for a function of all documents together, the documents that are left."""
    if recipe["kind"] != "docs":
        return [safely(lambda case=case: called(function, recipe, case)) for case in cases]
    rows = [case["doc"] for case in cases]
    if recipe.get("together"):
        random.seed(SEED)
        own = getattr(function, "__globals__", {}).get("rng")
        if isinstance(own, random.Random):  # of gpqa/n_shot; evald begins each call with its seed
            own.seed(OWN_SEED)
        return plain(list(function(Rows(rows))))
    return [safely(lambda row=row: function(Rows([row]))[0]) for row in rows]


def line(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def golden(name):
    recipe = recipe_of(name)
    module, _, function = name.rpartition(".")
    module = importlib.import_module("lm_eval.tasks." + module.replace("/", "."))
    with open(module.__file__, "rb") as file:
        content = hashlib.sha256(file.read()).hexdigest()
    function = getattr(module, function)
    rng = random.Random(SEED)
    made = {"function": name, "sha256": content, "recipe": recipe, "hashes": [], "first": []}
    raised = 0
    for _ in range(DOCUMENTS // BLOCK):
        cases = []
        for _ in range(BLOCK):
            case = {"doc": {column: draw(rng, part) for column, part in recipe["doc"].items()}}
            if "results" in recipe:
                case["results"] = draw(rng, recipe["results"])
            cases.append(case)
        given = [line(one) for one in outputs(function, recipe, cases)]
        raised += given.count(line({"raises": True}))
        made["first"] += [json.loads(one) for one in given[:SHOWN - len(made["first"])]]
        made["hashes"].append(hashlib.sha256("".join(one + "\n" for one in given).encode()).hexdigest()[:16])
    print(f"{name}: {raised} raise", file=sys.stderr)
    return made


def bootstrap_less():
    """ROUGE's scores are resampled, one value each, a thousand times: any sample of one value has its mean."""
    from rouge_score import scoring
    confidence, _ = scoring.BootstrapAggregator.__init__.__defaults__
    scoring.BootstrapAggregator.__init__.__defaults__ = (confidence, 2)


def main():
    bootstrap_less()
    body = [line(golden(name)) for name in RECIPES]
    print('{"seed":%d,"documents":%d,"block":%d,"pools":%s,"functions":[\n%s\n]}' %
          (SEED, DOCUMENTS, BLOCK, line(POOLS), ",\n".join(body)))


main()
