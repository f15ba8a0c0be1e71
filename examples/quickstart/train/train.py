"""Trains the example model from scratch and saves checkpoints in Hugging Face layout.

    python train.py --out WORK

The training text comes from suites.py and the seed; nothing is downloaded. See README.md.
"""

import argparse
import json
import pathlib
import time

import numpy
import tokenizers
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import suites
from muon import Muon

END = "<|endoftext|>"
# One digit a token, words with their leading space: the split used by Qwen2's tokenizer.
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def make_tokenizer(texts: list) -> PreTrainedTokenizerFast:
    core = tokenizers.Tokenizer(tokenizers.models.BPE())
    core.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERN), "isolated"),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1024,
        special_tokens=[END],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token=END, pad_token=END, model_max_length=2048,
        clean_up_tokenization_spaces=False,
    )


def make_model(vocabulary: int, end: int) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=192,
            intermediate_size=512,
            num_hidden_layers=5,
            num_attention_heads=6,
            num_key_value_heads=2,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=end,
            pad_token_id=end,
        )
    )


def pack(documents, tokenizer, row_length: int, rows: int):
    """Documents behind one another in rows of row_length + 1 tokens, an END after each. A row starts
    with the start of a document; the document that does not fit is cut. Returns tokens and their
    weights in the loss, both (rows, row_length + 1)."""
    tokens = numpy.full((rows, row_length + 1), tokenizer.eos_token_id, numpy.int64)
    weights = numpy.zeros((rows, row_length + 1), numpy.float32)
    segments = [segment for document in documents for segment in [*document, (END, 1.0)]]
    encodings = tokenizer.backend_tokenizer.encode_batch([text for text, _ in segments])
    row, used = 0, 0
    for (text, weight), encoding in zip(segments, encodings):
        ids = encoding.ids[: row_length + 1 - used]
        tokens[row, used : used + len(ids)] = ids
        weights[row, used : used + len(ids)] = weight
        used += len(ids)
        if used == row_length + 1 and text == END:
            row, used = row + 1, 0
            if row == rows:
                return torch.from_numpy(tokens), torch.from_numpy(weights)
    raise ValueError(f"{row} of {rows} rows were filled: more documents are needed")


def make_optimizers(model, rate: float) -> list:
    """Muon for the matrices, AdamW for embeddings and norms."""
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    return [
        Muon(matrices, lr=rate, weight_decay=0.05),
        torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def rate_at(step: int, steps: int) -> float:
    """Share of the full rate: 2 % warm-up, full until 60 %, then a straight line to 2 %."""
    warm, fall = 0.02 * steps, 0.6 * steps
    return min(1.0, (step + 1) / warm, max(0.02, (steps - step) / (steps - fall)))


def save(model, tokenizer, folder: pathlib.Path) -> None:
    copy = LlamaForCausalLM(model.config).to(torch.bfloat16)
    copy.load_state_dict(model.state_dict())
    copy.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def train(arguments) -> None:
    torch.manual_seed(arguments.seed)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.set_num_threads(arguments.threads)
    rows = arguments.steps * arguments.batch
    documents = list(suites.training_documents(arguments.seed, rows * arguments.row_length // 60))
    texts = [document.text() for document in documents]
    suites.assert_disjoint(suites.make_suites(arguments.seed), texts)
    tokenizer = make_tokenizer(texts[:20000])
    tokens, weights = pack(documents, tokenizer, arguments.row_length, rows)
    model = make_model(len(tokenizer), tokenizer.eos_token_id)
    print(f"{model.num_parameters()} parameters, {tokens.numel()} tokens", flush=True)
    optimizers = make_optimizers(model, arguments.rate)
    saved = {int(s) for s in arguments.save.split(",")} | {arguments.steps}
    started = time.time()
    for step in range(arguments.steps):
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = arguments.rate * rate_at(step, arguments.steps)
        part = slice(step * arguments.batch, (step + 1) * arguments.batch)
        x, y, w = tokens[part, :-1], tokens[part, 1:], weights[part, 1:]
        logits = model(input_ids=x, use_cache=False).logits
        losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none")
        losses = losses.view_as(w)
        ((losses * w).sum() / w.sum()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if (step + 1) % 10 == 0:
            by_weight = {f"{v:.1f}": round(losses[w == v].mean().item(), 3) for v in w.unique().tolist() if v}
            print(json.dumps({"step": step + 1, "s": round(time.time() - started), "loss": by_weight}), flush=True)
        if step + 1 in saved:
            save(model, tokenizer, arguments.out / f"step-{step + 1:05d}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the checkpoints")
    parser.add_argument("--seed", type=int, default=suites.SEED)
    parser.add_argument("--steps", type=int, default=1300)
    parser.add_argument("--batch", type=int, default=8, help="rows a step")
    parser.add_argument("--row-length", type=int, default=320, help="tokens a row")
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--save", default="100,350,600,1200", help="steps after which to save, besides the last")
    parser.add_argument("--threads", type=int, default=1)
    train(parser.parse_args())
