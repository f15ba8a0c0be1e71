"""Says, as one line of JSON, which files this interpreter needs. Run with -S -s -B."""
import importlib
import json
import os
import struct
import sys

SKIPPED = ("_test", "_xx", "xx", "_ctypes_test")


def extensions(folder):
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted({n.split(".")[0] for n in names if n.endswith(".so") and not n.startswith(SKIPPED)})


def mapped_files():
    """The shared libraries that are loaded now."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if len(line.split(None, 5)) == 6}
    return sorted(p for p in paths if p.startswith("/") and ".so" in os.path.basename(p))


def loader(executable):
    """The dynamic loader that an ELF file names (its PT_INTERP segment), or ''."""
    with open(executable, "rb") as file:
        header = file.read(64)
        if header[:5] != b"\x7fELF\x02":
            return ""
        offset, = struct.unpack_from("=Q", header, 32)
        size, count = struct.unpack_from("=HH", header, 54)
        for i in range(count):
            file.seek(offset + i * size)
            kind, _, start, _, _, length = struct.unpack_from("=IIQQQQ", file.read(size))
            if kind == 3:
                file.seek(start)
                return file.read(length).rstrip(b"\0").decode()
    return ""


def main():
    folders = [os.path.realpath(p) for p in sys.path if p and os.path.isdir(p)]
    for folder in folders:
        for name in extensions(folder):
            try:
                importlib.import_module(name)
            except BaseException:
                pass
    executable = os.path.realpath(sys.executable)
    print(json.dumps({
        "executable": executable,
        "loader": loader(executable),
        "version": ".".join(map(str, sys.version_info[:3])),
        "implementation": sys.implementation.name,
        "folders": folders,
        "libraries": mapped_files(),
    }))


main()
