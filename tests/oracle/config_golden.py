"""Writes tests/golden/native_config/keys.jsonl: transformers' reading of keys of config.json that hold null, that a
family does not use, or whose values are rare.

Usage: HF_HUB_OFFLINE=1 python3 tests/oracle/config_golden.py tests/golden/native_config

Made with transformers 5.23. One line for each config:

  config     the content of config.json
  error      transformers' message, if it does not build the model or does not compute its logits
  heads, kv_heads, head_dim, rotary_dim, rope_scale    of the model that transformers builds. rope_scale is the factor
             on sines and cosines
  eps        of the first layer's norm
"""

import json
import pathlib
import sys
import tempfile

import torch
from transformers import AutoConfig, AutoModelForCausalLM

BASE = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 1}
OWN = {"llama": {}, "mistral": {"num_key_value_heads": 2, "head_dim": 8, "sliding_window": None}, "qwen2": {"num_key_value_heads": 2},
       "qwen3": {"num_key_value_heads": 2, "head_dim": 8},
       "qwen3_moe": {"num_key_value_heads": 2, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2,
                     "moe_intermediate_size": 16}, "gpt_neox": {}, "olmo2": {}, "gemma2": {"num_key_value_heads": 2, "head_dim": 8},
       "gemma3_text": {"num_key_value_heads": 2, "head_dim": 8, "layer_types": ["sliding_attention", "full_attention"]}}
NAMES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3", "qwen3_moe": "Qwen3Moe",
         "gpt_neox": "GPTNeoX", "olmo2": "Olmo2", "gemma2": "Gemma2", "gemma3_text": "Gemma3"}
NULL = ["num_key_value_heads", "head_dim", "hidden_act", "max_position_embeddings", "rms_norm_eps", "layer_norm_eps",
        "tie_word_embeddings", "attention_bias", "mlp_bias", "attention_dropout", "hidden_dropout", "initializer_range",
        "use_cache", "is_decoder", "num_experts", "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob",
        "decoder_sparse_step", "mlp_only_layers", "router_aux_loss_coef", "output_router_logits", "use_parallel_residual",
        "rotary_pct", "rope_scaling", "rope_parameters", "partial_rotary_factor", "bos_token_id", "pad_token_id", "dtype",
        "torch_dtype", "pretraining_tp"]
YARN = {"rope_type": "yarn", "original_max_position_embeddings": 32}
ABSENT = "ABSENT"
CHANGES = [
    {}, *({key: None} for key in NULL),
    {"bos_token_id": [0]}, {"dtype": "auto"}, {"torch_dtype": "auto"}, {"dtype": "bfloat16"}, {"torch_dtype": "float16"},
    {"rope_scaling": YARN}, {"rope_scaling": {**YARN, "factor": None}}, {"rope_scaling": {**YARN, "factor": 3.0}},
    {"rope_scaling": {**YARN, "factor": 3.0, "mscale": 0, "mscale_all_dim": 0.7}},
    {"rope_scaling": {**YARN, "factor": 3.0, "mscale": 0.7, "mscale_all_dim": 0.0}},
    {"rope_scaling": {**YARN, "factor": 3.0, "mscale": 0.7, "mscale_all_dim": 0.4}},
    {"rope_scaling": {"rope_type": "linear"}}, {"rope_scaling": {"rope_type": "linear", "factor": None}},
    {"rope_scaling": {"rope_type": "dynamic"}},
    {"rms_norm_eps": 0.0, "layer_norm_eps": 0.0},
    {"partial_rotary_factor": 0.5}, {"partial_rotary_factor": 1.5}, {"partial_rotary_factor": 0}, {"partial_rotary_factor": 1.0},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}},
    {"rope_scaling": {"rope_type": "linear", "factor": 2.0}, "partial_rotary_factor": 0.5},
    {"rope_scaling": {"rope_type": "linear", "factor": 2.0}, "partial_rotary_factor": 1.0},
    {"rope_scaling": {**YARN, "factor": 2.0, "partial_rotary_factor": 0.5}},
    {"hidden_act": "gelu_python"}, {"hidden_act": "gelu_python_tanh"}, {"hidden_act": "gelu_accurate"}, {"hidden_act": "none"},
]
ONLY = {
    "gpt_neox": [{"num_key_value_heads": 2}, {"num_key_value_heads": 3}, {"num_key_value_heads": "x"}, {"head_dim": 16},
                 {"head_dim": 32}, {"head_dim": 64}],
    "qwen3_moe": [{"intermediate_size": ABSENT}, {"intermediate_size": ABSENT, "mlp_only_layers": [1]}],
    **{family: [{key: None} for key in ("hidden_activation", "query_pre_attn_scalar", "attn_logit_softcapping",
                                        "final_logit_softcapping", "use_bidirectional_attention", "sliding_window")] +
       [{"hidden_activation": "gelu"}, {"hidden_activation": "none"}, {"num_attention_heads": 3}]
       for family in ("gemma2", "gemma3_text")},
}


def read(config):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "config.json").write_text(json.dumps(config))
        loaded = AutoConfig.from_pretrained(folder)
    model = AutoModelForCausalLM.from_config(loaded).float().eval()
    with torch.no_grad():
        model(torch.tensor([[1, 2, 3]]))
    modules = dict(model.named_modules())
    rope = next(m for n, m in modules.items() if n.endswith("rotary_emb"))
    # Of Gemma 3, the rope of the layers without a window.
    frequencies = getattr(rope, "full_attention_inv_freq", None)
    scale = getattr(rope, "full_attention_attention_scaling", 1.0)
    if frequencies is None:
        frequencies, scale = rope.inv_freq, rope.attention_scaling
    norm = next(m for n, m in modules.items() if n.endswith("layernorm"))
    attention = next(m for n, m in modules.items() if n.endswith(("attention", "self_attn")))
    heads = loaded.num_attention_heads
    if hasattr(attention, "k_proj"):
        head_dim = attention.q_proj.out_features // heads
        kv_heads = attention.k_proj.out_features // head_dim
    else:
        head_dim, kv_heads = attention.query_key_value.out_features // heads // 3, heads
    eps = getattr(norm, "variance_epsilon", None)
    return {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "rotary_dim": 2 * frequencies.numel(),
            "rope_scale": float(scale), "eps": norm.eps if eps is None else eps}


def main(out):
    torch.set_num_threads(1)
    lines = []
    for family, own in OWN.items():
        for change in CHANGES + ONLY.get(family, []):
            config = {**BASE, **own, "model_type": family, "architectures": [NAMES[family] + "ForCausalLM"], **change}
            config = {k: v for k, v in config.items() if v != ABSENT}
            try:
                lines.append({"config": config, **read(config)})
            except Exception as error:
                lines.append({"config": config, "error": f"{type(error).__name__}: {error}"[:120].replace("\n", " ")})
    (pathlib.Path(out) / "keys.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


main(*sys.argv[1:])
