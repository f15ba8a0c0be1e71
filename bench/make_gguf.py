#!/usr/bin/env python3
"""Writes a bf16 checkpoint of a Qwen2 or Llama model as GGUF, for llama.cpp: those of the engine benchmarks
(bench/make_checkpoint.py) and of the example.

    make_gguf.py CHECKPOINT OUT.gguf [--type f32]

Needs numpy and gguf. Weights stay bf16, or become fp32. Norms and biases become fp32, as in llama.cpp's own
converter. That converter cannot be used: it refuses a tokenizer whose name it does not know, such as these.
"""

import argparse
import json
import struct
from pathlib import Path

import gguf
import numpy

NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}


def tensors(path):
    """Yields (name, bf16 as uint16) of each tensor of a safetensors file."""
    data = numpy.memmap(path, numpy.uint8, "r")
    length = struct.unpack("<Q", data[:8].tobytes())[0]
    header = json.loads(data[8:8 + length].tobytes())
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "BF16", name
        begin, end = entry["data_offsets"]
        yield name, data[8 + length + begin:8 + length + end].view(numpy.uint16).reshape(entry["shape"])


def new_name(name):
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    index, rest = name.removeprefix("model.layers.").split(".", 1)
    part, kind = rest.rsplit(".", 1)
    return f"blk.{index}.{NAMES[part]}.{kind}"


def rotated_pairs(weight, heads):
    """llama.cpp's Llama rotates neighbouring rows of a head, transformers' rows that are half a head apart."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def arranged(name, values, config):
    if config["model_type"] != "llama":
        return values
    if name.endswith("q_proj.weight"):
        return rotated_pairs(values, config["num_attention_heads"])
    if name.endswith("k_proj.weight"):
        return rotated_pairs(values, config["num_key_value_heads"])
    return values


def widened(values):
    """bf16, as uint16, to fp32."""
    return (values.astype(numpy.uint32) << 16).view(numpy.float32)


def add_config(writer, config, file_type):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config.get("rope_parameters", config)["rope_theta"])
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_rope_dimension_count(head)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(file_type)


def add_tokenizer(writer, tokenizer, vocab_size):
    model = tokenizer["model"]
    tokens = [f"[unused{i}]" for i in range(vocab_size)]
    types = [gguf.TokenType.UNUSED] * vocab_size
    for token, index in model["vocab"].items():
        tokens[index], types[index] = token, gguf.TokenType.NORMAL
    for added in tokenizer["added_tokens"]:
        tokens[added["id"]], types[added["id"]] = added["content"], gguf.TokenType.CONTROL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in model["merges"]])
    writer.add_eos_token_id(tokenizer["added_tokens"][0]["id"])
    writer.add_add_bos_token(False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--type", choices=["bf16", "f32"], default="bf16", help="type of the matrices")
    args = parser.parse_args()
    config = json.loads((args.checkpoint / "config.json").read_text())
    writer = gguf.GGUFWriter(args.out, config["model_type"])
    wide = args.type == "f32"
    add_config(writer, config, gguf.LlamaFileType.ALL_F32 if wide else gguf.LlamaFileType.MOSTLY_BF16)
    add_tokenizer(writer, json.loads((args.checkpoint / "tokenizer.json").read_text()), config["vocab_size"])
    for name, values in tensors(args.checkpoint / "model.safetensors"):
        values = numpy.ascontiguousarray(arranged(name, values, config))
        if wide or values.ndim == 1:
            writer.add_tensor(new_name(name), widened(values))
        else:
            writer.add_tensor(new_name(name), values.view(numpy.uint8),
                              raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
