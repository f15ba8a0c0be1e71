"""Writes tests/golden/native/: small random checkpoints of every family, with the numbers that
transformers and lm_eval's `hf` backend compute from them in fp32.

Usage: HF_HUB_OFFLINE=1 python3 tests/oracle/native_golden.py tests/golden/native [NAME ...]

Made with torch 2.13, transformers 5.23, tokenizers 0.23, lm_eval 0.4.13. Weights are scaled so that
logits spread and attention is peaked (both asserted). With default initialisation almost any wrong
engine would give nearly the right numbers. Greedy choices are kept away from ties (asserted).

Per checkpoint, beside its files:
  golden.json  prompts as tokens with the positions of the recorded logits, greedy continuations,
               and the harness's results for requests given as text
  logits.bin   fp32 logits, [prompt][position][vocab_size]
"""

import json
import pathlib
import random
import shutil
import sys
import tempfile

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer

VOCAB = 320
TEXT = """def add(a, b):
    return a + b

The answer is 42. She has 3 apples and buys 5 more, so she has 3 + 5 = 8 apples.
Question: What is the capital of France?
A. Paris
B. London
Answer: A
for i in range(10):
    print(i, "hello", 'world')
Once upon a time there was a small model that could not count. #### 17
"""

BASE = {
    "vocab_size": VOCAB,
    "max_position_embeddings": 256,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
LLAMA = {**BASE, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu"}
SMALL = dict(hidden_size=64, intermediate_size=112, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2)


def family(architecture, model_type, **config):
    return {**BASE, "architectures": [architecture], "model_type": model_type, "hidden_act": "silu",
            **SMALL, **config}


def checkpoint(config, dtype, shards=1, bos=False):
    return dict(config=config, dtype=dtype, shards=shards, bos=bos)


MODELS = {
    # Two shards, untied, grouped queries, keys as on today's hub.
    "untied": checkpoint(
        {**LLAMA, **SMALL, **dict(rms_norm_eps=0.01, rope_theta=10000.0, rope_scaling=None,
                                  tie_word_embeddings=False, torch_dtype="bfloat16")},
        torch.bfloat16, shards=2, bos=True),
    # Tied, one key-value head, llama3 rope scaling, keys of transformers 5.
    "llama3": checkpoint(
        {**LLAMA, **dict(hidden_size=64, intermediate_size=112, num_hidden_layers=2, head_dim=16,
                         num_attention_heads=4, num_key_value_heads=1, rms_norm_eps=1e-5,
                         rope_parameters=dict(rope_type="llama3", rope_theta=500.0, factor=8.0,
                                              low_freq_factor=1.0, high_freq_factor=4.0,
                                              original_max_position_embeddings=64),
                         tie_word_embeddings=True, dtype="float16")},
        torch.float16),
    # Biases, linear rope scaling, sizes that are no multiple of a vector, wide heads.
    "linear": checkpoint(
        {**LLAMA, **dict(hidden_size=40, intermediate_size=73, num_hidden_layers=2, head_dim=24,
                         num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-3,
                         rope_theta=1000.0, rope_scaling=dict(type="linear", factor=4.0),
                         attention_bias=True, mlp_bias=True, tie_word_embeddings=False,
                         torch_dtype="float32")},
        torch.float32),
    # Yarn with all its parameters. Prompts go beyond its original context.
    "yarn": checkpoint(
        {**LLAMA, **SMALL, **dict(
            rms_norm_eps=1e-5, tie_word_embeddings=False, torch_dtype="bfloat16", rope_theta=400.0,
            rope_scaling=dict(rope_type="yarn", factor=4.0, beta_fast=6.0, beta_slow=0.7,
                              truncate=False, original_max_position_embeddings=64))},
        torch.bfloat16),
    "mistral": checkpoint(
        family("MistralForCausalLM", "mistral", sliding_window=48, head_dim=24, rms_norm_eps=1e-5,
               rope_theta=5000.0, tie_word_embeddings=False, torch_dtype="bfloat16"),
        torch.bfloat16),
    # A window in the second layer only.
    "qwen2": checkpoint(
        family("Qwen2ForCausalLM", "qwen2", use_sliding_window=True, sliding_window=40,
               max_window_layers=1, rms_norm_eps=1e-6, rope_theta=1e6, tie_word_embeddings=True,
               torch_dtype="bfloat16"),
        torch.bfloat16),
    # Heads wider than hidden_size / heads, layer_types, and yarn as in Qwen3's long-context checkpoints.
    "qwen3": checkpoint(
        family("Qwen3ForCausalLM", "qwen3", head_dim=24, num_hidden_layers=3, attention_bias=False,
               use_sliding_window=True, sliding_window=56, max_window_layers=3,
               layer_types=["full_attention", "sliding_attention", "full_attention"],
               rms_norm_eps=1e-6, tie_word_embeddings=True, dtype="bfloat16",
               rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=2.0,
                                    attention_factor=1.3,
                                    original_max_position_embeddings=128)),
        torch.bfloat16),
    # Experts in the first and the last of three layers.
    "qwen3_moe": checkpoint(
        family("Qwen3MoeForCausalLM", "qwen3_moe", head_dim=16, num_hidden_layers=3,
               moe_intermediate_size=24, num_experts=7, num_experts_per_tok=3, norm_topk_prob=True,
               decoder_sparse_step=1, mlp_only_layers=[1], attention_bias=False, rms_norm_eps=1e-6,
               rope_theta=1e4, tie_word_embeddings=False, torch_dtype="bfloat16"),
        torch.bfloat16),
    # A Llama in another arrangement. Its logits are known from the Llama.
    "internlm2": checkpoint(
        family("InternLM2ForCausalLM", "internlm2", bias=True, rms_norm_eps=1e-5, rope_theta=1e4,
               rope_scaling=dict(type="dynamic", factor=2.0), tie_word_embeddings=False,
               torch_dtype="float16"),
        torch.float16),
    # Like Pythia.
    "gpt_neox": checkpoint(
        {**BASE, **dict(architectures=["GPTNeoXForCausalLM"], model_type="gpt_neox",
                        hidden_act="gelu", hidden_size=64, intermediate_size=112,
                        num_hidden_layers=2, num_attention_heads=4, layer_norm_eps=1e-3,
                        rotary_pct=0.25, rotary_emb_base=100, use_parallel_residual=True,
                        tie_word_embeddings=False, torch_dtype="float16")},
        torch.float16),
    # Attention and MLP one after another, without biases in attention, another gelu, keys of transformers 5.
    "gpt_neox_serial": checkpoint(
        {**BASE, **dict(architectures=["GPTNeoXForCausalLM"], model_type="gpt_neox",
                        hidden_act="gelu_fast", hidden_size=60, intermediate_size=73,
                        num_hidden_layers=2, num_attention_heads=3, layer_norm_eps=1e-5,
                        rope_parameters=dict(rope_type="default", rope_theta=500.0,
                                             partial_rotary_factor=0.6),
                        use_parallel_residual=False, attention_bias=False,
                        tie_word_embeddings=True, dtype="float32")},
        torch.float32),
    "olmo2": checkpoint(
        family("Olmo2ForCausalLM", "olmo2", rms_norm_eps=1e-3, rope_theta=500.0,
               attention_bias=False, tie_word_embeddings=False, torch_dtype="bfloat16"),
        torch.bfloat16),
    # An odd share of a head: frequencies over 5 dimensions, so 6 are rotated.
    "gpt_neox_odd": checkpoint(
        {**BASE, **dict(architectures=["GPTNeoXForCausalLM"], model_type="gpt_neox",
                        hidden_act="gelu", hidden_size=60, intermediate_size=72,
                        num_hidden_layers=2, num_attention_heads=3, layer_norm_eps=1e-5,
                        rotary_pct=0.25, rotary_emb_base=100, use_parallel_residual=True,
                        tie_word_embeddings=False, torch_dtype="float32")},
        torch.float32),
    # A Mistral with layer_types, which transformers loads as a Ministral: windows in the outer layers only.
    "ministral": checkpoint(
        family("MistralForCausalLM", "mistral", sliding_window=48, head_dim=16, num_hidden_layers=3,
               layer_types=["sliding_attention", "full_attention", "sliding_attention"],
               rms_norm_eps=1e-5, rope_theta=5000.0, tie_word_embeddings=False,
               torch_dtype="bfloat16"),
        torch.bfloat16),
    # Both caps, a query scale that is not the heads', windows in every other layer. hidden_act is not read.
    "gemma2": checkpoint(
        family("Gemma2ForCausalLM", "gemma2", head_dim=24, num_hidden_layers=3, sliding_window=48,
               hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=6,
               attn_logit_softcapping=15.0, final_logit_softcapping=5.0, rms_norm_eps=1e-3,
               rope_theta=500.0, tie_word_embeddings=True, torch_dtype="bfloat16"),
        torch.bfloat16),
    # Two ropes and linear scaling in the keys of the hub. attn_logit_softcapping has no effect in transformers.
    "gemma3": checkpoint(
        family("Gemma3ForCausalLM", "gemma3_text", head_dim=16, num_hidden_layers=4,
               sliding_window=40, sliding_window_pattern=3, query_pre_attn_scalar=24,
               attn_logit_softcapping=3.0, rms_norm_eps=1e-6, rope_theta=5000.0,
               rope_local_base_freq=100.0, rope_scaling=dict(rope_type="linear", factor=4.0),
               tie_word_embeddings=True, torch_dtype="bfloat16"),
        torch.bfloat16),
    # The same in the keys of transformers 5, with biases and another gelu, untied.
    "gemma3_nested": checkpoint(
        family("Gemma3ForCausalLM", "gemma3_text", head_dim=24, num_hidden_layers=3,
               num_key_value_heads=1, sliding_window=56, query_pre_attn_scalar=16,
               layer_types=["full_attention", "sliding_attention", "full_attention"],
               hidden_activation="gelu", final_logit_softcapping=6.0, attention_bias=True,
               rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=2000.0),
                                    sliding_attention=dict(rope_type="linear", factor=2.0,
                                                           rope_theta=50.0)),
               rms_norm_eps=1e-2, tie_word_embeddings=False, dtype="float32"),
        torch.float32),
}


