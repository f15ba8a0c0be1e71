"""Hand-written forms of rows for tasks whose documents made_up_rows.py does not find.

A task's templates and functions say little about some data sets: texts with a grammar of their own, values that belong
together, subjects by which rows are sorted out. FORMS has a function for these tasks, which makes a row with the columns and
types of the real data set. The texts are made up.

row_of(name) gives the function of a task: (random, name) -> row. answers_of(name, doc) gives the answers of tasks whose
scoring reads a format of its own, in the place of those that library_harness.py makes of the target.
"""

import json
import random
import re

from made_up_rows import BOXED, text

LETTERS = "ABCDE"


def word(draw):
    return draw.choice(["house", "river", "tall", "Blue", "café", "日本", "12", "don't"])


def words(draw, least=2, most=9):
    """A text that begins and ends with a word."""
    return f"{word(draw)} {text(draw, least, most)} {word(draw)}"


def texts(draw, count):
    """Different texts."""
    return [f"{words(draw, 1, 4)} {number}" for number in range(count)]


# ---------------------------------------------------------------- choices


def bbq(draw, name):
    people = draw.sample([("Maria", "F-Latino"), ("Bob", "M-White"), ("the old man", "old"), ("the young woman", "nonOld"),
                          ("Ali", "lowSES-African"), ("Grace", "nonTrans")], 2)
    groups = [group.lower().split("-")[-1] for _, group in people]
    unknown = draw.choice(["Unknown", "Cannot answer", "Not known", "Can't be determined", "Undetermined"])
    answers = [(person, [person, group]) for person, group in people] + [(unknown, ["unknown", "unknown"])]
    draw.shuffle(answers)
    if "disambig" in name:
        condition = "disambig"
    else:
        condition = draw.choice(["ambig", "disambig"])
    return {"example_id": draw.randrange(1000), "question_index": str(draw.randrange(1, 20)),
            "question_polarity": draw.choice(["neg", "nonneg"]), "context_condition": condition,
            "category": draw.choice(["Age", "Nationality", "Race_x_SES", "Religion"]),
            "answer_info": {f"ans{i}": info for i, (_, info) in enumerate(answers)},
            "additional_metadata": {"subcategory": "None", "stereotyped_groups": [draw.choice(groups), "Old"], "version": "v1",
                                    "source": text(draw)},
            "context": words(draw), "question": words(draw) + "?", **{f"ans{i}": answer for i, (answer, _) in enumerate(answers)},
            "label": draw.randrange(3)}


def commonsense_qa(draw, name):
    return {"id": f"{draw.randrange(10**8):x}", "question": words(draw) + "? ", "question_concept": word(draw),
            "choices": {"label": list(LETTERS), "text": texts(draw, 5)}, "answerKey": draw.choice(LETTERS)}


def mathqa(draw, name):
    values = [str(draw.randrange(1000)), f"{draw.randrange(100)}.{draw.randrange(10)}", f"rs . {draw.randrange(100)}", "1 , 400",
              "none of these"]
    draw.shuffle(values)
    options = " , ".join(f"{letter} ) {value}" for letter, value in zip("abcde", values))
    return {"Problem": words(draw), "Rationale": words(draw), "options": options, "correct": draw.choice("abcde"),
            "annotated_formula": "add(n0,n1)", "linear_formula": "add(n0,n1)|", "category": draw.choice(["general", "gain"])}


def mmmlu(draw, name):
    subject = name.split("_", 3)[3]
    shown = draw.choice([subject, subject, subject + "_test.csv_sw-KE.csv", subject + "_test-sw-KE.csv", "other_subject"])
    return {"Unnamed: 0": draw.randrange(1000), "Question": words(draw) + " ", **dict(zip("ABCD", texts(draw, 4))),
            "Answer": draw.choice("ABCD"), "Subject": shown}


def truthfulqa(draw, name):
    def targets(true, false):
        return {"choices": texts(draw, true + false), "labels": [1] * true + [0] * false}
    return {"question": words(draw) + "?", "mc1_targets": targets(1, draw.randint(2, 4)),
            "mc2_targets": targets(draw.randint(1, 4), draw.randint(1, 5))}


