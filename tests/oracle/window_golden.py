"""Writes tests/golden/native_config/windows.jsonl: transformers' and lm_eval's reading of the keys of config.json that
give windows, caches, context lengths and sizes, in every family that is served and has a class in transformers.

Usage: HF_HUB_OFFLINE=1 python3 tests/oracle/window_golden.py tests/golden/native_config

Made with torch 2.13, transformers 5.23, lm_eval 0.4.13. Each line has a config.json, and either "error" (transformers
loads no such model, or neither a forward pass nor a generation succeeds) or
  windows               by layer: the number of positions to which the last of 30 tokens attends in a forward pass;
                        0 for all 30
  generation_positions  the number of tokens up to which the logits of generate() are those of a forward pass over the
                        same tokens; 0 for all that were tried
  context               lm_eval's context length
  sizes                 the class's sizes after reading, also if config.json lacks the key
"""

import json
import pathlib
import sys
import tempfile

import torch
from lm_eval.models.utils import resolve_max_length
from transformers import AutoConfig, AutoModelForCausalLM

BASE = dict(vocab_size=64, hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
            max_position_embeddings=64, bos_token_id=0, eos_token_id=1)
GROUPED = dict(num_key_value_heads=1, head_dim=16)
FAMILIES = {"llama": GROUPED, "mistral": GROUPED, "qwen2": dict(num_key_value_heads=1), "qwen3": GROUPED,
            "qwen3_moe": dict(GROUPED, num_experts=2, num_experts_per_tok=1, moe_intermediate_size=16),
            "gpt_neox": {}, "olmo2": dict(num_key_value_heads=1), "gemma2": GROUPED, "gemma3_text": GROUPED}
ABSENT = "absent"
FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"
ON = {"use_sliding_window": True}
KEYS = [
    {}, {"sliding_window": None}, {"sliding_window": 9}, {"sliding_window": 1}, {"sliding_window": 2},
    {"sliding_window": 9, "use_sliding_window": False}, {"sliding_window": 9, **ON}, {"sliding_window": 40},
    {"sliding_window": 9, **ON, "max_window_layers": 1}, {"sliding_window": 9, **ON, "max_window_layers": 0},
    {"sliding_window": 1, **ON, "max_window_layers": 0},
    {"attention_chunk_size": 9}, {"attention_chunk_size": 1}, {"sliding_window": 12, "attention_chunk_size": 9},
    {"sliding_window": None, "attention_chunk_size": 9},
    {"layer_types": None, "sliding_window": 9}, {"layer_types": None, "sliding_window": 9, **ON},
    {"layer_types": [FULL, FULL]}, {"layer_types": [FULL, FULL], "sliding_window": 9},
    {"layer_types": [FULL, FULL], "sliding_window": 9, **ON},
    {"layer_types": [FULL, SLIDING], "sliding_window": 9},
    {"layer_types": [SLIDING, SLIDING], "sliding_window": 9, **ON},
    {"layer_types": [SLIDING, SLIDING], "sliding_window": 1, **ON},
    {"layer_types": [FULL, SLIDING], "sliding_window": 1},
    {"layer_types": [FULL, SLIDING], "sliding_window": None},
    {"layer_types": ["attention", "attention"], "sliding_window": 9},
    {"layer_types": [FULL, CHUNKED], "attention_chunk_size": 9},
    {"layer_types": [CHUNKED, CHUNKED], "attention_chunk_size": 9, "sliding_window": 12, **ON},
    {"layer_types": [CHUNKED, CHUNKED], "attention_chunk_size": 12, "sliding_window": 9, **ON},
    {"layer_types": [CHUNKED, CHUNKED], "attention_chunk_size": 1, "sliding_window": 9, **ON},
    {"layer_types": [FULL]}, {"layer_types": []}, {"layer_types": ["mlp", FULL]},
    {"layer_types": ["linear_attention", FULL]},
    {"n_positions": 32}, {"n_positions": 100}, {"n_positions": None}, {"n_ctx": 32},
    {"num_attention_heads": ABSENT, "hidden_size": 512}, {"vocab_size": ABSENT}, {"hidden_size": ABSENT},
    {"intermediate_size": ABSENT}, {"num_hidden_layers": ABSENT}, {"max_position_embeddings": ABSENT},
    {"head_dim": ABSENT}, {"num_key_value_heads": ABSENT, "num_attention_heads": 32, "hidden_size": 128},
    {"num_attention_heads": None}, {"vocab_size": None}, {"hidden_size": None}, {"intermediate_size": None},
    {"num_hidden_layers": None},
]
# Python's false is 0. Keys that the classes of these families do not know are ignored.
UNKNOWN = [{"sliding_window": False}, {"sliding_window": True}, {"sliding_window": 0}, {"sliding_window": -3},
           {"sliding_window": 9.0}, {"sliding_window": "9"}]
