"""The made-up tasks of `results.py synthetic`."""

import random

import results_harness as harness

WORDS = ["yes", "No", "ÄPFEL", "straße", "İstanbul", "ΟΔΟΣ", "3.50", "a b", "x, y", "(B)", "#### 12", "$1,000", "naïve", "  pad ", "a\u00a0b", ""]


def rows(seed, count, make):
    rng = random.Random(seed)
    return [make(rng, i) for i in range(count)]


def choice_docs():
    return rows(1, 40, lambda rng, i: {
        "question": f"Q{i}?", "choices": ["one", "zwölf Äpfel", "三", "a longer choice"][: 2 + (i % 3 if i else 2)],
        "answer": rng.randrange(2 + (i % 3 if i else 2))})


def text_docs():
    return rows(2, 37, lambda rng, i: {"question": f"Q{i}", "answer": rng.choice(WORDS) or "empty", "number": rng.randrange(5)})


def letter_docs():
    return rows(3, 30, lambda rng, i: {"question": f"Q{i}", "choices": ["Guilty", "Guilty of Romance", "Not. Guilty!"],
                                       "answer": rng.choice(["(A)", "(B)", "(C)"])})


def configs():
    text = {"output_type": "generate_until", "doc_to_text": "{{question}}", "doc_to_target": "{{answer}}", "test_split": "test",
            "generation_kwargs": {"until": ["\n"], "do_sample": False}}
    choice = {"output_type": "multiple_choice", "doc_to_text": "{{question}}", "doc_to_choice": "choices", "doc_to_target": "answer", "test_split": "test"}

    def exact(**kwargs):
        return [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True, **kwargs}]

    def metrics(*names):
        return [{"metric": n} for n in names]

    def pipeline(name, *steps):
        return {"name": name, "filter": list(steps)}

    first = {"function": "take_first"}
    regex = {"function": "regex", "regex_pattern": r"(\w+)|(\d+)", "group_select": -1, "fallback": " none "}
    return {
        "choice_all": (choice_docs, choice | {"metric_list": metrics("acc", "acc_norm", "acc_bytes", "exact_match")}),
        "choice_mutual": (choice_docs, choice | {"metric_list": metrics("acc", "acc_mutual_info", "acc_norm")}),
        "choice_labels": (lambda: [d | {"choices": ["no", "yes"], "answer": d["answer"] % 2} for d in choice_docs()],
                          choice | {"metric_list": metrics("acc", "f1", "mcc")}),
        "choice_medians": (choice_docs, choice | {"metric_list": [
            {"metric": "acc", "aggregation": "median", "higher_is_better": True},
            {"metric": "acc_norm", "aggregation": "nanmean", "higher_is_better": True}]}),
        "choice_text_gold": (lambda: [d | {"answer": d["choices"][d["answer"]] if i % 5 else "absent"} for i, d in enumerate(choice_docs())],
                             choice | {"metric_list": metrics("acc", "exact_match")}),
        "choice_several": (lambda: [d | {"answer": [d["answer"], 9]} for d in choice_docs()], choice | {"metric_list": metrics("acc", "acc_norm", "exact_match")}),
        "words": (text_docs, {"output_type": "loglikelihood", "doc_to_text": "{{question}}", "doc_to_target": " {{answer}}", "test_split": "test",
                              "metric_list": metrics("perplexity", "acc")}),
        "pages": (text_docs, {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{question}} {{answer}}", "test_split": "test",
                              "metric_list": metrics("word_perplexity", "byte_perplexity", "bits_per_byte")}),
        # Some log-likelihoods are NaN, as from a checkpoint whose weights overflow.
        "nan_choice": (choice_docs, choice | {"metric_list": metrics("acc", "acc_norm", "acc_bytes", "exact_match")}),
        "nan_labels": (lambda: [d | {"choices": ["no", "yes"], "answer": d["answer"] % 2} for d in choice_docs()],
                       choice | {"metric_list": metrics("acc", "f1", "mcc")}),
        "nan_words": (text_docs, {"output_type": "loglikelihood", "doc_to_text": "{{question}}", "doc_to_target": " {{answer}}", "test_split": "test",
                                  "metric_list": metrics("perplexity", "acc")}),
        "nan_pages": (text_docs, {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{question}} {{answer}}", "test_split": "test",
                                  "metric_list": metrics("word_perplexity", "byte_perplexity", "bits_per_byte")}),
        "exact_plain": (text_docs, text | {"metric_list": exact()}),
        "exact_loose": (text_docs, text | {"metric_list": exact(ignore_case=True, ignore_punctuation=True, ignore_numbers=True)}),
        "exact_regexes": (text_docs, text | {"metric_list": exact(ignore_case=True, regexes_to_ignore=[",", r"\$", "(?s).*#### ", r"\.$", r"^\s+"])}),
        "exact_number": (text_docs, text | {"doc_to_target": "number", "metric_list": exact()}),
        "exact_several": (lambda: [d | {"answer": [d["answer"], "yes"]} for d in text_docs()], text | {"doc_to_target": "answer", "metric_list": exact(ignore_case=True)}),
        "exact_choice": (letter_docs, text | {"doc_to_choice": ["(A)", "(B)", "(C)"], "doc_to_target": "{{0 if answer == '(A)' else 1 if answer == '(B)' else 2}}", "metric_list": exact()}),
        "filters": (text_docs, text | {"repeats": 3, "metric_list": exact(), "filter_list": [
            pipeline("regex", regex, first),
            pipeline("strip", {"function": "remove_whitespace"}, first),
            pipeline("lower", {"function": "lowercase"}, first),
            pipeline("upper", {"function": "uppercase"}, first),
            pipeline("vote", {"function": "majority_vote"}, first),
            pipeline("vote2", {"function": "take_first_k", "k": 2}, {"function": "regex", "regex_pattern": "[a-z]+"}, {"function": "majority_vote"}, first),
            pipeline("all", {"function": "take_first_k", "k": 3}),
            pipeline("map", {"function": "map", "mapping_dict": {"yes": "No", "No": "yes"}, "default_value": "other"}, first),
            pipeline("spans", {"function": "format_span"}, first)]}),
        "letters": (letter_docs, text | {"repeats": 2, "metric_list": exact(), "filter_list": [
            pipeline("flexible", {"function": "multi_choice_regex", "group_select": 0, "regex_pattern": r"(\([A-Z]\))", "ignore_case": True, "ignore_punctuation": True}, first),
            pipeline("last", {"function": "multi_choice_regex", "group_select": -1, "regex_pattern": r"(\([A-Z]\))|(zz)", "regexes_to_ignore": [r"\s+"]}, first)]}),
        "bypassed": (text_docs, text | {"metric_list": [{"metric": "bypass", "aggregation": "bypass", "higher_is_better": True}]}),
        "single": (lambda: text_docs()[:1], text | {"metric_list": exact()}),
    }


