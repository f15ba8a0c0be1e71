"""The import of a task's functions: `!function utils.name` of a task file, where utils.py lies beside the file."""
import importlib
import importlib.util
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


def spec_of(name, path, files, folders=None):
    return importlib.util.spec_from_file_location(name, files.local(path), submodule_search_locations=folders)


def load_module(path, files):
    name, local = module_name(path), files.local(path)
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == local:
        return sys.modules[name]
    spec = spec_of(name, path, files)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


def installed_module(module, path):
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ImportError(f"{path} is not there, and no module {module!r} is installed") from None


def load_function(folder, name, files):
    """The function of `!function name` in a task file of `folder`. A module beside the file comes first, then one that
    can be imported."""
    module, _, function = name.rpartition(".")
    if not module:
        raise ImportError(f"{name!r} names no module: expected module.function")
    path = f"{folder.rstrip('/')}/{module.replace('.', '/')}.py"
    found = load_module(path, files) if files.kind(path) == "file" else installed_module(module, path)
    if not hasattr(found, function):
        where = files.real(getattr(found, "__file__", None) or module)
        raise AttributeError(f"{where} has no function {function!r}")
    return getattr(found, function)


# The harness's random_seed and numpy_random_seed, with which it begins (lm_eval/evaluator.py, simple_evaluate).
PYTHON_SEED, NUMPY_SEED = 0, 1234


def seed(number, numpy_number=None):
    """Makes what functions draw at random the same each time: Python's generator and, if it is there, numpy's."""
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed((number if numpy_number is None else numpy_number) % (1 << 32))


def seed_as_the_harness():
    """Before a function makes documents, or aggregates: what it draws is then what the harness draws if it evaluates the task
    alone, and if no function of the task has drawn before."""
    seed(PYTHON_SEED, NUMPY_SEED)
