#!/usr/bin/env python3
"""Compares evald's reading of task files with lm-evaluation-harness's, over a whole folder.

    yaml_compare.py --dump PROGRAM [FOLDER]

FOLDER is by default the tasks folder of the installed lm_eval. PROGRAM is
build/<preset>/evald-requests-dump. Files that evald refuses are counted by cause. The harness must refuse
them too, or the cause must be one for which evald refuses on purpose (listed below).
"""

import argparse
import collections
import json
import math
import re
import subprocess
import sys
from pathlib import Path

ON_PURPOSE = ["put it in quotes", "the tag '", "is a mapping of keys"]


def same(ours, theirs):
    if isinstance(ours, str) and ours.startswith("!function ") and isinstance(theirs, str):
        return ours.split(".")[-1] == theirs.split(".")[-1]
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and {str(k) for k in theirs} == set(ours) and all(same(ours[str(k)], v) for k, v in theirs.items())
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, float) and isinstance(ours, float) and math.isnan(theirs):
        return math.isnan(ours)
    return ours == theirs and type(ours) is type(theirs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dump", required=True)
    parser.add_argument("folder", nargs="?")
    args = parser.parse_args()
    from lm_eval.tasks._yaml_loader import load_yaml

    if args.folder is None:
        import lm_eval
        args.folder = str(Path(lm_eval.__file__).parent / "tasks")
    files = sorted(str(p) for p in Path(args.folder).glob("**/*.yaml"))
    run = subprocess.run([args.dump, "--yaml"], input="\n".join(files) + "\n", check=True, capture_output=True, text=True)
    alike, refused, different = 0, collections.Counter(), 0
    for line in run.stdout.splitlines():
        entry = json.loads(line)
        try:
            theirs = load_yaml(entry["file"], resolve_func=False)
        except Exception as error:  # noqa: BLE001
            theirs = error
        if "error" in entry:
            reason = re.sub(r"^.*?: ", "", entry["error"])
            if isinstance(theirs, Exception) or any(text in entry["error"] for text in ON_PURPOSE):
                refused[re.sub(r"'.*?'", "'...'", reason)[:80]] += 1
            else:
                different += 1
                print("REFUSED", entry["error"])
        elif isinstance(theirs, Exception) or not same(entry["value"], theirs):
            different += 1
            print("DIFFERENT", entry["file"], theirs if isinstance(theirs, Exception) else "")
        else:
            alike += 1
    print(f"{len(files)} files: {alike} alike, {different} different, refused: {dict(refused)}")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