def click_lang(draw, name):
    ids = {"function": ["CSAT_korean_23_35", "CSAT_korean_20_7", "Kedu_16_4", "PSE_korean_3_2"],
           "grammar": ["CSAT_korean_19_12", "Kedu_1_5", "Kedu_16_9", "TK_9_3"],
           "text": ["CSAT_korean_22_8", "CSAT_korean_23_9", "TK_12_8"]}
    which = draw.choice(ids[name.rsplit("_", 1)[1]] + ["CSAT_korean_21_11"])
    choices = texts(draw, 5 if "CSAT" in which else 4)
    question = f"{draw.choice(['대화', '발화'])} {words(draw)}" if which == "Kedu_16_4" else words(draw)
    return {"id": which, "paragraph": draw.choice(["", words(draw)]), "question": question, "choices": choices,
            "answer": draw.choice(choices)}


def physics_gre(draw, name):
    right = draw.choice([*LETTERS, None])
    return {"input": f" {words(draw)} ", "target_scores": {letter: int(letter == right) for letter in LETTERS},
            "has_image": draw.random() < 0.3}


def openbookqa(draw, name):
    choices = [{"text": choice, "label": letter} for choice, letter in zip(texts(draw, 4), "ABCD")]
    return {"id": str(draw.randrange(1000)), "question": {"stem": words(draw), "choices": choices},
            "answerKey": draw.choice(["", " "]) + draw.choice("ABCD")}


def evalita_faq(draw, name):
    return {"question": words(draw), **dict(zip("ABCD", texts(draw, 4))), "correct_answer": draw.choice("ABCD")}


def french_grammar(draw, name):
    return {"question": f"{words(draw)} <...> {word(draw)}.", **{f"answer{letter}": one for letter, one in zip("ABCD", texts(draw, 4))},
            "answer": draw.choice("ABCD"), "subject": word(draw), "context": None}


def metabench_arc(draw, name):
    row = {"alltwentyfiveshot_longprompt": text(draw), "question": words(draw), "arc_idx": draw.randrange(1000)}
    for end in ["", *(f"_shot_{shot}" for shot in range(1, 26))]:
        choices = {"text": texts(draw, 4), "label": draw.choice([list("ABCD"), list("1234")])}
        key = draw.choice(choices["label"])
        if not end:
            row.update(choices=choices, answerKey=key)
            continue
        shot = {"question": words(draw), "answerKey": key, "choices": choices, "idx": draw.randrange(1000)}
        row.update({f"arc_{column}{end}": value for column, value in shot.items()})
    return row


def copa(draw, name):
    return {"premise": words(draw) + ".", "choice1": "The " + words(draw), "choice2": "My " + words(draw),
            "question": draw.choice(["cause", "effect"]), "idx": draw.randrange(1000), "label": draw.randrange(2)}


def agieval(draw, name):
    choices = [f"({letter}){choice}" for letter, choice in zip(LETTERS, texts(draw, 5))]
    return {"query": f"Q: {words(draw)} Answer Choices: {' '.join(choices)}\nA: Among A through E, the answer is",
            "choices": choices, "gold": [draw.randrange(5)]}


def mmlu_pro(draw, name):
    right = draw.randrange(10)
    return {"question_id": draw.randrange(1000), "question": words(draw), "options": texts(draw, 10), "answer": "ABCDEFGHIJ"[right],
            "answer_index": right, "cot_content": text(draw), "category": draw.choice(["math", "law"]), "src": word(draw)}


def score_math(draw, name):
    return {"problem": words(draw), "level": f"Level {draw.randint(1, 5)}", "type": "Algebra",
            "solution": f"{words(draw)} ${draw.choice(BOXED)}$."}


# ---------------------------------------------------------------- texts


def coqa(draw, name):
    turns = draw.randint(1, 4)

    def answers():
        return {"input_text": [words(draw, 1, 3) for _ in range(turns)], "answer_start": [0] * turns, "answer_end": [1] * turns,
                "turn_id": list(range(1, turns + 1))}
    return {"id": str(draw.randrange(1000)), "source": "wikipedia", "story": words(draw, 10, 20),
            "questions": {"input_text": [words(draw) + "?" for _ in range(turns)], "turn_id": list(range(1, turns + 1))},
            "answers": answers(), "additional_answers": {str(number): answers() for number in range(3)}}