def write_tokenizer(folder, bos):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=["<s>", "</s>"], min_frequency=1, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator([TEXT], trainer)
    assert tokenizer.get_vocab_size() == VOCAB
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 0)])
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>",
         "clean_up_tokenization_spaces": False}, indent=1) + "\n")


class Weights:
    """Random tensors by name, scaled so that logits are far apart and attention is peaked."""

    def __init__(self, generator, offset=0):
        self.generator, self.tensors, self.offset = generator, {}, offset

    def normal(self, *shape, std):
        return torch.randn(*shape, generator=self.generator) * std

    def matrix(self, name, rows, columns, gain, bias):
        self.tensors[name + ".weight"] = self.normal(rows, columns, std=gain / columns**0.5)
        if bias:
            self.tensors[name + ".bias"] = self.normal(rows, std=0.5)

    def norm(self, name, size, scale=1.0, bias=False):
        # Gemma's norms multiply by 1 + weight.
        self.tensors[name + ".weight"] = scale * (1 + self.normal(size, std=0.2)) - self.offset
        if bias:
            self.tensors[name + ".bias"] = self.normal(size, std=0.5)

    def embeddings(self, embedding, head, config):
        # A tied matrix must be small as an embedding and large as an output.
        tied, hidden = config["tie_word_embeddings"], config["hidden_size"]
        std = {False: 1.0, True: 0.25}[tied]
        if config["model_type"] in ("olmo2", "gpt_neox") and tied:
            std = 0.5
        self.tensors[embedding + ".weight"] = self.normal(VOCAB, hidden, std=std)
        if not tied:
            self.tensors[head + ".weight"] = self.normal(VOCAB, hidden, std=0.35)


