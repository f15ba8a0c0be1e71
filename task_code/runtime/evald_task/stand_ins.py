"""Modules of `lm_eval` and `datasets` with the names that task files import, for a Python without these packages. A
package that is installed comes first."""
import importlib.abc
import importlib.machinery
import logging
import re
import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from . import rows
from .functions import TASKS, spec_of

REMEDY = {"lm_eval": "pip install lm_eval==0.4.13", "datasets": "pip install datasets"}


class Filter:
    """A step of a filter pipeline, over the responses to all documents."""

    def __init__(self, **settings):
        pass

    def apply(self, resps, docs):
        return resps


class RegexFilter(Filter):
    """Each response becomes its match number `group_select`, or the fallback. Of a pattern with several groups the first
    that is not empty counts."""

    def __init__(self, regex_pattern=r"#### (\-?[0-9\.\,]+)", group_select=0, fallback="[invalid]", **settings):
        self.regex_pattern, self.group_select, self.fallback = regex_pattern, group_select, fallback
        self.regex = re.compile(regex_pattern)

    def found(self, response):
        matches = self.regex.findall(response)
        if not matches:
            return self.fallback
        match = matches[self.group_select]
        if isinstance(match, tuple):
            match = next((group for group in match if group), self.fallback)
        return match.strip()

    def apply(self, resps, docs):
        return [[self.found(response) for response in responses] for responses in resps]


@dataclass
class Instance:
    """A request with its responses."""
    request_type: str
    doc: dict
    arguments: tuple
    idx: int
    metadata: Any = None
    resps: list = field(default_factory=list)
    filtered_resps: dict = field(default_factory=dict)
    task_name: Any = None
    doc_id: Any = None
    repeats: Any = None


def keeping(*names, **settings):
    """A decorator that only marks: register_filter("name") and its like."""
    return lambda decorated: decorated


def mean(values):
    return sum(values) / len(values)


def metric_max_over_ground_truths(metric, prediction, ground_truths):
    return max(metric(prediction, truth) for truth in ground_truths)


def weighted_f1_score(items):
    from sklearn.metrics import f1_score
    golds, predictions = zip(*items)
    return f1_score(golds, predictions, average="weighted")


def general_detokenize(text):
    for spaced, joined in ((" n't", "n't"), (" )", ")"), ("( ", "("), ('" ', '"'), (' "', '"')):
        text = text.replace(spaced, joined)
    return re.sub(r" (['.,])", r"\1", text)


def load_dataset(*arguments, **settings):
    raise RuntimeError("task code has no network and loads no dataset: name the data in the task file")


MEMBERS = {
    "lm_eval": {},
    "lm_eval.api": {},
    "lm_eval.api.filter": {"Filter": Filter},
    "lm_eval.api.instance": {"Instance": Instance},
    "lm_eval.api.metrics": {"mean": mean, "metric_max_over_ground_truths": metric_max_over_ground_truths},
    "lm_eval.api.registry": {"register_filter": keeping, "register_task": keeping, "register_metric": keeping,
                             "register_aggregation": keeping},
    "lm_eval.filters": {},
    "lm_eval.filters.extraction": {"Filter": Filter, "RegexFilter": RegexFilter},
    "lm_eval.tasks": {},
    "lm_eval.utils": {"weighted_f1_score": weighted_f1_score, "general_detokenize": general_detokenize,
                      "eval_logger": logging.getLogger("lm-eval"), "logging": logging},
    "datasets": {"Dataset": rows.Dataset, "DatasetDict": rows.DatasetDict, "load_dataset": load_dataset,
                 "concatenate_datasets": rows.concatenate_datasets},
}


def missing_name(module):
    def look_up(name):
        if name.startswith("__"):
            raise AttributeError(name)
        package = module.split(".")[0]
        raise AttributeError(f"{module}.{name} is only there with the package itself: {REMEDY[package]}")
    return look_up


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of MEMBERS, and those of lm_eval.tasks in the folders of task files."""

    def __init__(self, files):
        self.files = files
        self.roots = []

    def find_spec(self, name, path=None, target=None):
        if name in MEMBERS:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        if name.startswith("lm_eval.tasks."):
            return self.find_task_module(name)
        return None

    def find_task_module(self, name):
        inside = name.split(".", 2)[2].replace(".", "/")
        for root in self.roots:
            for path in (f"{root}/{inside}.py", f"{root}/{inside}/__init__.py"):
                if self.files.kind(path) == "file":
                    folders = [root] if path.endswith("/__init__.py") else None
                    return spec_of(name, path, self.files, folders)
            if self.files.kind(f"{root}/{inside}") == "folder":
                return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return ModuleType(spec.name)

    def exec_module(self, module):
        if module.__name__ in MEMBERS:
            module.__dict__.update(MEMBERS[module.__name__])
            module.__getattr__ = missing_name(module.__name__)

    def know(self, folder):
        """Lets modules below `folder`, if that is lm_eval/tasks or lies in it, be imported as lm_eval.tasks."""
        inside = folder.rstrip("/") + "/"
        if TASKS in inside:
            self.add_root(inside[:inside.index(TASKS) + len(TASKS) - 1])

    def add_root(self, folder):
        if folder.rstrip("/") not in self.roots:
            self.roots.append(folder.rstrip("/"))


def install(files):
    """Adds the stand-ins behind everything that is installed. Returns the finder."""
    finder = Finder(files)
    sys.meta_path.append(finder)
    return finder
