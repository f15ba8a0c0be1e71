#!/usr/bin/env python3
"""Answers the requests of `evald-bench vllm-choice` with lm-evaluation-harness on vLLM.

    vllm_baseline.py CHECKPOINT --data-dir DIR --documents N [--dtype float32] [--trial-documents N]

Needs vLLM and lm_eval 0.4.13 in one Python. The harness has two ways to vLLM: its `vllm` backend, which loads the
model in its own process, and `local-completions`, which asks a server (`vllm serve`) with several requests at once.
The script tries each way with the first --trial-documents of each task; the fastest way then answers all requests.
Every trial has a process of its own, so that nothing is in a prefix cache. Prints one JSON object: seconds for the
requests alone, without loading the model and without building prompts, and every answer of the harness.
"""

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import engine_baseline

WAYS = [{"backend": "vllm"}, {"backend": "local-completions", "at_once": 8}]
READY_SECONDS = 900
CONTEXT = 8192


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(args):
    """The address of a vLLM server on the checkpoint."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [Path(sys.executable).with_name("vllm"), "serve", args.checkpoint, "--dtype", args.dtype, "--port",
               str(port), "--host", "127.0.0.1", "--max-model-len", str(CONTEXT), "--disable-uvicorn-access-log"]
    process = subprocess.Popen(command, stdout=sys.stderr, start_new_session=True)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(url + "/health", timeout=10).close()
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("vllm serve did not start")
            time.sleep(0.5)
        yield url
    finally:
        process.terminate()
        process.wait(60)


def answer_in_process(args, chosen):
    from lm_eval.models.vllm_causallms import VLLM

    model = VLLM(pretrained=str(args.checkpoint), dtype=args.dtype, max_model_len=CONTEXT, batch_size="auto")
    return engine_baseline.answer(model, "choice", chosen)


def answer_by_server(args, chosen, at_once):
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    with server(args) as url:
        model = LocalCompletionsAPI(base_url=url + "/v1/completions", model=str(args.checkpoint),
                                    tokenizer=str(args.checkpoint), tokenizer_backend="huggingface",
                                    num_concurrent=at_once, max_length=CONTEXT, timeout=3600)
        return engine_baseline.answer(model, "choice", chosen)


def answer(args, way, documents):
    """What one way gives, in this process."""
    chosen = engine_baseline.instances_of("choice", args.data_dir, documents, 0)
    if way["backend"] == "vllm":
        seconds, answers = answer_in_process(args, chosen)
    else:
        seconds, answers = answer_by_server(args, chosen, way["at_once"])
    return {"seconds": seconds, "requests": len(chosen), "answers": list(engine_baseline.rows_of("choice", chosen, answers))}


def answer_elsewhere(args, way, documents):
    """The same in a process of its own."""
    command = [sys.executable, __file__, args.checkpoint, "--data-dir", args.data_dir, "--documents", str(documents),
               "--dtype", args.dtype, "--way", json.dumps(way)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    answer, _ = json.JSONDecoder().raw_decode(output, output.index('{"seconds"'))  # vLLM may write behind it
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--documents", type=int, required=True)
    parser.add_argument("--trial-documents", type=int, default=1)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--way", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        print(json.dumps(answer(args, args.way, args.documents)))
        return
    import lm_eval
    import vllm

    trials = engine_baseline.Trials()
    best = trials.fastest(WAYS, lambda way: answer_elsewhere(args, way, args.trial_documents)["seconds"])
    found = answer_elsewhere(args, best, args.documents)
    print(json.dumps({**found, "best": best, "trials": trials.rows,
                      "versions": {"lm_eval": lm_eval.__version__, "vllm": vllm.__version__}}))


if __name__ == "__main__":
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "4")
    main()