def answer(task, doc, doc_id, idx, repeat, kind):
    rng = random.Random(f"{task}/{doc_id}/{idx}/{repeat}")
    if task.startswith("nan_") and rng.random() < 0.2:
        return float("nan") if kind == "loglikelihood_rolling" else (float("nan"), rng.random() < 0.1)
    if kind == "loglikelihood_rolling":
        return -50 * rng.random()
    if kind == "loglikelihood":
        value = rng.choice([-9 * rng.random(), -float(rng.randrange(1, 3))])
        return value, rng.random() < 0.4
    if task == "letters" or task == "exact_choice":
        return rng.choice([doc["answer"], f"it is {doc['answer']}.", "GUILTY of romance", "answer: B", "guilty", ": C", "not guilty", "zz (A) (B)", "", "Ｑ"])
    gold = doc["answer"] if isinstance(doc["answer"], str) else doc["answer"][0]
    return rng.choice([gold, gold, gold.lower(), gold.upper(), f" {gold}\x1c", f"x {gold}.", rng.choice(WORDS), str(doc["number"]),
                       "PER: Ann, none $$ location : Köln\nDate: 3", f"{gold}\x00"])


def run():
    from lm_eval.api.group import Group
    from lm_eval.api.task import ConfigurableTask
    import datasets

    tasks = {}
    for name, (docs, config) in configs().items():
        built = docs()
        config = config | {"task": name, "num_fewshot": 0, "metadata": {"version": 1.5},
                           "custom_dataset": lambda built=built, **_: datasets.DatasetDict({"test": datasets.Dataset.from_list(built)})}
        tasks[name] = ConfigurableTask(config=config)
        tasks[name].set_config("custom_dataset", None)
    groups = {}
    weighted = Group.from_config({"group": "weighted", "group_alias": "by size", "metadata": {"version": 2},
                                  "aggregate_metric_list": [{"metric": "acc", "weight_by_size": True}, {"metric": "exact_match", "filter_list": "none"}]})
    plain = Group.from_config({"group": "plain", "aggregate_metric_list": [{"metric": "acc", "weight_by_size": False, "filter_list": ["none"]}]})
    heading = Group.from_config({"group": "heading"})
    for name in ("choice_all", "words"):
        plain.add(tasks[name])
    weighted.add(plain)
    for name in ("choice_labels", "exact_plain", "single"):
        weighted.add(tasks[name])
    heading.add(weighted)
    heading.add(tasks["filters"])
    for group in (heading, weighted, plain):
        groups[group.name] = group
    return harness.evaluate({"tasks": tasks, "groups": groups}, answer, None, 2500)
