#!/usr/bin/env python3
"""Writes made-up documents for every task of the suites base and instruct, in the form of each task's dataset.

    python3 examples/suite/make_data.py DATA [--documents 20] [--seed 1]

DATA is then a data_dir for eval.yaml. The documents are short and made from a seed. They show whether a suite runs, and
say nothing about a model. Python's standard library only.
"""
import argparse
import json
import pathlib
import random

EXAMPLES = 25  # of a split for few-shot examples, as many as a task of the suites takes at most

MMLU = """abstract_algebra anatomy astronomy business_ethics clinical_knowledge college_biology college_chemistry
college_computer_science college_mathematics college_medicine college_physics computer_security conceptual_physics
econometrics electrical_engineering elementary_mathematics formal_logic global_facts high_school_biology
high_school_chemistry high_school_computer_science high_school_european_history high_school_geography
high_school_government_and_politics high_school_macroeconomics high_school_mathematics high_school_microeconomics
high_school_physics high_school_psychology high_school_statistics high_school_us_history high_school_world_history
human_aging human_sexuality international_law jurisprudence logical_fallacies machine_learning management marketing
medical_genetics miscellaneous moral_disputes moral_scenarios nutrition philosophy prehistory professional_accounting
professional_law professional_medicine professional_psychology public_relations security_studies sociology
us_foreign_policy virology world_religions""".split()
MMLU_PRO = ["biology", "business", "chemistry", "computer science", "economics", "engineering", "health", "history",
            "law", "math", "other", "philosophy", "physics", "psychology"]
MATH = ["algebra", "counting_and_probability", "geometry", "intermediate_algebra", "number_theory", "prealgebra",
        "precalculus"]
BBH = """boolean_expressions causal_judgement date_understanding disambiguation_qa dyck_languages formal_fallacies
geometric_shapes hyperbaton logical_deduction_five_objects logical_deduction_seven_objects
logical_deduction_three_objects movie_recommendation multistep_arithmetic_two navigate object_counting
penguins_in_a_table reasoning_about_colored_objects ruin_names salient_translation_error_detection snarks
sports_understanding temporal_sequences tracking_shuffled_objects_five_objects tracking_shuffled_objects_seven_objects
tracking_shuffled_objects_three_objects web_of_lies word_sorting""".split()
# The words before a question and before its worked answer. Task files take the latter off the examples' answers.
MGSM = {"bn": ("প্রশ্ন: ", "ধাপে ধাপে উত্তর: "), "de": ("Frage: ", "Schritt-für-Schritt-Antwort: "),
        "en": ("Question: ", "Step-by-Step Answer: "), "es": ("Pregunta: ", "Respuesta paso a paso: "),
        "fr": ("Question : ", "Réponse étape par étape : "), "ja": ("問題： ", "ステップごとの答え: "),
        "ru": ("Задача: ", "Пошаговое решение: "), "sw": ("Swali: ", "Jibu la Hatua kwa Hatua: "),
        "te": ("ప్రశ్న: ", "దశలవారీగా సమాధానం: "), "th": ("โจทย์: ", "คำตอบทีละขั้นตอน: "), "zh": ("问题： ", "逐步解答: ")}

NAMES = ["Pia", "Leo", "Zoe", "Sam", "Lea", "Jon", "Mia", "Stilus"]
THINGS = ["pens", "cards", "eggs", "shells", "coins", "apples"]
COLORS = ["red", "blue", "green", "white"]
PLACES = ["caves", "rivers", "trees", "hills"]
BEASTS = ["girek", "kuloth", "bresoth", "tamir", "oskel", "velda"]


