#!/usr/bin/env python3
"""Says how many task definitions of an installed lm-evaluation-harness evald accepts, and why not the others.

    library_report.py --dump build/release/evald-requests-dump [--names]

A task is accepted if its file is read, and its filters, metrics and aggregations are known; task code is allowed, and the
data is taken to be there. --names also lists each task that is not accepted.
"""
import argparse
import collections
import json
import re
import subprocess
from pathlib import Path


def reason(error):
    """The error without places and names of this task."""
    text = re.sub(r"^\S+:\d+: ", "", error)
    text = re.sub(r"task '[^']*': ", "", text)
    text = re.sub(r"the function '[^']*' of \S+", "the function", text)
    return re.sub(r"/\S+", "PATH", text)[:110]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dump", required=True)
    parser.add_argument("--names", action="store_true")
    args = parser.parse_args()
    import lm_eval
    tasks = Path(lm_eval.__file__).parent / "tasks"
    done = subprocess.run([args.dump, "--accepted", "--task-dir", tasks], check=True, capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.split("\n") if line.startswith("{")]
    refused = [line for line in lines if line["error"]]
    print(f"{len(lines) - len(refused)} of {len(lines)} accepted")
    for why, count in collections.Counter(reason(line["error"]) for line in refused).most_common(None if args.names else 40):
        print(f"{count:6}  {why}")
    if args.names:
        for line in refused:
            print(line.get("task") or line["file"], line["error"], sep="\t")


if __name__ == "__main__":
    main()
