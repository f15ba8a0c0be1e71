#!/usr/bin/env python3
"""Makes the checkpoint of the engine benchmarks: Qwen2.5-0.5B's shape, random bf16 weights from a seed.

    make_checkpoint.py FOLDER [--data-dir DIR] [--family llama|qwen2] [--seed N] [--untied] [--quick]

Needs numpy and tokenizers. The tokenizer is a byte-level BPE, trained on the Python standard library's
sources and, with --data-dir, on the benchmark data's texts. So prompts have about as many tokens as
with a model's own tokenizer. The tokenizer has fewer entries than the embedding has rows. The rows
without an entry, and the row of the end-of-text token, are small. So no greedy generation picks them,
and every engine generates the same number of tokens.

--family llama writes the same numbers as a Llama checkpoint with attention biases (the bias of the
output projection is zero). --untied gives the output layer a tensor of its own. --quick makes a small model.
"""

import argparse
import gzip
import json
import struct
import sysconfig
from pathlib import Path

import numpy
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<|endoftext|>"
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def texts(data_dir):
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        yield path.read_text(encoding="utf-8", errors="replace")
    for path in sorted(data_dir.rglob("*.jsonl*")) if data_dir else []:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                yield "\n".join(str(value) for value in row.values())


def make_tokenizer(folder, data_dir, entries):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(PATTERN), "isolated"),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=entries, special_tokens=[END], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts(data_dir), trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "model_max_length": 32768,
         "clean_up_tokenization_spaces": False}, indent=1))
    return tokenizer.get_vocab_size()


def shape_of(quick, untied):
    return {**sizes_of(quick), "tie_word_embeddings": not untied}


def sizes_of(quick):
    if quick:
        return {"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 3, "num_attention_heads": 4,
                "num_key_value_heads": 2, "vocab_size": 8192}
    return {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
            "num_key_value_heads": 2, "vocab_size": 151936}


def config_of(family, shape):
    config = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", **shape, "hidden_act": "silu",
              "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
              "torch_dtype": "bfloat16", "eos_token_id": 0,
              "initializer_range": 0.02, "attention_dropout": 0.0, "use_sliding_window": False}
    if family == "llama":
        config.update({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": True,
                       "mlp_bias": False, "head_dim": shape["hidden_size"] // shape["num_attention_heads"]})
        del config["use_sliding_window"]
    return config


def tensors_of(family, shape):
    """Tuples of (name, shape, standard deviation). The deviation None means ones, 0 means zeros."""
    width, inner = shape["hidden_size"], shape["intermediate_size"]
    head = width // shape["num_attention_heads"]
    keys = shape["num_key_value_heads"] * head
    yield "model.embed_tokens.weight", [shape["vocab_size"], width], 0.06
    yield "model.norm.weight", [width], None
    for index in range(shape["num_hidden_layers"]):
        layer = f"model.layers.{index}."
        yield layer + "input_layernorm.weight", [width], None
        yield layer + "post_attention_layernorm.weight", [width], None
        for name, rows in (("q", width), ("k", keys), ("v", keys)):
            yield f"{layer}self_attn.{name}_proj.weight", [rows, width], 1.2 * width**-0.5
            yield f"{layer}self_attn.{name}_proj.bias", [rows], 0.3
        yield layer + "self_attn.o_proj.weight", [width, width], width**-0.5
        if family == "llama":
            yield layer + "self_attn.o_proj.bias", [width], 0
        yield layer + "mlp.gate_proj.weight", [inner, width], width**-0.5
        yield layer + "mlp.up_proj.weight", [inner, width], width**-0.5
        yield layer + "mlp.down_proj.weight", [width, inner], inner**-0.5
    if not shape["tie_word_embeddings"]:
        yield "lm_head.weight", [shape["vocab_size"], width], width**-0.5


def to_bf16(values):
    bits = values.astype(numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def values_of(name, shape, deviation, seed, entries):
    if deviation is None:
        return numpy.ones(shape, numpy.float32)
    # The seed depends on the name, so that both families get the same numbers.
    key = numpy.random.SeedSequence([seed, *name.encode()])
    values = numpy.random.default_rng(key).standard_normal(shape, numpy.float32) * numpy.float32(deviation)
    if name in ("model.embed_tokens.weight", "lm_head.weight"):
        values[entries:] *= 0.05
        values[0] *= 0.05
    return values


def write_weights(path, family, shape, seed, entries):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, dimensions, _ in tensors_of(family, shape):
        size = 2 * int(numpy.prod(dimensions))
        header[name] = {"dtype": "BF16", "shape": dimensions, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64 + 56)  # the data begins at a multiple of 64
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, dimensions, deviation in tensors_of(family, shape):
            file.write(to_bf16(values_of(name, dimensions, deviation, seed, entries)).tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--family", choices=("llama", "qwen2"), default="qwen2")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--untied", action="store_true")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    shape = shape_of(args.quick, args.untied)
    args.folder.mkdir(parents=True)
    entries = make_tokenizer(args.folder, args.data_dir, min(32768, shape["vocab_size"] // 2))
    (args.folder / "config.json").write_text(json.dumps(config_of(args.family, shape), indent=1))
    (args.folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 0, "do_sample": False}))
    write_weights(args.folder / "model.safetensors", args.family, shape, args.seed, entries)


if __name__ == "__main__":
    main()