def feed_forward(weights, prefix, hidden, inner, bias=False):
    weights.matrix(prefix + "gate_proj", inner, hidden, 1.2, bias)
    weights.matrix(prefix + "up_proj", inner, hidden, 1.2, bias)
    weights.matrix(prefix + "down_proj", hidden, inner, 1.2, bias)


def llama_like(config, generator):
    """Tensors of all families except GPT-NeoX, under transformers' names."""
    kind, hidden = config["model_type"], config["hidden_size"]
    gemma = kind in ("gemma2", "gemma3_text")
    weights = Weights(generator, offset=1 if gemma else 0)
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    size = config.get("head_dim", hidden // heads)
    weights.embeddings("model.embed_tokens", "lm_head", config)
    weights.norm("model.norm", hidden)
    bias = config.get("attention_bias", config.get("bias", False))
    # A norm after the matrix decides the size of queries and keys.
    sharp = {"qwen3": 2.0, "qwen3_moe": 2.0, "olmo2": 2.0, "gemma3_text": 2.0}.get(kind, 1.0)
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        weights.matrix(p + "self_attn.q_proj", heads * size, hidden, 2.0, bias or kind == "qwen2")
        weights.matrix(p + "self_attn.k_proj", kv * size, hidden, 2.0, bias or kind == "qwen2")
        weights.matrix(p + "self_attn.v_proj", kv * size, hidden, 1.2, bias or kind == "qwen2")
        weights.matrix(p + "self_attn.o_proj", hidden, heads * size, 1.2, bias)
        if kind in ("qwen3", "qwen3_moe", "gemma3_text"):
            weights.norm(p + "self_attn.q_norm", size, sharp)
            weights.norm(p + "self_attn.k_norm", size, sharp)
        if kind == "olmo2":
            weights.norm(p + "self_attn.q_norm", heads * size, sharp)
            weights.norm(p + "self_attn.k_norm", kv * size, sharp)
            weights.norm(p + "post_attention_layernorm", hidden)
            weights.norm(p + "post_feedforward_layernorm", hidden)
        else:
            weights.norm(p + "input_layernorm", hidden)
            weights.norm(p + "post_attention_layernorm", hidden)
        if gemma:
            weights.norm(p + "pre_feedforward_layernorm", hidden)
            weights.norm(p + "post_feedforward_layernorm", hidden)
        if kind == "qwen3_moe" and i not in config["mlp_only_layers"]:
            weights.matrix(p + "mlp.gate", config["num_experts"], hidden, 1.5, False)
            for e in range(config["num_experts"]):
                feed_forward(weights, f"{p}mlp.experts.{e}.", hidden,
                             config["moe_intermediate_size"])
        else:
            feed_forward(weights, p + "mlp.", hidden, config["intermediate_size"],
                         config.get("mlp_bias", False))
    return weights.tensors


def gpt_neox(config, generator):
    weights = Weights(generator)
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    bias = config.get("attention_bias", True)
    weights.embeddings("gpt_neox.embed_in", "embed_out", config)
    weights.norm("gpt_neox.final_layer_norm", hidden, bias=True)
    for i in range(config["num_hidden_layers"]):
        p = f"gpt_neox.layers.{i}."
        weights.norm(p + "input_layernorm", hidden, bias=True)
        weights.norm(p + "post_attention_layernorm", hidden, bias=True)
        weights.matrix(p + "attention.query_key_value", 3 * hidden, hidden, 1.8, bias)
        weights.matrix(p + "attention.dense", hidden, hidden, 1.0, bias)
        weights.matrix(p + "mlp.dense_h_to_4h", inner, hidden, 1.5, True)
        weights.matrix(p + "mlp.dense_4h_to_h", hidden, inner, 1.2, True)
    return weights.tensors


def random_weights(config, generator):
    make = gpt_neox if config["model_type"] == "gpt_neox" else llama_like
    return make(config, generator)


def internlm2_names(tensors, config):
    """A Llama's tensors in InternLM2's arrangement: for each key-value head its query heads, its key and its value,
    one below the other."""
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    size = config["hidden_size"] // heads
    names = {"model.embed_tokens": "model.tok_embeddings", "lm_head": "output",
             "self_attn.o_proj": "attention.wo", "input_layernorm": "attention_norm",
             "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "feed_forward.w1",
             "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2"}
    result = {}
    for name, tensor in tensors.items():
        if "q_proj" in name:
            q = tensor.reshape(kv, heads // kv * size, *tensor.shape[1:])
            k = tensors[name.replace("q_proj", "k_proj")].reshape(kv, size, *tensor.shape[1:])
            v = tensors[name.replace("q_proj", "v_proj")].reshape(kv, size, *tensor.shape[1:])
            packed = torch.cat([q, k, v], 1).reshape(-1, *tensor.shape[1:])
            result[name.replace("self_attn.q_proj", "attention.wqkv")] = packed.contiguous()
        elif "k_proj" not in name and "v_proj" not in name:
            for old, new in names.items():
                name = name.replace(old, new)
            result[name] = tensor
    return result


def write_checkpoint(folder, spec, seed):
    """Writes the checkpoint. Returns a folder with a checkpoint of the same numbers that transformers can read."""
    config = spec["config"]
    tensors = random_weights(config, torch.Generator().manual_seed(seed))
    tensors = {k: v.to(spec["dtype"]) for k, v in tensors.items()}
    write_files(folder, config, tensors, spec)
    if config["model_type"] != "internlm2":
        return folder
    twin = pathlib.Path(tempfile.mkdtemp())
    write_files(twin, {**config, "architectures": ["LlamaForCausalLM"], "model_type": "llama",
                       "attention_bias": config["bias"]}, tensors, spec)
    write_files(folder, config, internlm2_names(tensors, config), spec)
    return twin


def write_files(folder, config, tensors, spec):
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    write_tokenizer(folder, spec["bos"])
    names = sorted(tensors)
    if spec["shards"] == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    index = {"metadata": {"total_size": sum(t.nbytes for t in tensors.values())}, "weight_map": {}}
    for i in range(spec["shards"]):
        file = f"model-{i + 1:05}-of-{spec['shards']:05}.safetensors"
        part = names[i * len(names) // spec["shards"]:(i + 1) * len(names) // spec["shards"]]
        save_file({n: tensors[n] for n in part}, folder / file, metadata={"format": "pt"})
        index["weight_map"].update({n: file for n in part})
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


def assert_sensitive(model, tokens):
    """Asserts that logits spread and attention is peaked. Otherwise wrong engines would pass."""
    with torch.no_grad():
        out = model(torch.tensor([tokens]), output_attentions=True)
    sigma = out.logits.std(-1).mean().item()
    late = torch.stack([a[0, :, 16:].max(-1).values.mean() for a in out.attentions])
    assert sigma >= 1, sigma
    assert late.min().item() >= 0.3, late
    return sigma, late.min().item()


def record_logits(model, rng, folder):
    lengths = [1, 2, 3, 7, 15, 16, 17, 31, 33, 48, 63, 64, 65, 80, 100, 129, 150, 200, 255, 256]
    prompts, rows = [], []
    for length in lengths:
        tokens = [rng.randrange(2, VOCAB) for _ in range(length)]
        positions = sorted({length // 2, length - 1})
        with torch.no_grad():
            logits = model(torch.tensor([tokens])).logits[0]
        prompts.append({"tokens": tokens, "positions": positions})
        rows += [logits[p] for p in positions]
    (folder / "logits.bin").write_bytes(torch.stack(rows).to(torch.float32).numpy().tobytes())
    return prompts, torch.stack(rows)


def bf16_spread(folder, prompts, rows):
    """The differences between transformers' own logits in bf16 and in fp32: the largest and the root mean square."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16,
                                                 attn_implementation="eager").eval()
    half = []
    for prompt in prompts:
        with torch.no_grad():
            logits = model(torch.tensor([prompt["tokens"]])).logits[0]
        half += [logits[p].float() for p in prompt["positions"]]
    difference = torch.stack(half) - rows
    return {"largest": difference.abs().max().item(),
            "rms": difference.pow(2).mean().sqrt().item()}


def greedy_text(model, tokenizer, prompt, count):
    """Tokens of greedy generation without any stop, and the smallest lead of a chosen token over the next best."""
    tokens = tokenizer.encode(prompt)
    out = model.generate(torch.tensor([tokens]), do_sample=False, max_new_tokens=count,
                         eos_token_id=[], pad_token_id=1, output_logits=True,
                         return_dict_in_generate=True)
    top = torch.stack(out.logits)[:, 0].topk(2).values
    return tokens, out.sequences[0, len(tokens):].tolist(), (top[:, 0] - top[:, 1]).min().item()


PROMPTS = ["def add(a, b):", "The answer is", "Question: What is", "Once upon a time",
           "for i in range(10):\n", "She has 3 apples and", "A. Paris\nB. London\nAnswer:",
           "hello world", "#### 17", "count " * 40]


def record_greedy(model, tokenizer):
    result = []
    for prompt in PROMPTS:
        tokens, generated, lead = greedy_text(model, tokenizer, prompt, 64)
        if lead < 2e-3:
            continue
        result.append({"prompt": prompt, "tokens": tokens, "generated": generated,
                       "text": tokenizer.decode(generated, skip_special_tokens=True)})
    assert len(result) >= 6, len(result)
    return result


def greedy_pairs(model, tokenizer, count):
    """Contexts with the text that greedy generation appends to them, if that text encodes back to the same tokens."""
    pairs = []
    for word in sorted(set(TEXT.split())):
        _, generated, lead = greedy_text(model, tokenizer, word, 2)
        text = tokenizer.decode(generated)
        if lead > 2e-3 and tokenizer.encode(word + text)[-2:] == generated and text.strip():
            pairs.append((word, text))
    assert len(pairs) >= count, len(pairs)
    return pairs[:count]


def instances(kind, arguments):
    return [Instance(kind, {}, args, i) for i, args in enumerate(arguments)]


def stop_cases(greedy):
    """Requests whose stop strings occur in different ways in the text that the model is known to generate."""
    cases = []
    for i, g in enumerate(greedy):
        text = g["text"]
        clean = [k for k in range(4, len(text) - 8) if "\ufffd" not in text[k:k + 6]]
        k = clean[len(clean) // 2] if clean else None
        until = [["\n\n"], ["zzz never"], [], ["\n", "Question:"]][i % 4]
        if k is not None:
            until = [[text[k:k + 1]], [text[k:k + 4]], [text[k:k + 6], text[k:k + 3]],
                     [text[k + 1:k + 4], text[k:k + 3]]][i % 4]
        cases.append((g["prompt"], {"until": until, "max_gen_toks": 48, "do_sample": False}))
    first = greedy[0]["prompt"]
    cases += [
        (first, {"until": [""], "max_gen_toks": 20, "do_sample": False}),
        (first, {"until": ["", "\n"], "max_gen_toks": 20, "do_sample": False}),
        (first, {"until": ["never found"], "max_gen_toks": 1, "do_sample": False}),
        (TEXT, {"until": ["never found"], "max_gen_toks": 40, "do_sample": False}),
        (TEXT, {"until": ["never found"], "max_gen_toks": 255, "do_sample": False}),
        (TEXT + " more", {"until": ["never found"], "max_gen_toks": 250, "do_sample": False}),
    ]
    return cases


def record_harness(folder, tokenizer, greedy, pairs):
    lm = HFLM(pretrained=str(folder), tokenizer=tokenizer, dtype="float32", batch_size=1,
              device="cpu")
    pairs += [("The answer is", " 42"), ("The answer is", " 42."), ("The answer is ", "42"),
             ("", "Paris"), ("", "hello world"), ("Question: What is the capital of France?\n", "A"),
             ("x", " y" * 30), (TEXT, " Answer: A"), (TEXT, " Answer: B"), (TEXT * 2, " 17"),
             (TEXT, TEXT[:260])]
    scored = lm.loglikelihood(instances("loglikelihood", pairs), disable_tqdm=True)
    texts = ["", "hello", TEXT[:100], TEXT, TEXT * 3]
    rolled = lm.loglikelihood_rolling(
        instances("loglikelihood_rolling", [(t,) for t in texts]), disable_tqdm=True)
    cases = stop_cases(greedy)
    generated = lm.generate_until(instances("generate_until", cases), disable_tqdm=True)
    return {
        "loglikelihood": [{"context": c, "continuation": t, "loglikelihood": ll, "is_greedy": g}
                          for (c, t), (ll, g) in zip(pairs, scored)],
        "rolling": [{"text": t, "loglikelihood": ll} for t, ll in zip(texts, rolled)],
        "generate": [{"context": c, "until": k["until"], "max_gen_toks": k["max_gen_toks"],
                      "text": t} for (c, k), t in zip(cases, generated)],
    }


def main(out, *names):
    torch.set_num_threads(1)
    for seed, (name, spec) in enumerate(MODELS.items()):
        if names and name not in names:
            continue
        folder = pathlib.Path(out) / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        readable = write_checkpoint(folder, spec, 100 + seed)
        model = AutoModelForCausalLM.from_pretrained(readable, dtype=torch.float32,
                                                     attn_implementation="eager").eval()
        tokenizer = AutoTokenizer.from_pretrained(readable)
        rng = random.Random(seed)
        shape = assert_sensitive(model, [rng.randrange(2, VOCAB) for _ in range(200)])
        prompts, rows = record_logits(model, rng, folder)
        golden = {"logits": prompts, "bf16": bf16_spread(readable, prompts, rows),
                  "greedy": record_greedy(model, tokenizer)}
        if name == "llama3":
            # A second end token, one that the model does generate.
            said = golden["greedy"][1]["generated"][20]
            (folder / "generation_config.json").write_text(
                json.dumps({"bos_token_id": 0, "eos_token_id": [1, said]}, indent=1) + "\n")
        golden["harness"] = record_harness(readable, tokenizer, golden["greedy"],
                                           greedy_pairs(model, tokenizer, 2))
        (folder / "golden.json").write_text(json.dumps(golden, ensure_ascii=True) + "\n")
        print(name, "sigma %.2f, attention peak %.2f" % shape, len(golden["greedy"]), "greedy")


main(*sys.argv[1:])