def cabreu(draw, name):
    return {"id": draw.randrange(1000), "content": words(draw, 10, 20), "category": word(draw),
            "summaries": {kind: {f"a{number}": words(draw).replace(" ", "   ", 1) for number in (1, 2, 3)}
                          for kind in ("abstractive", "extractive", "extreme")}}


def qasper(draw, name):
    def answer():
        kind = draw.choice(["none", "yes", "no", "free", "spans"])
        return {"unanswerable": kind == "none", "extractive_spans": texts(draw, 2) if kind == "spans" else [],
                "yes_no": {"yes": True, "no": False}.get(kind), "free_form_answer": words(draw) if kind == "free" else "",
                "evidence": [text(draw)], "highlighted_evidence": [text(draw)]}
    count = draw.randint(1, 3)
    return {"id": f"{draw.randrange(3000)}.{draw.randrange(10000)}", "title": words(draw), "abstract": words(draw),
            "full_text": {"section_name": [word(draw)], "paragraphs": [[text(draw)]]},
            "qas": {"question": [words(draw) + "?" for _ in range(count)], "question_id": [str(i) for i in range(count)],
                    "answers": [{"answer": [answer() for _ in range(draw.randint(1, 3))], "worker_id": ["w"]} for _ in range(count)]}}


def lingoly(draw, name):
    def part(number):
        answers = [words(draw, 1, 3), "", str(texts(draw, 2)), "Café + river."]
        return {"questionpart_n": f"{number}.{draw.choice('abc')}{draw.randrange(100)}", "question": words(draw),
                "answer": draw.choice(answers)}
    questions = [{"question_n": f"Q {number}", "prompt": words(draw), "subprompts": [part(number) for _ in range(draw.randint(1, 3))]}
                 for number in range(draw.randint(1, 3))]
    return {"overall_question_n": draw.randrange(200), "obfuscated": "False", "preamble": words(draw), "context": words(draw),
            "questions": json.dumps(questions)}


def lingoly_answers(draw, doc):
    right = dict(re.findall(r"'([^']+)': '([^']*)'", doc["answers"]))
    some = {key: value if draw.random() < 0.7 else text(draw) for key, value in right.items()}
    return ["", json.dumps(right), f"Here: {json.dumps(some, indent=1)}", json.dumps(some)[:-2]]


def graphwalks(draw, name):
    nodes = [f"{draw.randrange(16**10):010x}" for _ in range(draw.randint(0, 5))]
    return {"prompt": words(draw), "answer_nodes": nodes, "prompt_chars": draw.randrange(1000),
            "problem_type": draw.choice(["bfs", "parents"]), "date_added": "2025-04-14"}


def graphwalks_answers(draw, doc):
    nodes = [node for node in doc["answer_nodes"] if draw.random() < 0.7] + ["0123456789"][:draw.randrange(2)]
    return [f"So.\nFinal Answer: [{', '.join(doc['answer_nodes'])}]", f"Final Answer: [{', '.join(nodes)}]", "Final Answer: []",
            f"Final Answer: {nodes}\nDone."]


def mafand(draw, name):
    first, second = re.search(r"mafand_(\w+?)-(\w+?)_prompt", name).groups()
    language = first if first not in ("en", "fr") else second
    other = "fr" if "fr" in (first, second) else "en"
    return {"translation": {language: words(draw), other: words(draw)}}


def passage_retrieval(draw, name):
    title = "段落" if name.endswith("zh") else "Paragraph "
    return {"input": words(draw), "context": words(draw, 10, 20), "question": words(draw),
            "answers": [f"{title}{draw.randint(1, 30)}"], "length": draw.randrange(10000), "dataset": name.split("_", 1)[1],
            "language": "zh" if name.endswith("zh") else "en", "all_classes": None, "_id": f"{draw.randrange(16**10):x}"}


