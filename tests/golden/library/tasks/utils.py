"""Functions of the tasks beside this file."""
import random
import re

from lm_eval.api.filter import Filter
from lm_eval.api.registry import register_filter


def only_long(dataset):
    """Documents with a long question, each with its choices in one list."""
    def gathered(row):
        row["choices"] = [row["right"], row["wrong one"], row["wrong two"]]
        return row
    return dataset.filter(lambda row: len(row["question"]) > 8).map(gathered)


def drawn(dataset):
    """The same choices in an order that is drawn with a seed."""
    draw = random.Random(9)

    def shuffled(row):
        choices = [row["right"], row["wrong one"], row["wrong two"]]
        draw.shuffle(choices)
        return {"choices": choices, "gold": choices.index(row["right"])}
    return dataset.map(shuffled)


def words_of(doc, results):
    """How many of the words of the target the answer has, and whether it has all of them."""
    wanted, said = set(doc["answer"].split()), set(results[0].split())
    return {"share": len(wanted & said) / len(wanted), "all": int(wanted <= said), "pair": (len(wanted), len(said))}


def ratio(pairs):
    """Words said for each word wanted."""
    return sum(said for _, said in pairs) / sum(wanted for wanted, _ in pairs)


def close(references, predictions, width=0.1, **kwargs):
    """1 if the lengths of an answer and its reference differ by less than a share."""
    return float(abs(len(references[0]) - len(predictions[0])) <= width * max(len(references[0]), 1))


@register_filter("golden_letters")
class Letters(Filter):
    """Keeps the first capital letter of each answer."""

    def apply(self, resps, docs):
        return [[next(iter(re.findall("[A-Z]", text)), "[none]") for text in texts] for texts in resps]


def last_line(resps, docs):
    return [[text.strip().split("\n")[-1] for text in texts] for texts in resps]
