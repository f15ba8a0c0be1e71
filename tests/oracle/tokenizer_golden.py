"""Writes tests/golden/tokenizer: small tokenizers, and the reference's tokens of texts.

    python tests/oracle/tokenizer_golden.py tests/golden/tokenizer

  <kind>/tokenizer.json, tokenizer_config.json   the tokenizer
  <kind>/golden.jsonl       {"text", "ids", "special"?, "decoded"?, "skipped"?} by transformers'
                            fast tokenizer. If absent, the last three equal ids, text and decoded
  <kind>/decode.jsonl       {"ids", "decoded", "skipped"} of random ids
  <kind>/requests.jsonl     requests with their tokens, by lm_eval's own HFLM
  components.jsonl          single components: {"normalizer"|"pre_tokenizer"|"decoder", "in", "out"}

Needs tokenizers, transformers and lm_eval 0.4.13; nothing is downloaded.
"""

import json
import os
import random
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import tokenizers
from tokenizers import Tokenizer, models
from lm_eval.models.huggingface import HFLM
from lm_eval.models.utils import configure_pad_token
from transformers import AutoTokenizer

import tokenizer_kinds as kinds

TEXTS_PER_KIND = 80


def texts_of(seed):
    rng = random.Random(seed)
    fixed = ["", " ", "a", "\n", "Hello world", "  two  spaces ", "<s>", "<s> x", "x</s>", "\x00",
             "é", "e\u0301", "12345", "▁", "<unk>"] + kinds.SCRIPTS
    return fixed + [kinds.random_text(rng) for _ in range(TEXTS_PER_KIND - len(fixed))]


