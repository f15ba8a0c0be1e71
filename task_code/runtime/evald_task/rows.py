"""A stand-in for datasets.Dataset with the methods that task files use, for a Python without that package."""
import copy
import math

from .arrow_types import cast, typed, typed_rows

# Settings of the package that change how it works, and not what comes out.
WITHOUT_EFFECT = {"num_proc", "load_from_cache_file", "cache_file_name", "writer_batch_size", "desc", "keep_in_memory",
                  "disable_nullable", "new_fingerprint", "suffix_template", "indices_cache_file_name"}


def refuse_unknown(method, settings):
    unknown = sorted(set(settings) - WITHOUT_EFFECT)
    if unknown:
        raise TypeError(f"Dataset.{method}: {', '.join(unknown)} is not served without the package 'datasets': "
                        "pip install datasets")


def generator(seed):
    try:
        import numpy
    except ImportError:
        raise ModuleNotFoundError("No module named 'numpy', which decides the order of shuffled rows", name="numpy") from None
    return numpy.random.default_rng(seed)


class Dataset:
    """Rows of a table. Methods give a new one and change nothing, as those of datasets.Dataset."""

    def __init__(self, rows, columns):
        self._rows, self._columns = typed_rows(rows, columns), list(columns)

    @classmethod
    def _of(cls, rows, columns):
        """Of rows that have their types already."""
        made = cls.__new__(cls)
        made._rows, made._columns = rows, list(columns)
        return made

    @classmethod
    def from_list(cls, rows, **settings):
        refuse_unknown("from_list", settings)
        return cls(rows, rows[0] if rows else ())

    @classmethod
    def from_dict(cls, columns, **settings):
        refuse_unknown("from_dict", settings)
        return cls([dict(zip(columns, row)) for row in zip(*columns.values())], list(columns))

    # -- looking

    @property
    def column_names(self):
        return list(self._columns)

    @property
    def features(self):
        return {name: None for name in self._columns}

    @property
    def num_rows(self):
        return len(self._rows)

    @property
    def num_columns(self):
        return len(self._columns)

    @property
    def shape(self):
        return self.num_rows, self.num_columns

    def __len__(self):
        return len(self._rows)

    def __iter__(self):
        return (copy.deepcopy(row) for row in self._rows)

    def __getitem__(self, key):
        if isinstance(key, str):
            if key not in self._columns:
                raise KeyError(f"Column {key} not in the dataset. Current columns in the dataset: {self._columns}")
            return [copy.deepcopy(row[key]) for row in self._rows]
        if isinstance(key, (slice, list, tuple, range)):
            rows = self._rows[key] if isinstance(key, slice) else [self._rows[i] for i in key]
            return {name: [copy.deepcopy(row[name]) for row in rows] for name in self._columns}
        return copy.deepcopy(self._rows[key])

    def to_list(self):
        return list(self)

    def to_dict(self):
        return {name: self[name] for name in self._columns}

    def unique(self, column):
        return list(dict.fromkeys(self[column]))

    # -- choosing rows

    def select(self, indices, **settings):
        refuse_unknown("select", settings)
        return self._of([self._rows[i] for i in indices], self._columns)

    def take(self, n):
        return self.select(range(min(n, len(self))))

    def skip(self, n):
        return self.select(range(min(n, len(self)), len(self)))

    def filter(self, function=None, with_indices=False, batched=False, batch_size=1000, input_columns=None, fn_kwargs=None,
               **settings):
        refuse_unknown("filter", settings)
        if function is None:
            return self
        kept = []
        for first, batch in self._batches(batched, batch_size):
            said = self._call(function, batch, first, batched, with_indices, input_columns, fn_kwargs)
            kept += [first + i for i, keep in enumerate(said if batched else [said]) if keep]
        return self.select(kept)

    def shuffle(self, seed=None, **settings):
        refuse_unknown("shuffle", settings)
        return self.select(int(i) for i in generator(seed).permutation(len(self)))

    def sort(self, column_names, reverse=False, **settings):
        refuse_unknown("sort", settings)
        names = [column_names] if isinstance(column_names, str) else list(column_names)
        order = sorted(range(len(self)), key=lambda i: tuple(self._rows[i][name] for name in names), reverse=reverse)
        return self.select(order)

    def train_test_split(self, test_size=0.25, train_size=None, shuffle=True, seed=None, **settings):
        refuse_unknown("train_test_split", settings)
        if train_size is not None:
            raise TypeError("Dataset.train_test_split: train_size is not served without the package 'datasets': "
                            "pip install datasets")
        count = test_size if isinstance(test_size, int) else math.ceil(test_size * len(self))
        if not 0 < count < len(self):
            raise ValueError(f"train_test_split: {count} of {len(self)} rows for the test leave a part empty")
        if not shuffle:
            return DatasetDict(train=self.take(len(self) - count), test=self.skip(len(self) - count))
        order = [int(i) for i in generator(seed).permutation(len(self))]
        return DatasetDict(train=self.select(order[count:]), test=self.select(order[:count]))

    # -- choosing and changing columns

    def rename_column(self, old, new):
        return self.rename_columns({old: new})

    def rename_columns(self, names):
        missing = [name for name in names if name not in self._columns]
        if missing:
            raise ValueError(f"no column {missing[0]!r}; the columns are {self._columns}")
        new = [names.get(name, name) for name in self._columns]
        return self._of([dict(zip(new, row.values())) for row in self._rows], new)

    def select_columns(self, names):
        names = [names] if isinstance(names, str) else list(names)
        return self._of([{name: row[name] for name in names} for row in self._rows] if names else [], names)

    def remove_columns(self, names):
        names = [names] if isinstance(names, str) else list(names)
        missing = [name for name in names if name not in self._columns]
        if missing:
            raise ValueError(f"no column {missing[0]!r}; the columns are {self._columns}")
        return self.select_columns([name for name in self._columns if name not in names])

    def add_column(self, name, column, **settings):
        refuse_unknown("add_column", settings)
        values = typed(column)
        return self._of([{**row, name: value} for row, value in zip(self._rows, values)], [*self._columns, name])

    def map(self, function=None, with_indices=False, batched=False, batch_size=1000, remove_columns=None,
            input_columns=None, fn_kwargs=None, drop_last_batch=False, **settings):
        refuse_unknown("map", settings)
        if function is None:
            return self
        removed = {remove_columns} if isinstance(remove_columns, str) else set(remove_columns or ())
        rows = []
        for first, batch in self._batches(batched, batch_size):
            said = self._call(function, batch, first, batched, with_indices, input_columns, fn_kwargs)
            merge = self._merged if batched else self._one_merged
            if first == 0 and said is None:  # the function is for its effects
                return self
            rows += merge(batch, said, removed)
        columns = self._columns_of(rows)
        for number, row in enumerate(rows):
            missing = [name for name in columns if name not in row]
            if missing:
                raise KeyError(f"row {number} of map has no column {missing[0]!r}, which the first row has")
        return Dataset(rows, columns)._with_types_of(self)

    def _columns_of(self, rows):
        """The columns of the first row, which decides: those of this table keep their order and come first."""
        found = rows[0] if rows else self._columns
        return [name for name in self._columns if name in found] + [name for name in found if name not in self._columns]

    def _with_types_of(self, other):
        """Columns that `other` has keep its types, if all their values can be cast."""
        for name in set(self._columns) & set(other._columns):
            values = cast([row[name] for row in self._rows], [row[name] for row in other._rows])
            for row, value in zip(self._rows, values):
                row[name] = value
        return self

    # -- help

    def _batches(self, batched, size):
        """The number of each batch's first row, and the batch: a row, or a mapping of columns."""
        if not batched:
            yield from enumerate(self)
            return
        for first in range(0, len(self), size):
            yield first, self[first:first + size]

    def _call(self, function, batch, first, batched, with_indices, input_columns, fn_kwargs):
        names = [input_columns] if isinstance(input_columns, str) else input_columns
        arguments = [batch] if names is None else [batch[name] for name in names]
        if with_indices:
            arguments.append(list(range(first, first + len(next(iter(batch.values()), [])))) if batched else first)
        return function(*arguments, **(fn_kwargs or {}))

    @staticmethod
    def _one_merged(row, said, removed):
        """`row` is the one that the function got, and may have changed."""
        if said is None:
            said = {}
        if not hasattr(said, "items"):
            raise TypeError(f"the function of map gives {type(said).__name__}, expected a mapping or None")
        kept = {name: value for name, value in row.items() if name not in removed}
        return [{**kept, **dict(said.items())}]

    @staticmethod
    def _merged(batch, said, removed):
        """`batch` is the one that the function got, and may have changed."""
        columns = {name: list(values) for name, values in (said or {}).items()}
        kept = {name: values for name, values in batch.items() if name not in removed and name not in columns}
        columns = {**kept, **columns}
        lengths = {len(values) for values in columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"the function of map gives columns of different lengths: {sorted(lengths)}")
        return [dict(zip(columns, values)) for values in zip(*columns.values())]


class DatasetDict(dict):
    """Splits by name."""


def concatenate_datasets(parts, **settings):
    refuse_unknown("concatenate_datasets", settings)
    return Dataset([row for part in parts for row in part], parts[0].column_names)
