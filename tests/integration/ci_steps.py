"""The commands of the example workflows in examples/ci, and a repository that they evaluate."""
import functools
import http.server
import pathlib
import re
import shutil
import threading

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CI = SOURCE / "examples" / "ci"


def block(lines, start):
    """The lines below `start` that are indented deeper than `start`."""
    depth = len(lines[start]) - len(lines[start].lstrip())
    found = []
    for line in lines[start + 1:]:
        if line.strip() and len(line) - len(line.lstrip()) <= depth:
            break
        found.append(line)
    return found


def github_steps():
    """name -> script of every `run:` step."""
    lines = (CI / "github-actions.yml").read_text().splitlines()
    steps, name = {}, None
    for i, line in enumerate(lines):
        named = re.match(r"\s+- name: (.*)", line)
        if named:
            name = named.group(1)
        run = re.match(r"\s+run: (.*)", line)
        if run:
            steps[name] = "\n".join(x.strip() for x in block(lines, i)) if run.group(1) == "|" else run.group(1)
    return steps


def gitlab_commands(key):
    """The commands of `script:` or `before_script:`, folded as `>-` folds them."""
    lines = (CI / "gitlab-ci.yml").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() == key + ":")
    commands = []
    for line in block(lines, start):
        if line.strip().startswith("- "):
            commands.append(line.strip()[2:] if line.strip() != "- >-" else "")
        else:
            commands[-1] = (commands[-1] + " " + line.strip()).strip()
    return commands


def variables(name, key):
    """The variables that a workflow sets for its steps."""
    lines = (CI / name).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() == key)
    return dict(line.strip().split(": ", 1) for line in block(lines, start) if line.strip() and not line.strip().startswith("#"))


def make_repository(folder):
    """Somebody's repository: the quickstart's checkpoints and tasks, and the gates, as examples/ci/README.md says."""
    shutil.copytree(SOURCE / "examples" / "quickstart", folder / "evaluation", ignore=shutil.ignore_patterns("train", "runs"))
    shutil.copy(CI / "gates.yaml", folder / "evaluation")


def serve(folder):
    """Serves the files of a folder over HTTP. Returns the server, whose `url` is its address; shutdown() ends it."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    server.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
