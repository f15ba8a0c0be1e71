"""The files and packages that a task's functions use, so that prepared tasks are found again while these are the same.
A module that one task has loaded is not loaded again for another, so each module's own uses are kept."""
import builtins
import contextlib
import sys
from importlib import metadata


class Uses:
    def __init__(self):
        self.files = {}  # name of a task's module: paths of the files that were opened for it
        self.imports = {}  # the same: names that it imports
        self.running = []  # names of the modules whose code runs, the innermost last
        self.plain_import = builtins.__import__
        builtins.__import__ = self.noting_import

    @contextlib.contextmanager
    def of(self, module):
        """What is opened meanwhile, is opened for this module."""
        self.files.setdefault(module, set())
        self.imports.setdefault(module, set())
        self.running.append(module)
        try:
            yield
        finally:
            self.running.pop()

    def note_file(self, path):
        if self.running:
            self.files[self.running[-1]].add(path)

    def noting_import(self, name, globals=None, locals=None, fromlist=(), level=0):
        importer = (globals or {}).get("__name__")
        if importer in self.imports and level == 0:
            self.imports[importer].update([name], (f"{name}.{part}" for part in fromlist or ()))
        return self.plain_import(name, globals, locals, fromlist, level)

    def closure(self, modules):
        """These modules and all modules of tasks that they import, and the names of everything else imported."""
        found, others, left = set(), set(), list(modules)
        while left:
            module = left.pop()
            if module in found:
                continue
            if module in self.imports:
                found.add(module)
                left.extend(self.imports[module])
            else:
                others.add(module.split(".")[0])
        return found, others

    def by(self, modules):
        """The paths of all files that the modules use, and {name: version} of the installed packages."""
        modules, others = self.closure(modules)
        paths = sorted(set().union(*(self.files[module] for module in modules)))
        by_module = metadata.packages_distributions() if others - set(standard_library()) else {}
        packages = {package for name in others for package in by_module.get(name, ())}
        return paths, {name: metadata.version(name) for name in sorted(packages)}


def standard_library():
    return getattr(sys, "stdlib_module_names", ())
