"""Documents that stay in this process between calls, as functions made them."""
import sys

from . import rows
from .values import pack

READ_BYTES = 1 << 20  # of an answer's values, about


def dataset_of(made, columns):
    """The package's Dataset if it is installed, else the stand-in."""
    package = sys.modules.get("datasets") or rows
    kind = package.Dataset if hasattr(package, "Dataset") else rows.Dataset
    return kind.from_dict({name: [row[name] for row in made] for name in columns})


class Table:
    """Documents, as a data set or as whatever iterable a function returned."""

    def __init__(self, documents):
        self.documents = documents if hasattr(documents, "column_names") else list(documents)

    def __len__(self):
        return len(self.documents)

    def columns(self):
        if hasattr(self.documents, "column_names"):
            return list(self.documents.column_names)
        names = {}
        for document in self.documents:
            names.update(dict.fromkeys(document if isinstance(document, dict) else ()))
        return [str(name) for name in names]

    def part(self, first, count):
        return (self.documents[i] for i in range(first, min(first + count, len(self))))



def packed_until_full(values):
    """Packs values until the answer is long enough; the caller asks for the rest."""
    packed, size = [], 0
    for value in values:
        packed.append(pack(value))
        size += estimate(packed[-1])
        if size >= READ_BYTES:
            break
    return packed


def estimate(value):
    """About the bytes of a JSON value."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, dict):
        return 2 + sum(len(name) + 4 + estimate(member) for name, member in value.items())
    if isinstance(value, list):
        return 2 + sum(1 + estimate(item) for item in value)
    return 8
