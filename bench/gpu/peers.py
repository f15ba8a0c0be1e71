#!/usr/bin/env python3
"""Figures of other programs for the GPU benchmarks' checkpoint on the same GPU. Prints one JSON object.

    peers.py load CHECKPOINT                  safetensors' default way to the GPU, GB/s
    peers.py generate CHECKPOINT --lengths FILE [--batch N] [--seconds N]
                                              transformers' generate, output tokens/s
    peers.py choice CHECKPOINT --requests FILE [--dtype bfloat16] [--device cuda]
                                              log-likelihoods of requests, by transformers

--lengths is a JSON list of [prompt, output] tokens, --requests one of {"context": text,
"continuation": text}. `load` needs safetensors, the others transformers. If a package is
not installed, the script prints {"skipped": why}.
"""

import argparse
import json
import time
from pathlib import Path

import torch


def load(args):
    from safetensors.torch import load_file
    files = sorted(Path(args.checkpoint).glob("*.safetensors"))
    size = sum(file.stat().st_size for file in files)
    rounds = []
    for _ in range(3):
        torch.cuda.synchronize()
        begin = time.monotonic()
        held = [load_file(file, device="cuda") for file in files]
        torch.cuda.synchronize()
        rounds.append(time.monotonic() - begin)
        del held
        torch.cuda.empty_cache()
    import safetensors
    return {"bytes": size, "seconds": rounds, "gb_per_s": size / sorted(rounds)[1] / 1e9,
            "version": safetensors.__version__}


def model_of(args, dtype, device):
    import transformers
    transformers.logging.set_verbosity_error()
    model = transformers.AutoModelForCausalLM.from_pretrained(args.checkpoint, dtype=getattr(torch, dtype))
    return model.to(device).eval(), transformers.__version__


def generate(args):
    model, version = model_of(args, "bfloat16", "cuda")
    lengths = sorted(map(tuple, json.loads(Path(args.lengths).read_text())), key=lambda pair: pair[1])
    torch.manual_seed(1)
    tokens = requests = 0
    begin = time.monotonic()
    # Batches of similar answers, spread over the whole distribution, until the time is up.
    batches = [lengths[at:at + args.batch] for at in range(0, len(lengths), args.batch)]
    order = sorted(range(len(batches)), key=lambda index: bin(index)[:1:-1])
    for index in order:
        batch = batches[index]
        longest, most = max(pair[0] for pair in batch), max(pair[1] for pair in batch)
        ids = torch.randint(1, model.config.vocab_size, (len(batch), longest), device="cuda")
        mask = torch.ones_like(ids)
        for row, (prompt, _) in enumerate(batch):
            mask[row, :longest - prompt] = 0  # padded on the left
        with torch.inference_mode():
            model.generate(ids, attention_mask=mask, max_new_tokens=most, min_new_tokens=most, do_sample=False,
                           pad_token_id=0)
        torch.cuda.synchronize()
        tokens += sum(pair[1] for pair in batch)
        requests += len(batch)
        if time.monotonic() - begin > args.seconds:
            break
    seconds = time.monotonic() - begin
    return {"output_tokens_per_s": tokens / seconds, "requests": requests, "of": len(lengths), "seconds": seconds,
            "batch": args.batch, "version": version}


def choice(args):
    import transformers
    model, version = model_of(args, args.dtype, args.device)
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.checkpoint)
    results = []
    limit = model.config.max_position_embeddings
    for request in json.loads(Path(args.requests).read_text()):
        # Context and continuation are encoded together and split at the context's length, as in
        # lm-evaluation-harness.
        tokens = tokenizer(request["context"] + request["continuation"])["input_ids"]
        continuation = tokens[len(tokenizer(request["context"])["input_ids"]):]
        tokens = tokens[-(limit + 1):]
        ids = torch.tensor([tokens[:-1]], device=args.device)
        with torch.inference_mode():
            logits = model(ids).logits[0, -len(continuation):].double()
        wanted = torch.tensor(continuation, device=args.device)
        results.append(float(torch.log_softmax(logits, -1).gather(1, wanted[:, None]).sum()))
    return {"loglikelihoods": results, "version": version}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=("load", "generate", "choice"))
    parser.add_argument("checkpoint")
    parser.add_argument("--lengths")
    parser.add_argument("--requests")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    try:
        report = {"load": load, "generate": generate, "choice": choice}[args.peer](args)
    except ImportError as error:
        report = {"skipped": str(error)}
    report["torch"] = torch.__version__
    print(json.dumps(report))


if __name__ == "__main__":
    main()