def write_lines(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def golden_of(tokenizer, text):
    line = {"text": text, "ids": tokenizer.encode(text, add_special_tokens=False)}
    special = tokenizer.encode(text)
    if special != line["ids"]:
        line["special"] = special
    decoded = tokenizer.decode(special, clean_up_tokenization_spaces=False)
    skipped = tokenizer.decode(special, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    if decoded != text:
        line["decoded"] = decoded
    if skipped != decoded:
        line["skipped"] = skipped
    return line


def random_decodings(tokenizer, rng):
    for _ in range(40):
        ids = [rng.randrange(len(tokenizer) + 2) for _ in range(rng.randrange(1, 12))]
        yield {"ids": ids, "decoded": tokenizer.decode(ids, clean_up_tokenization_spaces=False),
               "skipped": tokenizer.decode(ids, skip_special_tokens=True,
                                           clean_up_tokenization_spaces=False)}


class TokensOnly(HFLM):
    """The harness's Hugging Face backend without a model. Returns the tokens that it would have scored."""

    def __init__(self, tokenizer):
        self.tokenizer = configure_pad_token(tokenizer)
        self.backend = "causal"
        self.add_bos_token = None
        self.custom_prefix_token_id = None
        self.enable_thinking = None

    def _loglikelihood_tokens(self, requests, disable_tqdm=False, **kwargs):
        return [(context, continuation) for _, context, continuation in requests]


class Asked:
    def __init__(self, *args):
        self.args = args


def requests_of(tokenizer, rng):
    model = TokensOnly(tokenizer)
    pool = ["", "Q: 1+1=?\nA:", "Q:  ", "x\u00a0\u3000 \n", "a\x1f ", "<s>", "<s>Q: ", "<|endoftext|>x",
            "word", " ", "\n\n"] + [kinds.random_text(rng)[:60] for _ in range(12)]
    tails = [" B", "", "2", " ", "\n", "</s>", "<s> y", "<|endoftext|>", "é"]
    tails += [kinds.random_text(rng)[:30] for _ in range(12)]
    prefix = model.prefix_token_id
    for context in pool:
        rows = model.tok_batch_encode([context])[0].tolist()[0] if context else None
        if rows is not None:
            yield {"kind": "generate_until", "context": context,
                   "context_tokens": [int(token) for token in rows]}
        if prefix is not None:
            yield {"kind": "loglikelihood_rolling", "context": context,
                   "context_tokens": model.tok_encode(context)}
        for continuation in rng.sample(tails, 2):
            if prefix is None:
                continue
            line = {"kind": "loglikelihood", "context": context, "continuation": continuation}
            try:
                ((left, right),) = model.loglikelihood([Asked(context, continuation)], True)
                assert left and right, "the harness asserts both in _loglikelihood_tokens"
                line["context_tokens"], line["continuation_tokens"] = left, right
            except (AssertionError, IndexError):
                line["error"] = True
            yield line


NORMALIZERS = [
    {"type": "NFC"}, {"type": "NFD"}, {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Lowercase"},
    {"type": "StripAccents"}, {"type": "Strip", "strip_left": True, "strip_right": False},
    {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": "a"}, "content": "<>"},
    {"type": "Replace", "pattern": {"Regex": "x*"}, "content": "-"},
    {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}, {"type": "ByteLevel"},
    {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"},
                                         {"type": "Lowercase"}]},
]

BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


def pre_tokenizers():
    for behavior in BEHAVIORS:
        for invert in (False, True):
            for pattern in ({"String": " "}, {"Regex": r"\d"}, {"Regex": r"\p{L}+|"}):
                yield {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
        yield {"type": "Punctuation", "behavior": behavior}
    yield {"type": "Split", "pattern": {"Regex": kinds.LLAMA3}, "behavior": "Isolated", "invert": False}
    yield {"type": "Split", "pattern": {"Regex": kinds.QWEN2}, "behavior": "Removed", "invert": True}
    for scheme in ("first", "always", "never"):
        for split in (True, False):
            yield {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}
    for prefix in (True, False):
        for regex in (True, False):
            yield {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True,
                   "use_regex": regex}
        yield {"type": "Digits", "individual_digits": prefix}
    yield {"type": "Whitespace"}
    yield {"type": "WhitespaceSplit"}
    yield {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "Metaspace",
           "replacement": "_", "prepend_scheme": "first", "split": True}]}


DECODERS = [
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True},
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "Replace", "pattern": {"Regex": "[ab]+"}, "content": "é"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    {"type": "Strip", "content": "a", "start": 2, "stop": 1},
    {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                                      {"type": "ByteFallback"}, {"type": "Fuse"},
                                      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
]

TOKENS = ["▁Hello", "▁▁", "▁", "a", "aab", "abba", "xaay", "  x ", "<0xE2>", "<0x82>", "<0xAC>", "<0xFF>",
          "<0x4g>", "<0x+A>", "<0xa9>", "Ġhe", "Ã", "©", "é", "中", "\n", "xa"]


def components():
    def with_part(part, value):
        raw = json.loads(Tokenizer(models.BPE()).to_str())
        raw[part] = value
        return Tokenizer.from_str(json.dumps(raw))

    rng = random.Random(11)
    texts = [kinds.random_text(rng) for _ in range(60)]
    texts = sorted({text[:24] for text in texts if text}) + ["xax", " a b ", "12 a3", "a  b", "½ 3"]
    for normalizer in NORMALIZERS:
        tokenizer = with_part("normalizer", normalizer)
        for text in rng.sample(texts, 16):
            yield {"normalizer": normalizer, "in": text,
                   "out": tokenizer.normalizer.normalize_str(text)}
    for pre_tokenizer in pre_tokenizers():
        tokenizer = with_part("pre_tokenizer", pre_tokenizer)
        for text in rng.sample(texts, 7):
            pieces = [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
            yield {"pre_tokenizer": pre_tokenizer, "in": text, "out": pieces}
    for decoder in DECODERS:
        tokenizer = with_part("decoder", decoder)
        for _ in range(15):
            tokens = [rng.choice(TOKENS) for _ in range(rng.randrange(1, 7))]
            if decoder["type"] == "Strip":  # the library panics if a token is shorter than `stop`
                tokens = [token for token in tokens if len(token) > 3] or ["  long"]
            yield {"decoder": decoder, "in": tokens, "out": tokenizer.decoder.decode(tokens)}


def main(target):
    print("tokenizers", tokenizers.__version__)
    for seed, name in enumerate(kinds.KINDS):
        folder = kinds.write_kind(name, os.path.join(target, name))
        tokenizer = AutoTokenizer.from_pretrained(folder)
        rng = random.Random(100 + seed)
        write_lines(os.path.join(folder, "golden.jsonl"),
                    [golden_of(tokenizer, text) for text in texts_of(seed)])
        write_lines(os.path.join(folder, "decode.jsonl"), random_decodings(tokenizer, rng))
        write_lines(os.path.join(folder, "requests.jsonl"), requests_of(tokenizer, rng))
        print(name, type(tokenizer).__name__, len(tokenizer))
    write_lines(os.path.join(target, "components.jsonl"), components())


if __name__ == "__main__":
    main(sys.argv[1])
