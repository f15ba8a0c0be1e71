"""Writes tests/golden/native/: small random Llama checkpoints and what transformers and lm_eval's
`hf` backend make of them in fp32.

Usage: HF_HUB_OFFLINE=1 python3 tests/oracle/native_golden.py tests/golden/native

Made with torch 2.13, transformers 5.23, tokenizers 0.23, lm_eval 0.4.13. Weights are scaled so that
logits spread and attention is peaked (both asserted): with default initialisation almost any wrong
engine gives nearly the right numbers. Greedy choices are kept away from ties (asserted).

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

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM

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
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": VOCAB,
    "hidden_act": "silu",
    "max_position_embeddings": 256,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
MODELS = {
    # bf16 in two shards, untied, grouped queries, keys of today's hub.
    "untied": dict(
        config=dict(hidden_size=64, intermediate_size=112, num_hidden_layers=2,
                    num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=0.01,
                    rope_theta=10000.0, rope_scaling=None, tie_word_embeddings=False,
                    torch_dtype="bfloat16"),
        dtype=torch.bfloat16, shards=2, bos=True),
    # fp16, tied, one key-value head, llama3 rope scaling, keys of transformers 5.
    "llama3": dict(
        config=dict(hidden_size=64, intermediate_size=112, num_hidden_layers=2, head_dim=16,
                    num_attention_heads=4, num_key_value_heads=1, rms_norm_eps=1e-5,
                    rope_parameters=dict(rope_type="llama3", rope_theta=500.0, factor=8.0,
                                         low_freq_factor=1.0, high_freq_factor=4.0,
                                         original_max_position_embeddings=64),
                    tie_word_embeddings=True, dtype="float16"),
        dtype=torch.float16, shards=1, bos=False),
    # fp32, biases, linear rope scaling, sizes that are no multiple of a vector, wide heads.
    "linear": dict(
        config=dict(hidden_size=40, intermediate_size=73, num_hidden_layers=2, head_dim=24,
                    num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-3,
                    rope_theta=1000.0, rope_scaling=dict(type="linear", factor=4.0),
                    attention_bias=True, mlp_bias=True, tie_word_embeddings=False,
                    torch_dtype="float32"),
        dtype=torch.float32, shards=1, bos=False),
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


def random_weights(config, generator):
    """Tensors by name. Queries and keys are large, so that attention is peaked."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    size = config.get("head_dim", hidden // heads)

    def normal(*shape, std):
        return torch.randn(*shape, generator=generator) * std

    # A tied matrix must be small as an embedding and large as an output.
    embedding = 0.25 if config["tie_word_embeddings"] else 1.0
    tensors = {"model.embed_tokens.weight": normal(VOCAB, hidden, std=embedding),
               "model.norm.weight": 1 + normal(hidden, std=0.2)}
    if not config["tie_word_embeddings"]:
        tensors["lm_head.weight"] = normal(VOCAB, hidden, std=0.35)
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        matrices = {
            "self_attn.q_proj": (heads * size, hidden, 2.0), "self_attn.k_proj": (kv * size, hidden, 2.0),
            "self_attn.v_proj": (kv * size, hidden, 1.2), "self_attn.o_proj": (hidden, heads * size, 1.2),
            "mlp.gate_proj": (inner, hidden, 1.2), "mlp.up_proj": (inner, hidden, 1.2),
            "mlp.down_proj": (hidden, inner, 1.2)}
        for name, (rows, columns, gain) in matrices.items():
            tensors[p + name + ".weight"] = normal(rows, columns, std=gain / columns**0.5)
            if config.get("attention_bias" if "attn" in name else "mlp_bias"):
                tensors[p + name + ".bias"] = normal(rows, std=0.5)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[p + name + ".weight"] = 1 + normal(hidden, std=0.2)
    return tensors


def write_checkpoint(folder, spec, seed):
    config = {**BASE, **spec["config"]}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    write_tokenizer(folder, spec["bos"])
    generator = torch.Generator().manual_seed(seed)
    tensors = {k: v.to(spec["dtype"]) for k, v in random_weights(config, generator).items()}
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
    """Logits spread and attention is peaked, else wrong engines would pass."""
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
    return prompts


def greedy_text(model, tokenizer, prompt, count):
    """Tokens of greedy generation without any stop, and the smallest lead of a chosen token."""
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
    """Contexts with the text that greedy generation puts after them, where it encodes back."""
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
    """Requests whose stops fall in various ways into what the model is known to say."""
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


def record_harness(folder, greedy, pairs):
    lm = HFLM(pretrained=str(folder), dtype="float32", batch_size=1, device="cpu")
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


def main(out):
    torch.set_num_threads(1)
    for seed, (name, spec) in enumerate(MODELS.items()):
        folder = pathlib.Path(out) / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_checkpoint(folder, spec, 100 + seed)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                     attn_implementation="eager").eval()
        from transformers import PreTrainedTokenizerFast
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        rng = random.Random(seed)
        shape = assert_sensitive(model, [rng.randrange(2, VOCAB) for _ in range(200)])
        golden = {"logits": record_logits(model, rng, folder),
                  "greedy": record_greedy(model, tokenizer)}
        if name == "llama3":
            # A second end token, one that the model does say.
            said = golden["greedy"][1]["generated"][20]
            (folder / "generation_config.json").write_text(
                json.dumps({"bos_token_id": 0, "eos_token_id": [1, said]}, indent=1) + "\n")
        golden["harness"] = record_harness(folder, golden["greedy"],
                                           greedy_pairs(model, tokenizer, 2))
        (folder / "golden.json").write_text(json.dumps(golden, ensure_ascii=True) + "\n")
        print(name, "sigma %.2f, attention peak %.2f" % shape, len(golden["greedy"]), "greedy")


main(sys.argv[1])
