"""Starts evald_task from texts: sys.argv is this script's name, the folders of packages, the modules' texts, the
descriptor of the connection, and "boxed" in a sandbox. Run with -S, so that no module of the host's runs before."""
import importlib.abc
import importlib.machinery
import json
import os
import site
import sys


class Texts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the modules whose texts it has."""

    def __init__(self, texts):
        self.texts = texts

    def find_spec(self, name, path=None, target=None):
        package, _, module = name.partition(".")
        if package != "evald_task" or (module or "__init__") not in self.texts:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=not module)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__.partition(".")[2] or "__init__"
        module.__file__ = f"<evald_task>/{name}.py"
        exec(compile(self.texts[name], module.__file__, "exec"), module.__dict__)


def main():
    folders, texts, connection = json.loads(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
    boxed = sys.argv[4] == "boxed"
    sys.argv[1:] = []
    os.dup2(2, 1)  # what functions print is read with their errors
    sys.meta_path.insert(0, Texts(texts))
    from evald_task import process
    for folder in folders:
        site.addsitedir(folder)
    process.main(connection, os.dup(connection), boxed)


main()
