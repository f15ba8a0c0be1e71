#!/usr/bin/env python3
"""Makes the checkpoint of the GPU benchmarks: Llama-3-8B's shape, random bf16 weights from a seed.

    make_checkpoint.py FOLDER --tokenizer FOLDER [--shape llama3-8b|small] [--seed N]

Needs torch. If there is a GPU, the numbers are drawn on it. --tokenizer is a folder that
evald-train-tokenizer made. The tokenizer has fewer entries than the embedding has rows. The head's
rows without an entry, and the row of the end-of-text token, are small. So no greedy generation picks
them, and every text gets as long as allowed. The same seed gives the same numbers on the same kind
of device.
"""

import argparse
import json
import os
import shutil
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

SHAPES = {
    "llama3-8b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                  "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256},
    "small": {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 3, "num_attention_heads": 8,
              "num_key_value_heads": 2, "vocab_size": 40960},
}
SHARD_BYTES = 5 << 30


def config_of(shape, end):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", **shape, "hidden_act": "silu",
            "head_dim": shape["hidden_size"] // shape["num_attention_heads"], "attention_bias": False,
            "mlp_bias": False, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
            "tie_word_embeddings": False, "torch_dtype": "bfloat16", "eos_token_id": end,
            "initializer_range": 0.02, "attention_dropout": 0.0}


def tensors_of(shape):
    """Tuples of (name, shape, standard deviation). The deviation None means that all numbers are one."""
    width, inner = shape["hidden_size"], shape["intermediate_size"]
    keys = width // shape["num_attention_heads"] * shape["num_key_value_heads"]
    yield "model.embed_tokens.weight", [shape["vocab_size"], width], 0.06
    for index in range(shape["num_hidden_layers"]):
        layer = f"model.layers.{index}."
        yield layer + "input_layernorm.weight", [width], None
        yield layer + "post_attention_layernorm.weight", [width], None
        for name, rows in (("q", width), ("k", keys), ("v", keys)):
            yield f"{layer}self_attn.{name}_proj.weight", [rows, width], 1.2 * width**-0.5
        yield layer + "self_attn.o_proj.weight", [width, width], width**-0.5
        yield layer + "mlp.gate_proj.weight", [inner, width], width**-0.5
        yield layer + "mlp.up_proj.weight", [inner, width], width**-0.5
        yield layer + "mlp.down_proj.weight", [width, inner], inner**-0.5
    yield "model.norm.weight", [width], None
    yield "lm_head.weight", [shape["vocab_size"], width], 0.06


def shards_of(shape):
    """Lists of tensors. Each list is one file."""
    shards, size = [[]], 0
    for tensor in tensors_of(shape):
        bytes_ = 2 * torch.Size(tensor[1]).numel()
        if shards[-1] and size + bytes_ > SHARD_BYTES:
            shards.append([])
            size = 0
        shards[-1].append(tensor)
        size += bytes_
    return shards


def values_of(name, dimensions, deviation, seed, entries, end, device):
    if deviation is None:
        return torch.ones(dimensions, dtype=torch.bfloat16)
    generator = torch.Generator(device=device)
    generator.manual_seed((seed << 32) | zlib.crc32(name.encode()))
    values = torch.empty(dimensions, dtype=torch.bfloat16, device=device).normal_(0, deviation, generator=generator)
    if name == "lm_head.weight":
        values[entries:] *= 0.05
        values[end] *= 0.05
    return values.cpu()


def write_shard(path, tensors, values):
    """Writes one file. `values` yields the tensors' numbers in the tensors' order."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, dimensions, _ in tensors:
        size = 2 * torch.Size(dimensions).numel()
        header[name] = {"dtype": "BF16", "shape": dimensions, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64 + 56)  # the data begins at a multiple of 64
    with open(path, "wb") as file, ThreadPoolExecutor(max_workers=min(16, os.cpu_count())) as writers:
        file.write(struct.pack("<Q", len(text)) + text)
        file.flush()
        at, pending = 8 + len(text), []
        for value in values:
            data = memoryview(value.view(torch.uint8).numpy().reshape(-1))
            for begin in range(0, len(data), 64 << 20):
                part = data[begin:begin + (64 << 20)]
                pending.append(writers.submit(write_all, file.fileno(), part, at + begin))
            at += len(data)
            while len(pending) > 64:
                pending.pop(0).result()
        for job in pending:
            job.result()


def write_all(descriptor, data, at):
    while data:
        written = os.pwrite(descriptor, data, at)
        data, at = data[written:], at + written


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--shape", choices=SHAPES, default="llama3-8b")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    shape = SHAPES[args.shape]
    tokenizer = json.loads((args.tokenizer / "tokenizer.json").read_text())
    added = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    end = added["<|endoftext|>"]
    entries = len(tokenizer["model"]["vocab"])
    if max(added.values()) >= shape["vocab_size"]:
        raise SystemExit(f"{args.tokenizer}: has more tokens than the shape's {shape['vocab_size']}")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    part = args.folder.with_name(args.folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(args.tokenizer / name, part / name)
    (part / "config.json").write_text(json.dumps(config_of(shape, end), indent=1))
    (part / "generation_config.json").write_text(json.dumps({"eos_token_id": end, "do_sample": False}))
    shards, index = shards_of(shape), {}
    for number, tensors in enumerate(shards, 1):
        file = "model.safetensors" if len(shards) == 1 else f"model-{number:05}-of-{len(shards):05}.safetensors"
        write_shard(part / file, tensors,
                    (values_of(*tensor, args.seed, entries, end, device) for tensor in tensors))
        index.update({name: file for name, _, _ in tensors})
    if len(shards) > 1:
        total = sum(2 * torch.Size(dimensions).numel() for _, dimensions, _ in tensors_of(shape))
        (part / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {"total_size": total}, "weight_map": index}))
    part.rename(args.folder)  # a folder under its name is whole


if __name__ == "__main__":
    main()
