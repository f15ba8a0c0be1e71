"""A metric of a task's own for a document of generate_until, called as lm_eval 0.4.13 calls it (lm_eval/api/task.py,
ConfigurableTask.process_results)."""
from .values import LEAST, MOST, as_json, pack


def called(function, references, predictions, settings):
    """Metrics of lm_eval's own kind take one argument, the pair of gold answer and response."""
    try:
        return function(references=references, predictions=predictions, **settings)
    except TypeError:
        return function([references[0], predictions[0]])


def value_of(function, name, gold, result, settings, several):
    """The value for a document. With several gold answers it says whether any of them is met, whatever the function gives."""
    if not several:
        return called(function, [gold], [result], settings)
    golds = gold if isinstance(gold, list) else [gold]
    if name == "exact_match":
        return 1.0 if function(references=golds, predictions=[result for _ in golds], **settings)[name] > 0.0 else 0.0
    scores = []
    for one in golds:
        score = called(function, [one], [result], settings)
        scores.append(score[name] if isinstance(score, dict) else score)
    return 1.0 if any(scores) else 0.0


def check_name(function, name):
    """lm_eval calls the metric by the name that the function has of itself."""
    own = getattr(function, "__name__", None)
    if own != name:
        raise TypeError(f"the task file names the metric {name!r}, but the function calls itself {own!r}: results would have that "
                        "name; give both one name")


def only_value(value, name):
    """A mapping may give the metric's own value."""
    if not isinstance(value, dict):
        return value
    if list(value) != [name]:
        raise TypeError(f"the metric gives a mapping of {sorted(map(str, value))}, expected a value, or a mapping with the one key "
                        f"{name!r}")
    return value[name]


def require_number(value):
    """A number whose sums are those of Python's numbers or of numpy's 64 bits."""
    if type(value) in (bool, float) or type(value) is int and LEAST <= value <= MOST:
        return
    kind = getattr(getattr(value, "dtype", None), "name", "")
    if kind in ("float64", "int64", "bool") and getattr(value, "shape", None) == ():
        return
    raise TypeError(f"the metric gives {repr(value)[:200]} of type {type(value).__name__}, expected a number: lm_eval's own "
                    "aggregation takes no other value")


def scored(function, name, gold, result, settings, several, takes):
    """`takes`: what is done with the value. "function": it goes to a function of the task's own, as it is; "number" and
    "any": to an aggregation of lm_eval's own."""
    value = only_value(value_of(function, name, gold, result, settings, several), name)
    if takes == "function":
        return pack(value)
    if takes == "number":
        require_number(value)
    return [as_json(value)[0]]