PATTERNS = [{"sliding_window": 9, "sliding_window_pattern": pattern} for pattern in (1, 2, 0, None, "2")] + [
    {"sliding_window": 9, "num_hidden_layers": 7}, {"layer_types": [FULL, SLIDING], "sliding_window_pattern": None}]
# Its mask has the size of the full layer's cache, so generation ends in an error beyond the window.
BROKEN = ("qwen3_moe", {"layer_types": [FULL, SLIDING], "sliding_window": 9, **ON})


def load(config):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "config.json").write_text(json.dumps(config))
        config = AutoConfig.from_pretrained(folder)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).float().eval()
    generator = torch.Generator().manual_seed(5)
    for name, weight in model.named_parameters():
        if "norm" not in name:
            std = 1 if "embed" in name else 1.5 / weight.shape[-1]**0.5
            weight.copy_(torch.randn(weight.shape, generator=generator) * std)
    return model


def tokens(count):
    return torch.randint(2, 64, (1, count), generator=torch.Generator().manual_seed(count))


def agrees(model, prompt):
    """The number of tokens up to which generate() and a forward pass give the same logits; 0 for all."""
    out = model.generate(tokens(prompt), attention_mask=torch.ones(1, prompt, dtype=torch.long), do_sample=False,
                         max_new_tokens=28, eos_token_id=[], pad_token_id=1, output_logits=True,
                         return_dict_in_generate=True)
    full = model(out.sequences[:, :-1]).logits[0, prompt - 1:]
    far = (full - torch.stack(out.logits)[:, 0]).abs().amax(-1) > 1e-3
    return prompt + int(far.nonzero()[0]) - 1 if far.any() else 0


def windows(model):
    model.set_attn_implementation("eager")
    layers = model(tokens(30), output_attentions=True, use_cache=False).attentions
    return [int((layer[0, 0, -1] > 0).sum()) % 30 for layer in layers]


def sizes(model):
    config = model.config
    read = {key: getattr(config, key) for key in ("vocab_size", "hidden_size", "intermediate_size",
                                                  "num_hidden_layers", "num_attention_heads")}
    attention = next(module for name, module in model.named_modules() if name.endswith("attention")
                     or name.endswith("self_attn"))
    heads = config.num_attention_heads
    if hasattr(attention, "k_proj"):
        heads = attention.k_proj.out_features // attention.head_dim
    head_dim = attention.head_dim if hasattr(attention, "head_dim") else attention.head_size
    return {**read, "num_key_value_heads": heads, "head_dim": head_dim}


def line(config):
    try:
        model = load(config)
        short, long = agrees(model, 1), agrees(model, 12)
        assert long == (max(short, 12) if short else 0), (config, short, long)
        return {"windows": windows(model), "generation_positions": short, "context": resolve_max_length(model.config),
                "sizes": sizes(model)}
    except AssertionError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever transformers raises
        return {"error": type(error).__name__}


@torch.no_grad()
def main(out):
    torch.set_num_threads(1)
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for family, own in FAMILIES.items():
        more = UNKNOWN if family in ("llama", "gpt_neox", "olmo2") else PATTERNS if "gemma" in family else []
        for keys in KEYS + more:
            # With a window of 1, Gemma generates as its forward pass if the prompt has one token, and else not.
            alone = "gemma" in family and keys.get("sliding_window") == 1
            if (family, keys) != BROKEN and not alone:
                config = {**BASE, **own, "model_type": family, **keys}
                config = {key: value for key, value in config.items() if value != ABSENT}
                lines.append({"config": config, **line(config)})
    (out / "windows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(len(lines), "lines,", sum("error" in line for line in lines), "errors")


main(sys.argv[1])
