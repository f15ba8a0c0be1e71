#!/usr/bin/env python3
"""Runs tasks with Python functions of an installed lm-evaluation-harness 0.4.13 on made-up documents, in the harness and in
evald, on one checkpoint, and compares prompts, filtered answers, scores, standard errors and results.

    task_code_compare.py --evald build/release/evald --checkpoint FOLDER [--python PYTHON] [--without-python] [NAME...]

The task files are the harness's own, of the Python that runs this script; nothing of them is kept. PYTHON runs the
functions for evald (default: this one); with --without-python, evald may run none, so that tasks must need only functions that are
built in. Exit status 1 if anything differs. Prints a line for each task.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
os.environ.setdefault("LMEVAL_LOG_LEVEL", "ERROR")

WORDS = "red blue tall  house river 12 1,400 3.5 the a An [step] [title] café naïve “quoted” don't it's x² 日本 end. why?".split(" ")


def text(draw, least=2, most=9):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(least, most)))


def hellaswag(draw):
    return {"ind": draw.randrange(99), "activity_label": text(draw, 1, 2), "ctx_a": text(draw) + " [substeps] ", "ctx_b": text(draw),
            "ctx": text(draw), "endings": [text(draw) for _ in range(4)], "label": str(draw.randrange(4))}


def winogrande(draw):
    return {"sentence": f"{text(draw)} _ {text(draw)}", "option1": text(draw, 1, 2), "option2": text(draw, 1, 2),
            "answer": draw.choice("12")}


def race(draw):
    problems = [{"question": text(draw) + draw.choice(["?", " _ .", " _"]), "answer": draw.choice("ABCD"),
                 "options": [text(draw, 1, 4) for _ in range(4)]} for _ in range(3)]
    return {"article": text(draw, 20, 40), "problems": repr(problems)}


def drop(draw):
    number, date = {"number": str(draw.randrange(99)), "date": {"day": "", "month": "", "year": ""}, "spans": []}, None
    spans = {"number": "", "date": {"day": "", "month": "", "year": ""}, "spans": [text(draw, 1, 2), text(draw, 1, 2)]}
    date = {"number": "", "date": {"day": "3", "month": "May", "year": "1999"}, "spans": []}
    answer, *others = draw.sample([number, spans, date], 3)
    validated = {"number": [o["number"] for o in others], "date": [o["date"] for o in others], "spans": [o["spans"] for o in others],
                 "worker_id": ["", ""], "hit_id": ["", ""]}
    return {"section_id": "s", "passage": text(draw, 10, 20), "question": text(draw), "query_id": "q",
            "answer": {**answer, "worker_id": "", "hit_id": ""}, "validated_answers": validated}


def wikitext(draw):
    return {"page": f" = {text(draw, 1, 2)} = \n {text(draw, 8, 15)} @-@ {text(draw)} @,@ 5 s ' {text(draw)} ( x ) \" y \" \n"}


def gpqa(draw):
    return {"Question": text(draw), "Correct Answer": text(draw, 1, 3) + " [title] x", "Incorrect Answer 1": text(draw, 1, 3),
            "Incorrect Answer 2": text(draw, 1, 3), "Incorrect Answer 3": text(draw, 1, 3)}


def truthfulqa(draw):
    choices = [text(draw) for _ in range(draw.randint(2, 5))]
    targets = {"choices": choices, "labels": [1] + [draw.randrange(2) for _ in choices[1:]]}
    targets["labels"] = sorted(targets["labels"], reverse=True)[:len(choices) - 1] + [0]
    return {"question": text(draw) + "?", "mc1_targets": targets, "mc2_targets": targets}


def hendrycks(draw):
    answer = draw.choice([r"\boxed{\frac{1}{2}}", r"\boxed{12}", r"\boxed{3\sqrt5}", r"\boxed{0.5}"])
    return {"problem": text(draw), "level": "Level 1", "type": "Algebra", "solution": f"{text(draw)} ${answer}$."}


def aime(draw):
    return {"ID": text(draw, 1, 1), "Problem": text(draw), "Answer": draw.randrange(1000)}


def agieval_math(draw):
    return {"query": f"Q: {text(draw)}", "answer": draw.choice(["12", r"\frac{1}{2}", "x=3", r"\boxed{5}"])}


def mmlu_pro(draw):
    return {"question_id": draw.randrange(999), "question": text(draw), "options": [text(draw, 1, 3) for _ in range(draw.randint(3, 10))],
            "answer": "A", "answer_index": 0, "cot_content": f"A: Let's think step by step. {text(draw)} The answer is (A).",
            "category": draw.choice(["law", "law", "math"]), "src": "x"}


def agieval(draw):
    return {"query": text(draw), "choices": [f"({c}) {text(draw, 1, 3)}" for c in "ABCD"], "gold": [draw.randrange(4)]}


def pubmedqa(draw):
    return {"QUESTION": text(draw) + "?", "CONTEXTS": [text(draw, 4, 9) for _ in range(2)], "final_decision": draw.choice(["yes", "no", "maybe"]),
            "LABELS": ["a"], "MESHES": ["b"]}


def copa(draw):
    return {"premise": text(draw) + ".", "choice1": text(draw).capitalize(), "choice2": text(draw).capitalize(),
            "question": draw.choice(["cause", "effect"]), "label": draw.randrange(2), "idx": draw.randrange(99)}


def wsc(draw):
    before = text(draw) + "."
    return {"text": f"{before} he {text(draw)}", "pronoun": "he", "pronoun_loc": len(before) + 1, "quote": "q", "quote_loc": 0,
            "options": [f"The {text(draw, 1, 2)}", f"A {text(draw, 1, 2)}"], "label": draw.randrange(2), "source": "s"}


def record(draw):
    names = [f"Name{i}" for i in range(3)]
    return {"passage": f"{text(draw)} {' '.join(names)}", "query": f"{text(draw)} @placeholder {text(draw)}", "entities": names,
            "answers": [draw.choice(names)], "idx": {"passage": 0, "query": 0}}


def multirc(draw):
    return {"paragraph": text(draw, 8, 15), "question": text(draw), "answer": text(draw, 1, 3), "label": draw.randrange(2),
            "idx": {"paragraph": 0, "question": 0, "answer": 0}}


# Tasks with aggregations of their own.
def cb(draw):
    return {"premise": text(draw), "hypothesis": text(draw), "label": draw.randrange(3), "idx": draw.randrange(99)}


def aradice_boolq(draw):
    return {"passage": text(draw, 8, 15), "question": text(draw) + draw.choice(["?", "؟", ""]), "answer": draw.random() < 0.5}


def assin2(draw):
    return {"premise": text(draw), "hypothesis": text(draw), "entailment_judgment": draw.randrange(2),
            "relatedness_score": draw.choice([1.0, 2.5, 4.8]), "sentence_pair_id": draw.randrange(99)}


def mmlu_early(draw):
    return {"question": text(draw), "subject": "law", "choices": [text(draw, 1, 3) for _ in range(4)], "answer": draw.randrange(4)}


def esbbq(draw):
    groups = ["grupo uno", "grupo dos"]
    return {"context": text(draw), "question": text(draw) + "?", "ans0": groups[0], "ans1": groups[1], "ans2": "No sé",
            "label": draw.randrange(3), "context_condition": draw.choice(["ambig", "disambig"]), "stereotyped_groups": groups[:1],
            "question_type": draw.choice(["pro-stereo", "anti-stereo"]), "question_polarity": draw.choice(["neg", "nonneg"]),
            "answer_info": {"ans0": ["a", groups[0]], "ans1": ["b", groups[1]], "ans2": ["c", "unknown"]}}


def evalita_sa(draw):
    return {"text": text(draw), "opos": draw.choice("01"), "oneg": draw.choice("01"), "id": draw.randrange(99)}


def evalita_ner(draw):
    entities = [{"entity_text": text(draw, 1, 2), "type": draw.choice(["PER", "LOC", "ORG"])} for _ in range(draw.randrange(3))]
    return {"text": text(draw), "entities": entities}


def evalita_ls(draw):
    return {"id": draw.randrange(99), "head": text(draw, 1, 1), "context": f"{text(draw)} <head>casa</head>", "context_str": text(draw),
            "answers": [{"word": text(draw, 1, 1), "count": draw.randrange(1, 4)} for _ in range(draw.randint(1, 3))]}


def norec(draw):
    return {"review": text(draw), "sentiment": draw.randrange(2), "sentence_id": "x"}


def afrisenti(draw):
    return {"tweet": text(draw), "label": draw.choice(["negative", "positive", "neutral"])}


def kobest_boolq(draw):
    return {"paragraph": text(draw), "question": text(draw), "label": draw.randrange(2)}


def agieval_words(draw):
    return {"query": f"Q: {text(draw)} Answer Choices: (A)1 (B)2 (C)3 (D)4", "question": text(draw), "answer": draw.choice("ABCD"),
            "choices": [f"({c}){text(draw, 1, 3)}" for c in "ABCDE"], "gold": [draw.randrange(5)], "passage": text(draw)}


# Tasks with filters or metrics of their own, and with pairs of gold answer and response.
def bbh(targets):
    return lambda draw: {"input": f"{text(draw, 5, 10)} List: {text(draw, 2, 4)}", "target": draw.choice(targets)}


def kormedmcqa(draw):
    return {"question": text(draw), **{letter: text(draw, 1, 3) for letter in "ABCDE"}, "answer": draw.randint(1, 5)}


def afriqa(draw):
    return {"question_lang": text(draw) + "?", "context": text(draw, 10, 20), "answer_pivot": text(draw, 1, 2)}


def masakhaner(draw):
    entities = [f"{draw.choice(['PER', 'LOC'])}: {text(draw, 1, 2)}" for _ in range(draw.randrange(3))]
    return {"text": text(draw), "target": " $ ".join(entities) or "none"}


def masakhapos(draw):
    words = text(draw).split()
    return {"tokens": words, "upos": [draw.randrange(18) for _ in words]}


def multirc_t5(draw):
    return {"paragraph": text(draw, 8, 15), "question": text(draw), "answer": text(draw, 1, 3), "label": draw.randrange(2),
            "idx": {"paragraph": 0, "question": draw.randrange(4), "answer": 0}}


def record_t5(draw):
    return {**record(draw), "idx": {"passage": draw.randrange(3), "query": draw.randrange(3)}}


def french(draw):
    return {"context": text(draw, 8, 15), "question": text(draw) + "?", "answers": {"text": [text(draw, 1, 3)] * draw.randrange(2)},
            "is_impossible": False}


def trivia(draw):
    return {"Question": text(draw) + "?", "Answer": text(draw, 1, 2)}


def qasper(draw):
    blob = lambda: {"unanswerable": False, "yes_no": None, "free_form_answer": text(draw), "extractive_spans": []}
    return {"title": text(draw), "abstract": text(draw, 8, 15),
            "qas": {"question": [text(draw)], "answers": [{"answer": [blob()]}]}}


def lingoly(draw):
    parts = [{"questionpart_n": str(i), "question": text(draw), "answer": draw.choice([text(draw, 1, 2), "['a', 'b']", ""])}
             for i in range(draw.randint(1, 3))]
    return {"questions": json.dumps([{"prompt": text(draw), "subprompts": parts}]), "preamble": text(draw), "context": text(draw),
            "overall_question_n": draw.randrange(9)}


def jsonschema(draw):
    return {"json_schema": json.dumps({"type": "object", "properties": {text(draw, 1, 1): {"type": "string"}}}), "unique_id": "x"}


def darija(draw):
    return {"messages": [{"content": text(draw), "role": "user"}, {"content": text(draw), "role": "assistant"}], "direction": "ar_dr"}


# task: what makes its rows
TASKS = {
    "hellaswag": hellaswag, "winogrande": winogrande, "race": race, "drop": drop, "wikitext": wikitext,
    "gpqa_main_zeroshot": gpqa, "gpqa_main_n_shot": gpqa, "truthfulqa_mc2": truthfulqa, "hendrycks_math_algebra": hendrycks,
    "mmlu_pro_law": mmlu_pro, "pubmedqa": pubmedqa, "copa": copa, "wsc273": wsc,
    "agieval_lsat_ar": agieval, "agieval_math": agieval_math, "aime24": aime, "record": record, "multirc": multirc,
    "cb": cb, "AraDiCE_boolq_egy": aradice_boolq, "assin2_rte": assin2, "assin2_sts": assin2, "mmlu_early_training": mmlu_early,
    "esbbq_age": esbbq, "evalita-mp_sa_prompt-4": evalita_sa, "evalita-mp_ner_adg_p1": evalita_ner, "evalita-mp_ls_prompt-1": evalita_ls,
    "norec_sentence_p0": norec, "kobest_boolq": kobest_boolq, "afrisenti_amh_prompt_1": afrisenti,
    "option_order_robustness_agieval_aqua_rat": agieval_words,
    "bbh_zeroshot_snarks": bbh(["(A)", "(B)"]), "bbh_zeroshot_web_of_lies": bbh(["yes", "no"]),
    "bbh_cot_zeroshot_object_counting": bbh(["3", "12", "40"]), "bbh_cot_zeroshot_word_sorting": bbh(["a an red", "blue tall"]),
    "kormedmcqa_doctor": kormedmcqa, "afriqa_bem_prompt_1": afriqa, "masakhaner_am_prompt_1": masakhaner,
    "masakhapos_bam_prompt_1": masakhapos, "super_glue-multirc-t5-prompt": multirc_t5, "super_glue-record-t5-prompt": record_t5,
    "super_glue-cb-t5-prompt": cb, "french_bench_fquadv2_hasAns": french, "french_bench_trivia": trivia, "qasper_freeform": qasper,
    "lingoly_context": lingoly, "jsonschema_bench_easy": jsonschema, "transliteration_ar_dr": darija,
}


# Settings in place of a task's own: its context is longer than that of a small checkpoint.
SHORT = "generation_kwargs: {until: ['</s>'], max_gen_toks: 24, do_sample: false}"
SETTINGS = {"mmlu_pro_law": ["generation_kwargs: {until: ['Question:'], max_gen_toks: 32}"],
            "jsonschema_bench_easy": [SHORT, "num_fewshot: 0"],
            # the metrics that need no model from the hub
            "french_bench_fquadv2_hasAns": ["metric_list: [{metric: !function utils.exact, aggregation: mean, higher_is_better: true}, "
                                            "{metric: !function utils.f1, aggregation: mean, higher_is_better: true}]"],
            "french_bench_trivia": ["metric_list: [{metric: !function utils.exact, aggregation: mean, higher_is_better: true}, "
                                    "{metric: !function utils.is_included, aggregation: mean, higher_is_better: true}]"],
            "transliteration_ar_dr": ["metric_list: [{metric: bleu}, {metric: chrf}]", SHORT, "process_docs: null"],
            **{name: [SHORT] for name in ("bbh_zeroshot_snarks", "bbh_zeroshot_web_of_lies", "bbh_cot_zeroshot_object_counting",
                                          "bbh_cot_zeroshot_word_sorting", "kormedmcqa_doctor", "masakhaner_am_prompt_1",
                                          "masakhapos_bam_prompt_1", "super_glue-multirc-t5-prompt", "super_glue-record-t5-prompt",
                                          "super_glue-cb-t5-prompt", "qasper_freeform", "lingoly_context")}}


def made_up(folder, name, row, splits):
    files = {}
    for split in splits:
        draw = random.Random(f"{name} {split}")
        files[split] = str(folder / f"{name}.{split}.jsonl")
        Path(files[split]).write_text("".join(json.dumps(row(draw)) + "\n" for _ in range(12)))
    return files


def write_task(folder, tasks, name, row):
    """A task that includes the harness's own, with made-up documents. Returns its name."""
    from lm_eval.tasks import TaskManager
    entry = TaskManager(include_defaults=False, include_path=str(tasks))._index[name]
    source = Path(entry.yaml_path)
    config = entry_config(source)
    splits = {config.get(key) for key in ("training_split", "validation_split", "test_split", "fewshot_split")} - {None}
    files = made_up(folder, name, row, sorted(splits))
    own = f"made_up_{name}"
    lines = [f"include: {source.name}", f"task: {own}", "tag: null", "dataset_path: json", "dataset_name: null",
             f"dataset_kwargs: {{data_files: {json.dumps(files)}}}", *SETTINGS.get(name, [])]
    (source.parent / f"{own}.yaml").write_text("\n".join(lines) + "\n")
    return own


