#!/usr/bin/env python3
"""Answers the requests of the engine benchmarks with lm-evaluation-harness's `hf` backend.

    engine_baseline.py choice|generate CHECKPOINT --data-dir DIR --documents N --dtypes float32[,bfloat16]
                       --batch-sizes 1,8,32 [--max-gen-toks N] [--trial-documents N]
                       [--server URL --parallel 8,32]

Needs lm_eval 0.4.13, torch and transformers. Every dtype and batch size first answers the first
--trial-documents of each task; the fastest pair then answers all. Prints one JSON object: seconds for
the requests alone, without loading the model and without building prompts, and every answer.

--server is a running llama-server that has loaded the same checkpoint (bench/make_gguf.py); it gets
the same prompts as tokens, and as many of them at once as each of --parallel says; the least of the
times is its own.
"""

import argparse
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


def best_pair(args, chosen):
    """The fastest dtype and batch size on the first documents, and what each took."""
    some = [(name, instance) for name, instance in chosen if instance.doc_id < args.trial_documents]
    trials = []
    for dtype in args.dtypes.split(","):
        model = load(args.checkpoint, dtype)
        for size in map(int, args.batch_sizes.split(",")):
            model.batch_size_per_gpu = size
            seconds, _ = answer(model, args.workload, some)
            trials.append({"dtype": dtype, "batch_size": size, "seconds": seconds})
            print(f"{dtype}, batch size {size}: {seconds:.1f} s", file=sys.stderr)
    return min(trials, key=lambda trial: trial["seconds"]), trials


def completion(url, tokens, kwargs):
    """Greedy, with the server's prefix cache; returns how many tokens came."""
    body = {"prompt": tokens, "n_predict": kwargs["max_gen_toks"], "temperature": 0, "cache_prompt": True,
            "stop": kwargs["until"]}
    request = urllib.request.Request(url + "/completion", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=3600) as response:
        return json.load(response)["tokens_predicted"]


def server_seconds(args, chosen):
    """Of llama-server, by how many requests it was given at once."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(args.checkpoint / "tokenizer.json"))
    prompts = [(tokenizer.encode(instance.args[0]).ids, instance.args[1]) for _, instance in chosen]
    seconds, tokens = {}, {}
    for parallel in map(int, args.parallel.split(",")):
        begin = time.monotonic()
        with ThreadPoolExecutor(parallel) as pool:
            counts = list(pool.map(lambda prompt: completion(args.server, *prompt), prompts))
        seconds[parallel] = time.monotonic() - begin
        tokens[parallel] = sum(counts)
        print(f"llama-server, {parallel} at once: {seconds[parallel]:.1f} s", file=sys.stderr)
    with urllib.request.urlopen(args.server + "/props", timeout=60) as response:
        build = json.load(response).get("build_info", "")
    return {"seconds": min(seconds.values()), "by_parallel": seconds, "tokens": tokens, "build": build}


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
    server = server_seconds(args, chosen) if args.server else None
    best, trials = best_pair(args, chosen)
    model = load(args.checkpoint, best["dtype"])
    model.batch_size_per_gpu = best["batch_size"]
    seconds, answers = answer(model, args.workload, chosen)
    json.dump({"seconds": seconds, "requests": len(chosen), "dtype": best["dtype"],
               "batch_size": best["batch_size"], "trials": trials, "threads": torch.get_num_threads(),
               "versions": {"lm_eval": lm_eval.__version__, "torch": torch.__version__,
                            "transformers": transformers.__version__},
               "llama_server": server,
               "answers": list(rows_of(args.workload, chosen, answers))}, sys.stdout)


if __name__ == "__main__":
    main()