class Maker:
    def __init__(self, folder, documents, seed):
        self.folder = pathlib.Path(folder)
        self.documents = documents
        self.random = random.Random(seed)

    def write(self, name, make, count=None):
        """A file of documents, a JSON object a line. make(i) gives the document of number i."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [json.dumps(make(i), ensure_ascii=False) for i in range(count or self.documents)]
        path.write_text("".join(row + "\n" for row in rows), encoding="utf-8")

    def one(self, values):
        return self.random.choice(values)

    # ---- parts of documents

    def sum(self):
        """A word problem, its working and its result."""
        who, what, have, more = self.one(NAMES), self.one(THINGS), self.random.randint(2, 40), self.random.randint(2, 20)
        return (f"{who} has {have} {what}. {who} gets {more} more. How many {what} does {who} have now?",
                f"{who} has {have}+{more}={have + more} {what}.", have + more)

    def choices(self):
        """A question, four choices in any order, and the number of the right one."""
        beast, of = self.one(BEASTS), self.one([("color", COLORS), ("home", PLACES)])
        choices = self.random.sample(of[1], 4)
        return f"What is the {of[0]} of the {beast}?", choices, self.random.randrange(4)

    # ---- choices

    def mmlu(self):
        def row(subject):
            question, choices, answer = self.choices()
            return {"question": question, "subject": subject, "choices": choices, "answer": answer}
        for subject in MMLU:
            self.write(f"mmlu/test/{subject}.jsonl", lambda i: row(subject))
            self.write(f"mmlu/dev/{subject}.jsonl", lambda i: row(subject), 5)
            self.write(f"mmlu-redux-2.0-ok/{subject}/test.jsonl", lambda i: row(subject))

    def mmlu_pro(self):
        def row(i, subjects):
            question, choices, answer = self.choices()
            letter = "ABCD"[answer]
            worked = f"A: Let's think step by step. It is {choices[answer]}. The answer is ({letter})."
            return {"question_id": i, "question": question, "options": choices, "answer": letter, "answer_index": answer,
                    "cot_content": worked, "category": subjects[i % len(subjects)], "src": "made up"}
        self.write("MMLU-Pro/test.jsonl", lambda i: row(i, MMLU_PRO), self.documents * len(MMLU_PRO))
        self.write("MMLU-Pro/validation.jsonl", lambda i: row(i, MMLU_PRO), 5 * len(MMLU_PRO))

    def gpqa(self):
        def row(i):
            question, choices, _ = self.choices()
            return {"Question": question, "Correct Answer": choices[0], "Incorrect Answer 1": choices[1],
                    "Incorrect Answer 2": choices[2], "Incorrect Answer 3": choices[3], "Record ID": str(i)}
        for part in ("gpqa_main", "gpqa_diamond", "gpqa_extended"):
            self.write(f"gpqa/{part}/train.jsonl", row)

    def arc(self):
        def row(i, of):
            question, choices, answer = self.choices()
            return {"id": f"{of}_{i}", "question": question, "answerKey": "ABCD"[answer],
                    "choices": {"text": choices, "label": list("ABCD")}}
        for part in ("ARC-Easy", "ARC-Challenge"):
            for split, count in (("train", EXAMPLES), ("validation", None), ("test", None)):
                self.write(f"ai2_arc/{part}/{split}.jsonl", lambda i: row(i, part), count)

    def hellaswag(self):
        def row(i):
            who = self.one(NAMES)
            endings = [f"takes the {color} one. [step] {who} goes on." for color in self.random.sample(COLORS, 4)]
            first, second = f"[header] How to find a {self.one(BEASTS)} [title] Look at the hills. {who} sees one.", "he"
            return {"ind": i, "activity_label": "Finding beasts", "ctx_a": first, "ctx_b": second,
                    "ctx": f"{first} {second}", "endings": endings, "source_id": f"made~{i}", "split": "val",
                    "split_type": "indomain", "label": str(self.random.randrange(4))}
        self.write("hellaswag/train.jsonl", row, EXAMPLES)
        self.write("hellaswag/validation.jsonl", row)

    def openbookqa(self):
        def row(i):
            question, choices, answer = self.choices()
            return {"id": str(i), "question_stem": question, "choices": {"text": choices, "label": list("ABCD")},
                    "answerKey": "ABCD"[answer]}
        for split in ("train", "validation", "test"):
            self.write(f"openbookqa/main/{split}.jsonl", row)

    def piqa(self):
        def row(i):
            right, wrong = self.random.sample(COLORS, 2)
            return {"goal": f"Paint the {self.one(BEASTS)} {right}.", "sol1": f"Take {right} paint.",
                    "sol2": f"Take {wrong} paint.", "label": 0}
        self.write("piqa/train.jsonl", row, EXAMPLES)
        self.write("piqa/validation.jsonl", row)

    def winogrande(self):
        def row(i):
            one, two = self.random.sample(NAMES, 2)
            return {"sentence": f"{one} gave {two} the {self.one(THINGS)} because _ had too many.", "option1": one,
                    "option2": two, "answer": self.one("12")}
        self.write("winogrande/winogrande_xl/train.jsonl", row, EXAMPLES)
        self.write("winogrande/winogrande_xl/validation.jsonl", row)

    def race(self):
        def problem(question):
            _, options, answer = self.choices()
            return {"question": question, "answer": "ABCD"[answer], "options": options}
        def row(i):
            beast = self.one(BEASTS)
            problems = [problem(f"The color of the {beast} is  _  ."), problem(f"Where does the {beast} live?"),
                        problem(f"The {beast} is best seen at  _  .")]
            return {"article": f"The {beast} is {self.one(COLORS)}. It lives in the {self.one(PLACES)}.",
                    "problems": repr(problems)}
        self.write("race/high/test.jsonl", row)

    # ---- generated answers

    def gsm8k(self):
        def row(i):
            question, working, result = self.sum()
            return {"question": question, "answer": f"{working}\n#### {result}"}
        self.write("gsm8k/train.jsonl", row, EXAMPLES)
        self.write("gsm8k/test.jsonl", row)

    def math(self):
        def row(i, part):
            a, b = self.random.randint(2, 9), self.random.randint(10, 60)
            return {"problem": f"Solve $x+{a}={b}$ for $x$.", "level": "Level 1", "type": part,
                    "solution": f"We have $x={b}-{a}$, so $x=\\boxed{{{b - a}}}$.", "answer": str(b - a)}
        def without_answer(i, part):
            document = row(i, part)
            del document["answer"]
            return document
        for part in MATH:
            self.write(f"hendrycks_math/{part}/train.jsonl", lambda i: without_answer(i, part), EXAMPLES)
            self.write(f"hendrycks_math/{part}/test.jsonl", lambda i: without_answer(i, part))
        self.write("MATH-500/default/test.jsonl", lambda i: row(i, "algebra"))

    def aime(self):
        def row(i, question, answer):
            text, _, result = self.sum()
            return {"ID": str(i), question: text, answer: result}
        self.write("AIME_2024/train.jsonl", lambda i: row(i, "Problem", "Answer"))
        self.write("aime25/test.jsonl", lambda i: row(i, "problem", "answer"))

    def bbh(self):
        def row(i):
            question, _, result = self.sum()
            return {"input": question, "target": str(result)}
        def example(i):
            question, working, result = self.sum()
            return {"input": question, "target": f"{working} So the answer is {result}."}
        for part in BBH:
            self.write(f"bbh/{part}/test.jsonl", row)
            self.write(f"bbh/{part}/fewshot.jsonl", example, 3)

    def mgsm(self):
        def row(question):
            text, _, result = self.sum()
            return {"question": question + text, "answer": None, "answer_number": result, "equation_solution": None}
        def example(question, answer):
            text, working, result = self.sum()
            return {"question": question + text, "answer": f"{answer}{working} The answer is {result}.",
                    "answer_number": result, "equation_solution": None}
        for language, (question, answer) in MGSM.items():
            self.write(f"mgsm/{language}/train.jsonl", lambda i: example(question, answer), 8)
            self.write(f"mgsm/{language}/test.jsonl", lambda i: row(""))

    def drop(self):
        def answer(number="", spans=()):
            return {"number": number, "date": {"day": "", "month": "", "year": ""}, "spans": list(spans),
                    "worker_id": "", "hit_id": ""}
        def row(i):
            (one, two), what, count = self.random.sample(NAMES, 2), self.one(THINGS), self.random.randint(2, 30)
            right = answer(spans=[one]) if i % 2 else answer(number=str(count))
            return {"section_id": str(i), "query_id": str(i), "answer": right,
                    "passage": f"{one} has {count} {what}. {two} has none.",
                    "question": f"Who has {what}?" if i % 2 else f"How many {what} does {one} have?",
                    "validated_answers": {key: [right[key]] for key in right}}
        self.write("drop/train.jsonl", row, EXAMPLES)
        self.write("drop/validation.jsonl", row)

    def triviaqa(self):
        def row(i):
            name = self.one(NAMES)
            aliases = [name, name.upper(), f"{name} of Aldor"]
            return {"question": f"Who found the {self.one(BEASTS)} of the {self.one(PLACES)}", "question_id": str(i),
                    "answer": {"value": name, "aliases": aliases, "normalized_aliases": [a.lower() for a in aliases]}}
        self.write("trivia_qa/rc.nocontext/train.jsonl", row, EXAMPLES)
        self.write("trivia_qa/rc.nocontext/validation.jsonl", row)

    def wikitext(self):
        def row(i):
            beast, place = self.one(BEASTS), self.one(PLACES)
            lines = [f" = {beast.title()} = ", "", f" The {beast} lives in the {place} , and is {self.one(COLORS)} . ", "",
                     " = = Food = = ", "", f" It eats 1 @,@ {self.random.randint(100, 999)} {self.one(THINGS)} a year . "]
            return {"page": "\n".join(lines) + "\n"}
        self.write("wikitext_document_level/wikitext-2-raw-v1/test.jsonl", row)

    def ifeval(self):
        def row(i):
            return {"key": i, "prompt": f"Name {self.random.randint(2, 5)} beasts of the hills. Do not use any commas.",
                    "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
        self.write("IFEval/train.jsonl", row)

    # ---- programs

    def code(self):
        def parts(i):
            number = self.random.randint(2, 9)
            name = f"add_{number}_{i}"
            tests = [f"assert {name}({x}) == {x + number}" for x in self.random.sample(range(20), 3)]
            return name, number, tests
        def humaneval(i):
            name, number, tests = parts(i)
            checks = "".join("    " + test.replace(name, "candidate") + "\n" for test in tests)
            return {"task_id": f"Made/{i}", "entry_point": name,
                    "prompt": f'def {name}(x: int) -> int:\n    """Return x plus {number}."""\n',
                    "canonical_solution": f"    return x + {number}\n", "test": f"def check(candidate):\n{checks}"}
        def mbpp(i):
            name, number, tests = parts(i)
            text = f"Write a function {name} to add {number} to a number."
            return {"task_id": i, "prompt": text, "code": f"def {name}(x):\n    return x + {number}", "test_imports": [],
                    "source_file": "made up", "test_list": tests, "test": "\n".join(tests)}
        self.write("humanevalplus/test.jsonl", humaneval)
        self.write("humaneval/HumanEval.jsonl", humaneval)
        self.write("mbppplus/test.jsonl", mbpp)

    def all(self):
        for make in (self.mmlu, self.mmlu_pro, self.gpqa, self.arc, self.hellaswag, self.openbookqa, self.piqa,
                     self.winogrande, self.race, self.gsm8k, self.math, self.aime, self.bbh, self.mgsm, self.drop,
                     self.triviaqa, self.wikitext, self.ifeval, self.code):
            make()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="the folder to write to")
    parser.add_argument("--documents", type=int, default=20, help="documents of each task (default: 20)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.documents < 6:
        parser.error("GPQA takes five examples from the documents that it evaluates: at least 6 are needed")
    Maker(arguments.folder, arguments.documents, arguments.seed).all()


if __name__ == "__main__":
    main()
