"""The suite quickstart_math as a task of Inspect (inspect-ai), for a checkpoint behind `evald endpoint`.

Prompts, stop string and scoring are those of examples/quickstart/tasks/quickstart_math.yaml, so that the accuracy is
evald's own exact_match. docs/endpoint.md shows how to run this.
"""
import json
import pathlib
import re

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer, stderr
from inspect_ai.solver import generate

DATA = pathlib.Path(__file__).resolve().parents[1] / "quickstart" / "data" / "math"
FEW_SHOT = 2
ANSWER = re.compile(r"#### (\-?[0-9\.\,]+)")


def documents(name):
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]


def prompt(document, examples):
    shown = [f"Question: {example['question']}\nAnswer: {example['answer']}\n\n" for example in examples]
    return "".join(shown) + f"Question: {document['question']}\nAnswer:"


def number(text):
    found = ANSWER.search(text)
    return found[1].replace(",", "").rstrip(".") if found else None


@scorer(metrics=[accuracy(), stderr()])
def same_number():
    async def score(state, target):
        found = number(state.output.completion)
        return Score(value=CORRECT if found == target.text else INCORRECT, answer=found)

    return score


@task
def quickstart_math():
    examples = documents("train")[:FEW_SHOT]
    samples = [Sample(input=prompt(document, examples), target=number(document["answer"]))
               for document in documents("test")]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=same_number(),
                config=GenerateConfig(temperature=0, max_tokens=128, stop_seqs=["Question:"]))
