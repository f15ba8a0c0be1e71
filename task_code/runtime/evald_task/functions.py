"""The import of a task's functions: `!function utils.name` of a task file, where utils.py lies beside the file."""
import importlib
import importlib.util
import os
import random
import sys

TASKS = "/lm_eval/tasks/"


def module_name(path):
    """The name under which the harness imports a file (lm_eval/tasks/_yaml_loader.py): modules that a task of
    lm_eval/tasks imports by that name are then the same modules."""
    if TASKS in path:
        inside = path[path.index(TASKS) + len(TASKS):]
        return "lm_eval.tasks." + inside.removesuffix(".py").replace("/", ".")
    return path.removesuffix(".py")


def load_module(path):
    name = module_name(path)
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == path:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


def load_function(folder, name):
    """The function of `!function name` in a task file of `folder`. A module beside the file comes first, then one that
    can be imported."""
    module, _, function = name.rpartition(".")
    if not module:
        raise ImportError(f"{name!r} names no module: expected module.function")
    path = os.path.realpath(os.path.join(folder, module.replace(".", "/") + ".py"))
    found = load_module(path) if os.path.exists(path) else importlib.import_module(module)
    if not hasattr(found, function):
        raise AttributeError(f"{getattr(found, '__file__', module)} has no function {function!r}")
    return getattr(found, function)


def seed(number):
    """Makes what functions draw at random the same each time: Python's generator and, if it is there, numpy's."""
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % (1 << 32))
