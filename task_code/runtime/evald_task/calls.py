"""The calls that evald makes (docs/task-code.md). Each takes the members of a message and gives those of the answer."""
import json
import zlib

from . import custom, filters, functions, mathematics, metrics
from .items import items_of, known_aggregation
from .table_files import FileTable
from .tables import Table, dataset_of, packed_until_full
from .values import as_json, pack, unpack


# The shapes of responses. Numbers that JSON does not have come as text: "-inf".
FORMS = {"texts": lambda one: one, "pairs": lambda one: (float(one[0]), bool(one[1])), "numbers": float}


class AtDocument(Exception):
    """A function's exception, and the number of the document on which it was thrown."""

    def __init__(self, document, cause):
        super().__init__(str(cause))
        self.document, self.cause = document, cause


def metrics_of(metrics, keep):
    """[json, {metric: pickle}] of what process_results gives: a pickle for each metric of `keep` that JSON would change."""
    shown = as_json(metrics)[0]
    packed = {name: pack(metrics[name]) for name in keep if isinstance(metrics, dict) and name in metrics}
    return [shown, {name: one[1] for name, one in packed.items() if len(one) == 2}]


class Calls:
    def __init__(self, finder, files):
        self.finder, self.files = finder, files
        self.functions = {}
        self.tables = {}
        self.next_table = 1
        self.items = {}
        self.next_items = 0

    def named(self, name):
        call = getattr(self, "do_" + name, None)
        if call is None:
            raise ValueError(f"there is no call {name!r}")
        return call

    # -- functions

    def do_load(self, folder, name, seed):
        """Imports a function. Its module draws at random with the seed while it is imported."""
        if (folder, name) not in self.functions:
            self.finder.know(folder)
            functions.seed(seed)
            self.functions[folder, name] = functions.load_function(folder, name, self.files)
        function = self.functions[folder, name]
        return {"callable": callable(function), "aggregation": known_aggregation(function),
                "name": str(getattr(function, "__name__", ""))}

    def do_roots(self, folders):
        """Folders of task files: modules in them can be imported as lm_eval.tasks, as those of lm_eval/tasks can."""
        for folder in folders:
            self.finder.add_root(folder)
        return {}

    def function(self, names):
        return self.functions[tuple(names)]

    # -- documents

    def do_rows(self, rows, columns, table=None):
        """Adds rows to a table of rows, or begins one."""
        if table is None:
            table = self.keep((columns, []))
        self.tables[table][1].extend(rows)
        return {"table": table}

    def do_process_docs(self, function, table):
        columns, rows = self.tables.pop(table)
        functions.seed_as_the_harness()
        return self.kept(self.function(function)(dataset_of(rows, columns)))

    def do_documents(self, table):
        """The rows as documents, for a task without process_docs."""
        columns, rows = self.tables.pop(table)
        return self.kept(dataset_of(rows, columns))

    def do_fetch(self, paths):
        """Asks for these files now, so that they are known before anything runs."""
        for path in paths:
            self.files.kind(path)
        return {}

    def do_custom_dataset(self, function, arguments, tokenizer, data):
        """The splits that a function makes of its arguments. `tokenizer` and `data` are folders whose files evald lends."""
        made = custom.splits_of(self.function(function), arguments, custom.Lent(self.files, tokenizer, data))
        return {"splits": {str(split): self.kept(documents) for split, documents in made.items()}}

    def do_samples(self, function):
        functions.seed_as_the_harness()
        return self.kept(self.function(function)())

    def do_open_table(self, data):
        """The rows of a file with a table."""
        table = FileTable(data)
        return {"table": self.keep(table), "count": len(table), "columns": table.columns()}

    def do_read(self, table, first, count):
        return {"values": packed_until_full(self.tables[table].part(first, count))}

    def do_apply(self, function, table, first, count, tuples_as_text=False):
        """The values of doc_to_text, doc_to_target or doc_to_choice."""
        values = self.each(self.function(function), self.tables[table].part(first, count), first)
        if tuples_as_text:
            values = (str(value) if isinstance(value, tuple) else value for value in values)
        return {"values": packed_until_full(values)}

    def keep(self, documents):
        number, self.next_table = self.next_table, self.next_table + 1
        self.tables[number] = documents
        return number

    def kept(self, documents):
        if documents is None:
            raise TypeError("the function gives None, expected documents")
        table = Table(documents)
        return {"table": self.keep(table), "count": len(table), "columns": table.columns()}

    @staticmethod
    def each(function, documents, first=0):
        for number, document in enumerate(documents, first):
            try:
                value = function(document)
            except (Exception, SystemExit) as error:
                raise AtDocument(number, error) from error
            yield value

    # -- scoring

    def do_process_results(self, function, documents, results, form, keep=()):
        """`form`: what the responses are, "texts", "pairs" (log-likelihood and greediness) or "numbers". `keep`: metrics
        whose values go to functions. A function draws at random with a seed that depends on its document alone, whichever
        documents this process has scored before."""
        call, shape = self.function(function), FORMS[form]

        def score(item):
            document, responses = item
            functions.seed(zlib.crc32(json.dumps(document).encode()))
            return call(unpack(document), [shape(one) for one in responses])

        return {"values": [metrics_of(value, keep) for value in self.each(score, zip(documents, results))]}

    def do_filter(self, function, custom, settings, responses, document, lazy):
        """A step of a filter pipeline for one document: a function of (responses, documents) if `custom`, else a Filter's
        class. `lazy`: the step gets an iterator. Draws at random with a seed that depends on the document alone."""
        functions.seed(zlib.crc32(json.dumps(document).encode()))
        filtered, lazy = filters.run(self.function(function), custom, settings, [responses], [unpack(document)], lazy)
        return {"left": filtered[0], "lazy": lazy}

    def do_check_filter(self, function, custom, settings, items, lazy, seed):
        """The same for all documents in one call: where it gives something else than for one document after another."""
        functions.seed(seed)
        return filters.first_difference(self.function(function), custom, settings, lazy, self.items.pop(items))

    def do_metric(self, function, name, gold, result, settings, several, takes):
        """The metric of one document. `several`: the gold answer is a list of them."""
        call = self.function(function)
        metrics.check_name(call, name)
        functions.seed(zlib.crc32(json.dumps([gold, result]).encode()))
        return {"value": metrics.scored(call, name, gold, result, settings, several, takes)}

    def do_items(self, values, items=None):
        """Adds values to a list of them, or begins one."""
        if items is None:
            items, self.next_items = self.next_items, self.next_items + 1
            self.items[items] = []
        self.items[items].extend(values)
        return {"items": items}

    def do_aggregate(self, function, items, metric):
        """`metric`: the built-in metric whose values the list has; "" for values of process_results."""
        values = items_of(metric, self.items[items])
        functions.seed_as_the_harness()
        return {"value": as_json(self.function(function)(values))[0]}

    # -- mathematics

    def do_load_math(self):
        """Imports math-verify, which takes a second."""
        import math_verify  # noqa: F401
        return {}

    def do_compare_math(self, gold, answer, settings, seconds):
        return mathematics.compare(gold, answer, settings, seconds)