def passage_retrieval_answers(draw, doc):
    return [doc["answers"][0], f"{doc['answers'][0]} or Paragraph 31", "12", ""]


def evalita_ls(draw, name):
    answers = [{"word": word(draw), "count": draw.randint(1, 4)} for _ in range(draw.randint(0, 4))]
    return {"id": str(draw.randrange(1000)), "head": word(draw), "context": f"{words(draw)} <head>{word(draw)}</head> {word(draw)}",
            "answers": answers}


def evalita_ls_answers(draw, doc):
    return [", ".join(one["word"] for one in doc["answers"]), "house, river\ntall; 12."]


def wsc(draw, name):
    text_words = words(draw, 6, 9).split(" ")
    at = draw.randrange(1, len(text_words))
    return {"text": " ".join(text_words), "span1_index": 0, "span2_index": at, "span1_text": draw.choice(["The river", "Bob's house"]),
            "span2_text": text_words[at], "idx": draw.randrange(1000), "label": draw.randrange(2)}


def nerel(draw, name):
    context = {"source_text": words(draw), "entity": word(draw), "named_entity": word(draw), "first_entity": word(draw),
               "second_entity": word(draw)}
    return {"instruction": f"{words(draw)}\n{{source_text}} {word(draw)}", "context": json.dumps(context),
            "true_answer": "\n".join(texts(draw, draw.randint(1, 3)))}


def countdown(draw, name):
    numbers = [draw.randint(2, 9) for _ in range(4)]
    first, second = numbers[0] + numbers[1], numbers[2] * numbers[3]
    target = first + second
    steps = [f"{numbers[0]}+{numbers[1]}={first}", f"{numbers[2]}*{numbers[3]}={second}", f"{first}+{second}={target}"]
    search = [f"Initial number set: {numbers}, target: {target}.", f"Pick two numbers ({numbers[0]}, {numbers[1]})",
              f"  |- Try {steps[0]}. Add {first} to the number set.", f"  |- Try {numbers[0]}-{numbers[1]}, drop this branch.",
              "Now we have found the target."]
    output = "\n".join(["# Search Procedure", *search, "<Solution>", *steps, "</Solution>"])
    return {"id": str(draw.randrange(1000)), "input_prompt": words(draw), "reference_output": output,
            "metadata": json.dumps({"nums": numbers, "target": target})}


def countdown_answers(draw, doc):
    right = doc["reference_output"]
    return [right, right, right.replace("<Solution>", "Solution"), re.sub(r"=\d+", "=1", right), right.replace("drop", "keep"),
            right.split("<Solution>")[0].replace("Pick", "Take"), re.sub(r"<Solution>\n", "<Solution>\n1+1=2\n", right)]


# ---------------------------------------------------------------- instructions


