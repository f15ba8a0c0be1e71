"""Steps of filter pipelines that are a task's own, called as lm_eval 0.4.13 calls them (lm_eval/api/filter.py,
FilterEnsemble.apply, and lm_eval/filters/custom.py): with the responses and the documents, as two lists."""
from .values import as_json, unpack


def passed_on(responses, lazy):
    """What a step gets from the step before: a list, or the iterator that take_first and its like leave."""
    return map(lambda one: one, responses) if lazy else responses


def outcome_of(step, custom, settings):
    """The function that filters: the one that `custom` names as filter_fn, or that of an object made with the settings."""
    return step if custom else step(**settings).apply


def run(step, custom, settings, responses, documents, lazy):
    """The filtered responses of each document, and whether they came as an iterator. Throws if there are not as many as
    documents, if a value would not be the same after JSON, or if the filter changes what it gets."""
    before = repr((responses, documents))
    filtered = outcome_of(step, custom, settings)(passed_on(responses, lazy), documents)
    if filtered is None:
        raise TypeError("the filter gives None, expected a list with an entry for each document")
    came_lazy = type(filtered) is not list
    if came_lazy and iter(filtered) is not filtered:
        raise TypeError(f"the filter gives an object of type {type(filtered).__name__}, expected a list or an iterator")
    filtered = list(filtered)
    if repr((responses, documents)) != before:
        raise TypeError("the filter changes the responses or the documents that it gets, which all later steps and pipelines of the "
                        "harness would see; let it make new ones")
    if len(filtered) != len(documents):
        raise ValueError(f"the filter gives {len(filtered)} lists of responses for {len(documents)} documents")
    return [plain(one) for one in filtered], came_lazy


def plain(value):
    shown, faithful = as_json(value)
    if not faithful:
        raise TypeError(f"the filter gives {repr(value)[:200]} of type {type(value).__name__} for a document, expected text, a "
                        "number, true, false, None, or lists and mappings of these")
    return shown


def first_difference(step, custom, settings, lazy, items):
    """Filters all documents in one call. `items` has of each document {"doc_id", "document", "given", "left"}: what the step got, and
    what it made of this document alone. Gives the first document of which it now makes something else, or {}."""
    documents = [unpack(item["document"]) for item in items]
    together = run(step, custom, settings, [item["given"] for item in items], documents, lazy)[0]
    for item, now in zip(items, together):
        if now != item["left"] or repr(now) != repr(item["left"]):  # True == 1
            return {"document": item["doc_id"], "alone": repr(item["left"])[:300], "together": repr(now)[:300]}
    return {}
