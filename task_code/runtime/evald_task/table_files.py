"""Files with tables of Apache's formats, read by the package pyarrow. Their rows are those that the package datasets gives:
a parquet or arrow file of a data set has the values in the types in which that package shows them."""
from .values import as_json



class FileTable:
    """The rows of a file. Numbers, texts, booleans, null, and lists and objects of these are served."""

    def __init__(self, data):
        self.table = read_parquet(data) if data[:4] == b"PAR1" else read_arrow(data)
        names = self.table.column_names
        if len(set(names)) < len(names):
            raise ValueError("two columns have one name")
        for field in self.table.schema:
            require_plain(field.type, field.name)

    def __len__(self):
        return self.table.num_rows

    def columns(self):
        return list(self.table.column_names)

    def part(self, first, count):
        rows = self.table.slice(first, max(0, min(count, len(self) - first))).to_pylist()
        for number, row in enumerate(rows, first):
            for column, value in row.items():
                if not as_json(value)[1]:
                    raise ValueError(f"row {number}, column {column!r}: {value!r:.100} is or holds a value that JSON has not, such "
                                     "as NaN, an infinity or an integer beyond 63 bits")
            yield row


def read_parquet(data):
    import pyarrow
    import pyarrow.parquet
    return pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data)).read()


def read_arrow(data):
    """A stream, as the package datasets writes, or a file with an index at its end."""
    import pyarrow
    opened = pyarrow.ipc.open_file if data[:6] == b"ARROW1" else pyarrow.ipc.open_stream
    return opened(pyarrow.BufferReader(data)).read_all()


def require_plain(kind, column):
    """Refuses types whose values are more than JSON has: templates could not use them as the harness's do."""
    import pyarrow.types as types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return require_plain(kind.value_type, column)
    if types.is_struct(kind):
        for i in range(kind.num_fields):
            require_plain(kind.field(i).type, f"{column}.{kind.field(i).name}")
        return None
    if types.is_dictionary(kind):
        return require_plain(kind.value_type, column)
    plain = [types.is_boolean, types.is_integer, types.is_floating, types.is_string, types.is_large_string, types.is_null]
    plain += [types.is_string_view] if hasattr(types, "is_string_view") else []
    if any(is_plain(kind) for is_plain in plain):
        return None
    raise TypeError(f"the column {column!r} has values of the type {kind}, which is not served")
