"""The values that an aggregation gets: one for each document, with the types that they have in the harness 0.4.13
(lm_eval/api/task.py, ConfigurableTask.process_results)."""
import sys

from .values import unpack

# Functions of lm_eval/api/metrics.py, and the names of these aggregations in task files.
KNOWN = {"mean": "mean", "median": "median", "nanmean": "nanmean", "perplexity": "perplexity",
         "weighted_perplexity": "weighted_perplexity", "bits_per_byte": "bits_per_byte", "f1_score": "f1",
         "matthews_corrcoef": "matthews_corrcoef", "brier_score": "brier_score", "bypass_agg": "bypass", "bleu": "bleu",
         "chrf": "chrf", "chrfpp": "chrf++", "ter": "ter"}


def known_aggregation(function):
    """The name of the harness's own aggregation that a task's file has imported; "" for any other function."""
    metrics = sys.modules.get("lm_eval.api.metrics")
    return next((name for known, name in KNOWN.items() if getattr(metrics, known, None) is function), "")


def number(value):
    return float(value) if isinstance(value, str) else value  # "-inf": JSON does not have it


def pair(value):
    return number(value[0]), number(value[1])


def labels(value):
    """The gold label, or all of them, and the predicted one: an index that numpy found."""
    try:
        from numpy import int64
    except ImportError:
        int64 = int
    return value[0], int64(value[1])


def label_and_numbers(value):
    return value[0], tuple(number(one) for one in value[1])


def label_and_array(value):
    label, numbers = label_and_numbers(value)
    try:
        from numpy import array
    except ImportError:
        return label, list(numbers)
    return label, array(numbers)


# Built-in metrics whose values are no single number.
SHAPES = {"f1": labels, "mcc": labels, "likelihood": label_and_numbers, "brier_score": label_and_array,
          "word_perplexity": pair, "byte_perplexity": pair, "bits_per_byte": pair}


def items_of(metric, packed):
    values = [unpack(one) for one in packed]
    return [SHAPES.get(metric, number)(value) for value in values] if metric else values
