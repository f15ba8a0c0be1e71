"""Runs the Python functions of task files for evald, in a process of its own (docs/task-code.md).

Only Python's standard library is needed. Packages that a task's functions import (datasets, numpy, ...) are those of
the Python that evald was told to use.
"""