def instructions(draw):
    """An instruction's name and its settings. Left out are those that need data of nltk (number_sentences,
    capital_word_frequency), or that guess the language (response_language, english_capital, english_lowercase)."""
    compared = draw.choice(["less than", "at least"])
    return draw.choice([
        ("keywords:existence", {"keywords": [word(draw), "river"]}),
        ("keywords:frequency", {"keyword": "river", "frequency": draw.randint(1, 2), "relation": compared}),
        ("keywords:forbidden_words", {"forbidden_words": ["house", "tall"]}),
        ("keywords:letter_frequency", {"letter": "e", "let_frequency": draw.randint(1, 4), "let_relation": compared}),
        ("length_constraints:number_words", {"num_words": draw.randint(3, 12), "relation": compared}),
        ("length_constraints:number_paragraphs", {"num_paragraphs": draw.randint(1, 2)}),
        ("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 2, "nth_paragraph": 1, "first_word": "river"}),
        ("detectable_content:number_placeholders", {"num_placeholders": 1}),
        ("detectable_content:postscript", {"postscript_marker": "P.S."}),
        ("detectable_format:number_bullet_lists", {"num_bullets": draw.randint(1, 2)}),
        ("detectable_format:constrained_response", {}),
        ("detectable_format:number_highlighted_sections", {"num_highlights": 1}),
        ("detectable_format:multiple_sections", {"section_spliter": "SECTION", "num_sections": 2}),
        ("detectable_format:json_format", {}),
        ("detectable_format:title", {}),
        ("combination:two_responses", {}),
        ("combination:repeat_prompt", {"prompt_to_repeat": "Say it."}),
        ("startend:end_checker", {"end_phrase": "the end"}),
        ("punctuation:no_comma", {}),
        ("startend:quotation", {}),
    ])


IFEVAL_SETTINGS = ["keywords", "keyword", "frequency", "relation", "forbidden_words", "letter", "let_frequency", "let_relation",
                   "num_words", "num_paragraphs", "nth_paragraph", "first_word", "num_placeholders", "postscript_marker",
                   "num_bullets", "num_highlights", "section_spliter", "num_sections", "prompt_to_repeat", "end_phrase"]


def ifeval(draw, name):
    chosen = [instructions(draw) for _ in range(draw.randint(1, 3))]
    language = re.search(r"ifeval_(\w\w)", name)
    start = language.group(1) + ":" if language else ""
    settings = [{**dict.fromkeys(IFEVAL_SETTINGS), **values} for _, values in chosen]
    return {"key": draw.randrange(1000), "prompt": words(draw), "instruction_id_list": [start + one for one, _ in chosen],
            "kwargs": settings}


def ifeval_answers(draw, doc):
    return ["river house [name]\n\n***\n\ntall *so* river the end", "* river\n* tree\n\nP.S. the end", '{"river": 1}',
            "SECTION 1\nriver\nSECTION 2\ntall", "<<A title>>\nMy answer is yes.\nriver, e e e e", '"river tree"',
            "Say it.\n\nriver ****** tree", "river\n\nhouse"]


# ---------------------------------------------------------------- the table

# A pattern of whole names of tasks, the function of a row, and the one of answers.
FORMS = [
    (r"bbq(_.*)?", bbq, None),
    (r"commonsense_qa", commonsense_qa, None),
    (r"mathqa", mathqa, None),
    (r"mmmlu_\w\w_\w\w_.*", mmmlu, None),
    (r"truthfulqa(_gl)?_mc2|truthfulqa-multi_mc2_\w+", truthfulqa, None),
    (r"click_lang_(function|grammar|text)", click_lang, None),
    (r"physics_gre_.*", physics_gre, None),
    (r"AraDiCE_openbookqa_.*", openbookqa, None),
    (r"evalita-mp_faq_prompt-.*", evalita_faq, None),
    (r"evalita-mp_ls_prompt-.*", evalita_ls, evalita_ls_answers),
    (r"french_bench_grammar", french_grammar, None),
    (r"metabench_arc(_secondary)?_permute", metabench_arc, None),
    (r"copa", copa, None),
    (r"option_order_robustness_agieval_.*", agieval, None),
    (r"score_option_order_robustness_mmlu_pro", mmlu_pro, None),
    (r"(non_greedy|prompt)_robustness_math_.*", score_math, None),
    (r"coqa", coqa, None),
    (r"cabreu_.*", cabreu, None),
    (r"qasper_.*", qasper, None),
    (r"lingoly_.*", lingoly, lingoly_answers),
    (r"graphwalks_.*", graphwalks, graphwalks_answers),
    (r"mafand_.*", mafand, None),
    (r"longbench_passage_retrieval_.*", passage_retrieval, passage_retrieval_answers),
    (r"super_glue-wsc-t5-prompt", wsc, None),
    (r"ru_(entity|relation)_.*", nerel, None),
    (r"longproc_countdown_.*", countdown, countdown_answers),
    (r"ifeval(_..)?", ifeval, ifeval_answers),
]


def found(name):
    return next((form for form in FORMS if re.fullmatch(form[0], name)), (None, None, None))


def row_of(name):
    """The function that makes a row for the task, or None."""
    return found(name)[1]


def answers_of(name, doc):
    """Answers to a document of a task whose scoring reads a format of its own; none for other tasks."""
    answers = found(name)[2]
    return answers(random.Random(f"answers of {json.dumps(doc, sort_keys=True, default=str)}"), doc) if answers else []
