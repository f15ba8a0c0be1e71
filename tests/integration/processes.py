"""The processes of this machine, as /proc has them."""
import pathlib


def processes():
    """Each process's folder in /proc, and the fields after its name of its file `stat`: state, parent, group, session
    (proc(5)). Processes that end meanwhile are left out."""
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            yield entry, (entry / "stat").read_text(errors="replace").rsplit(") ", 1)[1].split()
        except OSError:
            continue