def entry_config(source):
    """The merged YAML of a task file, without functions."""
    from lm_eval.tasks._yaml_loader import load_yaml
    return load_yaml(source, resolve_func=False)


def by_harness(tasks, names, checkpoint):
    import logging
    logging.disable(logging.WARNING)
    import lm_eval
    from lm_eval.tasks import TaskManager
    manager = TaskManager(include_defaults=False, include_path=str(tasks))
    return lm_eval.simple_evaluate(model="hf", model_args={"pretrained": str(checkpoint), "dtype": "float32"}, tasks=names, batch_size=1,
                                   device="cpu", task_manager=manager, bootstrap_iters=100, log_samples=True, confirm_run_unsafe_code=True)


def by_evald(evald, python, folder, tasks, names, checkpoint):
    allowed = {"task_code": "allow", "task_python": python} if python else {}
    config = {"checkpoint": str(checkpoint), "tasks": names, "task_dirs": [str(tasks)], **allowed,
              "bootstrap_iters": 100, "output": {"dir": str(folder / "runs"), "name": "run"}, "cache_dir": str(folder / "cache"),
              "state_dir": str(folder / "state"), "staging": {"root": str(folder / "staging")}}
    (folder / "eval.yaml").write_text(json.dumps(config))
    done = subprocess.run([evald, "run", folder / "eval.yaml", "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        return None, "\n".join(line for line in done.stderr.splitlines() if "warning" not in line)
    samples = {}
    for name in names:
        lines = (folder / "runs" / "run" / f"samples_{name}.jsonl").read_text().splitlines()
        samples[name] = [json.loads(line) for line in lines]
    return (json.loads((folder / "runs" / "run" / "results.json").read_text()), samples), ""


def near(a, b):
    if isinstance(a, bool) or isinstance(b, bool) or isinstance(a, str) or isinstance(b, str):
        return str(a) == str(b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(near, a, b))
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) <= 1e-4 * max(1, abs(a)) or a == b
    return a == b


def is_text(value):
    return all(map(is_text, value)) if isinstance(value, list) else isinstance(value, str)


def differences(name, theirs, ours):
    results, samples = ours
    for key, value in theirs["results"][name].items():
        if key not in ("alias", "name", "sample_len") and not near(value, results["results"][name].get(key)):
            yield f"{key}: harness {value}, evald {results['results'][name].get(key)}"
    expected, found = theirs["samples"][name], samples[name]
    if len(expected) != len(found):
        yield f"{len(expected)} samples of the harness, {len(found)} of evald"
    for one, other in zip(expected, found):
        mine = [list(arguments) for arguments in one["arguments"]]
        yours = list(other["arguments"].values()) if isinstance(other["arguments"], dict) else other["arguments"]
        yours = [list(arguments.values()) if isinstance(arguments, dict) else list(arguments) for arguments in yours]
        if [arguments[0] for arguments in mine] != [arguments[0] for arguments in yours]:
            yield f"document {one['doc_id']}, prompt: harness {mine[0][0]!r}, evald {yours[0][0]!r}"
        if is_text(one["resps"]) and json.loads(json.dumps(one["filtered_resps"])) != other["filtered_resps"]:
            yield f"document {one['doc_id']}, filtered: harness {one['filtered_resps']}, evald {other['filtered_resps']}"
        for metric in one["metrics"]:
            if not near(one[metric], other.get(metric)):
                yield f"document {one['doc_id']}, {metric}: harness {one[metric]}, evald {other.get(metric)}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--evald", required=True)
    parser.add_argument("--checkpoint", required=True, type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--without-python", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    args.checkpoint = args.checkpoint.resolve()
    import lm_eval
    wanted = args.names or list(TASKS)
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        tasks = scratch / "lm_eval" / "tasks"
        shutil.copytree(Path(lm_eval.__file__).parent / "tasks", tasks)
        scratch.chmod(0o755)
        for name in wanted:
            folder = scratch / name
            folder.mkdir()
            problems = compare(args, folder, tasks, name)
            failed += bool(problems)
            print(f"{name}: {'equal' if not problems else ''}")
            for problem in problems[:5]:
                print("   ", problem[:600])
    return 1 if failed else 0


def compare(args, folder, tasks, name):
    own = write_task(folder, tasks, name, TASKS[name])
    ours, error = by_evald(args.evald, None if args.without_python else args.python, folder, tasks, [own], args.checkpoint)
    try:
        theirs = by_harness(tasks, [own], args.checkpoint)
    except Exception as fault:
        return [f"the harness fails: {fault!r}"[:300], f"evald: {error or 'runs'}"]
    if ours is None:
        return [error]
    return list(differences(own, theirs, ours))


if __name__ == "__main__":
    sys.exit(main())
