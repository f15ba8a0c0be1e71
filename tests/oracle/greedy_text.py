"""Greedy continuations by transformers in fp32 on the CPU, as an oracle for engines.

usage: greedy_text.py CHECKPOINT MAX_NEW_TOKENS PROMPTS.json

PROMPTS.json is a list of strings. Prints a JSON list of the continuations, special tokens left out.
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main() -> None:
    checkpoint, max_new_tokens, prompts = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    texts = []
    with open(prompts, encoding="utf-8") as file:
        for prompt in json.load(file):
            inputs = tokenizer(prompt, return_tensors="pt")
            with torch.no_grad():
                output = model.generate(
                    input_ids=inputs["input_ids"],
                    attention_mask=inputs["attention_mask"],
                    max_new_tokens=max_new_tokens,
                    do_sample=False,
                    pad_token_id=tokenizer.pad_token_id or 0,
                )
            new_tokens = output[0][inputs["input_ids"].shape[1] :]
            texts.append(tokenizer.decode(new_tokens, skip_special_tokens=True))
    json.dump(texts, sys.stdout)


if __name__ == "__main__":
    main()
