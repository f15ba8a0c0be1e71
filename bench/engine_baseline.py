#!/usr/bin/env python3
"""Answers the requests of the engine benchmarks with lm-evaluation-harness's `hf` backend, or llama.cpp's server.

    engine_baseline.py choice|generate CHECKPOINT --data-dir DIR --documents N --dtypes float32[,bfloat16]
                       --batch-sizes 1,8,32 [--max-gen-toks N] [--trial-documents N]
                       [--server URL --parallel 8,32]

Needs lm_eval 0.4.13, torch and transformers. The script first finds the fastest way, and then answers all requests
in that way. It tries each dtype with the first --trial-documents of each task. Then it tries each batch size, and
each number of requests that the server gets at once: `choice` with the same documents, `generate` with all documents
of the first task and 64 tokens each, since only a full batch shows its speed. Prints one JSON object: seconds for the
requests alone, without loading the model and without building prompts, and every answer of the harness.

--server is a running llama-server with the same checkpoint (bench/make_gguf.py). The server gets the same prompts as
tokens, and may keep prefixes.
"""

import argparse
import copy
import json
import os
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "oracle"))

import requests_compare  # noqa: E402

TASKS = {
    "choice": ["mmlu_astronomy", "mmlu_anatomy", "mmlu_high_school_world_history", "mmlu_elementary_mathematics"],
    "generate": ["humaneval", "gsm8k"],
}
TRIAL_TOKENS = 64
KINDS = {"choice": "loglikelihood", "generate": "generate_until"}


def instances_of(workload, data_dir, documents, max_gen_toks):
    """The first documents' requests of each task, as the harness builds them."""
    import datasets
    import lm_eval

    datasets.load_dataset = requests_compare.LocalDatasets(data_dir, None)
    root = Path(lm_eval.__file__).parent / "tasks"
    include = [str(root / folder) for folder in ("humaneval", "gsm8k", "mmlu/default")]
    tasks = requests_compare.load_tasks(TASKS[workload], include, {name: 5 for name in TASKS["choice"]}, {})
    chosen = []
    for name, task in tasks.items():
        for instance in task.instances:
            if instance.doc_id >= documents:
                continue
            if workload == "generate":
                instance.arguments[1]["max_gen_toks"] = max_gen_toks
            chosen.append((name, instance))
    return chosen


def answer(model, workload, chosen):
    begin = time.monotonic()
    answers = getattr(model, KINDS[workload])([instance for _, instance in chosen], disable_tqdm=True)
    return time.monotonic() - begin, answers


def load(checkpoint, dtype):
    from lm_eval.models.huggingface import HFLM

    return HFLM(pretrained=str(checkpoint), dtype=dtype, device="cpu", batch_size=1)


class Trials:
    """Measures ways to answer, and remembers their times."""

    def __init__(self):
        self.rows = []

    def fastest(self, ways, seconds_of):
        """The fastest way. A way is a dict."""
        seconds = []
        for way in ways:
            seconds.append(seconds_of(way))
            self.rows.append({**way, "seconds": seconds[-1]})
            print(f"tried {self.rows[-1]}", file=sys.stderr)
        return ways[seconds.index(min(seconds))]


def shortened(chosen):
    """The first task's requests, with TRIAL_TOKENS tokens each."""
    some = [(name, copy.deepcopy(instance)) for name, instance in chosen if name == chosen[0][0]]
    for _, instance in some:
        instance.arguments[1]["max_gen_toks"] = min(TRIAL_TOKENS, instance.arguments[1]["max_gen_toks"])
    return some


class Harness:
    """lm-evaluation-harness's `hf` backend, in every dtype of --dtypes."""

    def __init__(self, args):
        self.workload = args.workload
        self.models = {dtype: load(args.checkpoint, dtype) for dtype in args.dtypes.split(",")}

    def answer(self, way, chosen):
        model = self.models[way["dtype"]]
        model.batch_size_per_gpu = way["batch_size"]
        return answer(model, self.workload, chosen)


def completion(url, tokens, kwargs):
    """Asks the server greedily, with its prefix cache. Returns the number of tokens in the answer."""
    body = {"prompt": tokens, "n_predict": kwargs["max_gen_toks"], "temperature": 0, "cache_prompt": True,
            "stop": kwargs["until"]}
    request = urllib.request.Request(url + "/completion", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=3600) as response:
        return json.load(response)["tokens_predicted"]


class Server:
    """llama.cpp's server."""

    def __init__(self, args):
        from tokenizers import Tokenizer

        self.url = args.server
        self.tokenizer = Tokenizer.from_file(str(args.checkpoint / "tokenizer.json"))

    def answer(self, way, chosen):
        prompts = [(self.tokenizer.encode(instance.args[0]).ids, instance.args[1]) for _, instance in chosen]
        begin = time.monotonic()
        with ThreadPoolExecutor(way["parallel"]) as pool:
            tokens = sum(pool.map(lambda prompt: completion(self.url, *prompt), prompts))
        return time.monotonic() - begin, tokens

    def build(self):
        with urllib.request.urlopen(self.url + "/props", timeout=60) as response:
            return json.load(response).get("build_info", "")


def fastest(args, chosen, harness, server, trials):
    """The way to answer that took the least time on a part of the work."""
    first = [(name, instance) for name, instance in chosen if instance.doc_id < args.trial_documents]
    sizes = [int(size) for size in args.batch_sizes.split(",")]
    dtype = next(iter(harness.models))
    if len(harness.models) > 1:
        ways = [{"dtype": dtype, "batch_size": sizes[0]} for dtype in harness.models]
        dtype = trials.fastest(ways, lambda way: harness.answer(way, first)[0])["dtype"]
    some = shortened(chosen) if args.workload == "generate" else first
    ways = [{"dtype": dtype, "batch_size": size} for size in sizes]
    if server:
        ways += [{"server": "llama.cpp", "parallel": int(parallel)} for parallel in args.parallel.split(",")]
    return trials.fastest(ways, lambda way: (server if "server" in way else harness).answer(way, some)[0])


def rows_of(workload, chosen, answers):
    for (name, instance), result in zip(chosen, answers):
        row = {"task": name, "doc_id": instance.doc_id, "idx": instance.idx}
        if workload == "choice":
            yield {**row, "loglikelihood": result[0], "is_greedy": bool(result[1])}
        else:
            yield {**row, "text": result}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=TASKS)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--documents", type=int, required=True)
    parser.add_argument("--trial-documents", type=int, default=4)
    parser.add_argument("--dtypes", default="float32")
    parser.add_argument("--batch-sizes", default="1,4,16")
    parser.add_argument("--max-gen-toks", type=int, default=256)
    parser.add_argument("--server")
    parser.add_argument("--parallel", default="8,32")
    args = parser.parse_args()
    import lm_eval
    import torch
    import transformers

    chosen = instances_of(args.workload, args.data_dir, args.documents, args.max_gen_toks)
    trials = Trials()
    harness = Harness(args)
    server = Server(args) if args.server else None
    best = fastest(args, chosen, harness, server, trials)
    seconds, answers = (server if "server" in best else harness).answer(best, chosen)
    json.dump({"seconds": seconds, "requests": len(chosen), "best": best, "trials": trials.rows,
               "threads": torch.get_num_threads(),
               "versions": {"lm_eval": lm_eval.__version__, "torch": torch.__version__,
                            "transformers": transformers.__version__, "llama.cpp": server.build() if server else None},
               "answers": [] if "server" in best else list(rows_of(args.workload, chosen, answers))}, sys.stdout)


if __name__ == "__main__":
    main()
