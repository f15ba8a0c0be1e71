"""Folders of tokenizers in many layouts, under every class of transformers that evald serves.

    python tests/oracle/tokenizer_classes.py --golden tests/golden/tokenizer/classes
    python tests/oracle/tokenizer_classes.py --compare build/release/tests/tokenizer-dump [--layouts N] [--seed S]
    python tests/oracle/tokenizer_classes.py --mapping

The first form writes AutoTokenizer's tokens of texts:

  bytes.json, marks.json   two tokenizer.json; the layouts change parts of them
  layouts.jsonl            {"base", "parts", "files", "named", "lines"}: the parts are put into the base,
                           and the files are put beside it. A line is [text, ids, special, decoded, skipped].
                           In the last three, null means: equal to ids, to the text, to decoded. If ids is null,
                           the text cannot be encoded, since it needs an unknown token that is not in the vocab
  picks.jsonl              {"tokenizer_config", "config", "byte_level", "class"}

The second form compares N random layouts with the named program. The third prints the tables of
tokenizer/model_types.cc. Needs tokenizers 0.23 and transformers 5.23; nothing is downloaded.
"""

import argparse
import collections
import copy
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import transformers
from tokenizers import decoders, models, pre_tokenizers
from transformers import AutoTokenizer
from transformers.models.auto import tokenization_auto

import tokenizer_kinds as kinds

transformers.logging.set_verbosity_error()

SHOWN_MAX = 8
TEXTS_PER_LAYOUT = 9
GOLDEN_LAYOUTS = 420

CLASSES = ["LlamaTokenizer", "LlamaTokenizerFast", "GPT2Tokenizer", "GPT2TokenizerFast", "Qwen2Tokenizer",
           "Qwen2TokenizerFast", "GPTNeoXTokenizer", "GPTNeoXTokenizerFast", "GemmaTokenizer", "GemmaTokenizerFast",
           "PreTrainedTokenizerFast", "TokenizersBackend"]
MODEL_TYPES = ["llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "internlm2", "gpt_neox", "olmo2", "gemma2",
               "gemma3_text", None]

TEXTS = [
    "", " ", "  ", "\n", "a", " a", "  a", "Hello world", " Hello world", "Hello  world ", "<s>", "<s> Hello", "<s>Hello",
    "<s> <s>Hello</s> world", "</s>x", "x</s> y", "<|endoftext|>", "<|endoftext|> word<|endoftext|>\n", "<unk>x",
    "cafe\u0301 caf\u00e9", "\u212b\u00c5A\u030a", "\ufb01ne", "a<mask>b", "a <mask> b", "a  <TOOL>  b", "<tool>x", "x \u00c9x",
    "word", "aword", "a word b", "12345 6", "x\n\n  y\t z", "\u2581a \u2581", "\U0001f642\U0001f469\u200d\U0001f467 x",
    "\u4e2d\u6587 \u0639\u0631 \u0939\u093f", "\x00\x01\u0080", "Don't WE'LL they've", "    def f(x):\n        return x",
    "<|im_start|>user\nHi<|im_end|>\n", "[PAD] [X]", "<|padding|>", "<pad>", "<0x41>", "Ab AB ab", "one. Two! three?",
    "<s>user</s><s> assistant </s>", "e", "<image>",
]


def token(identity, content, **flags):
    return {"id": identity, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": False, **flags}


def bytes_base():
    """A byte-level tokenizer in GPT-2's manner. The special tokens come first."""
    tokenizer = kinds.byte_level(420, ["<s>", "</s>", "<|endoftext|>", "<unk>"],
                                 pre_tokenizers.ByteLevel(add_prefix_space=False))
    return json.loads(tokenizer.to_str())


def marks_base():
    """A tokenizer in SentencePiece's manner: bytes as a last resort, a mark for the space."""
    train = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    tokenizer = kinds.sentencepiece(520, train, None, decoders.Sequence(kinds.SPM_DECODER))
    raw = json.loads(tokenizer.to_str())
    raw["pre_tokenizer"]["split"] = False
    return raw


def template(before, after=(), pair=None):
    def special(name):
        return {"SpecialToken": {"id": name, "type_id": 0}}
    text = [{"Sequence": {"id": "A", "type_id": 0}}]
    names = {*before, *after}
    single = [special(name) for name in before] + text + [special(name) for name in after]
    return {"type": "TemplateProcessing", "single": single,
            "pair": pair or single + [{"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {name: {"id": name, "ids": [IDS[name]], "tokens": [name]} for name in sorted(names)}}


IDS = {"<s>": 0, "</s>": 1}  # ids in the base in use

BYTE_PART = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def normalizers(base):
    yield None
    yield {"type": "NFC"}
    yield {"type": "Lowercase"}
    yield {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Replace", "pattern": {"String": "x"}, "content": "yy"}]}
    if base == "marks":
        yield {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
                                                   {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}


def pre_tokenizer_parts(base):
    bare = dict(BYTE_PART, use_regex=False)
    if base == "bytes":
        yield BYTE_PART
        yield dict(BYTE_PART, add_prefix_space=True)
        yield {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTE_PART]}
        for pattern in (kinds.QWEN2, kinds.LLAMA3):
            yield {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}, bare]}
    else:
        for scheme in ("first", "always", "never"):
            yield {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": False}
        yield None


def post_processors():
    yield None
    yield template(["<s>"])
    yield template(["<s>"], ["</s>"])
    yield template([], ["</s>"])
    yield {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    yield {"type": "Sequence", "processors": [BYTE_PART, template(["<s>"])]}
    pair = [{"SpecialToken": {"id": "</s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
            {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]
    yield {"type": "Sequence", "processors": [template(["<s>"]), template([], ["</s>"], pair)]}


ADDED = [
    ("<mask>", {"lstrip": True, "special": True}), ("<TOOL>", {"normalized": True, "special": True}),
    ("<tool>", {"rstrip": True}), ("\u00c9x", {"normalized": True}), ("word", {"single_word": True}),
    ("<|im_start|>", {"special": True}), ("<|im_end|>", {"special": True}), ("e\u0301", {"normalized": True}),
    ("Ab", {"normalized": True, "special": True}), ("[X]", {"special": True, "rstrip": True, "lstrip": True}),
]


def added_tokens(raw, rng):
    """Added tokens: the base's own, some with other flags, and some after the vocabulary."""
    tokens = copy.deepcopy(raw["added_tokens"])
    for one in tokens:
        if rng.random() < 0.15:
            one.update(rng.choice([{"normalized": True}, {"rstrip": True}, {"special": False}, {"lstrip": True}]))
    if rng.random() < 0.15:
        del tokens[rng.randrange(len(tokens))]
    chosen = [item for item in ADDED if rng.random() < 0.4]
    if rng.random() < 0.5:
        rng.shuffle(chosen)
    next_id = len(raw["model"]["vocab"])
    for content, flags in chosen:
        tokens.append(token(next_id, content, **flags))
        next_id += 1
    return tokens


def as_config_token(content, rng):
    """A token in the spelling of tokenizer_config.json."""
    if rng.random() < 0.6:
        return content
    return {"__type": "AddedToken", "content": content, "lstrip": rng.random() < 0.3, "rstrip": rng.random() < 0.2,
            "normalized": rng.random() < 0.3, "single_word": False,
            **({"special": True} if rng.random() < 0.5 else {})}


def decoder_of(tokens, rng):
    whole = rng.random() < 0.8  # a list that lacks tokens may change the ids of others, which evald refuses
    kept = [one for one in tokens if whole or rng.random() < 0.8]
    return {str(one["id"]): {key: value for key, value in one.items() if key != "id"} for one in kept}


def tokenizer_config(tokens, rng):
    config = {}
    if rng.random() < 0.85:
        config["tokenizer_class"] = rng.choice(CLASSES)
    for key, values in (("legacy", [True, False, None]), ("add_prefix_space", [True, False]),
                        ("add_bos_token", [True, False]), ("add_eos_token", [True, False]),
                        ("clean_up_tokenization_spaces", [True, False])):
        if rng.random() < 0.5:
            config[key] = rng.choice(values)
    if config.get("legacy", 0) is None and rng.random() < 0.5:
        del config["legacy"]
    for key, contents in (("bos_token", ["<s>", "<|endoftext|>", "<mask>"]), ("eos_token", ["</s>", "<|endoftext|>", "<|im_end|>"]),
                          ("unk_token", ["<unk>", "<|endoftext|>"]), ("pad_token", ["<pad>", "</s>", "[PAD]", "<TOOL>"]),
                          ("sep_token", ["[X]", "<|im_start|>"]), ("mask_token", ["<mask>"]), ("image_token", ["<image>"])):
        draw = rng.random()
        if draw < (0.7 if key in ("bos_token", "eos_token") else 0.3):
            config[key] = as_config_token(rng.choice(contents), rng)
        elif draw < 0.8 and key in ("bos_token", "unk_token", "pad_token"):
            config[key] = None
    if rng.random() < 0.3:
        extra = [as_config_token(text, rng) for text in ("<|im_start|>", "<tool>", "[X]", "<image>") if rng.random() < 0.5]
        config[rng.choice(["additional_special_tokens", "extra_special_tokens"])] = extra
    elif rng.random() < 0.1:
        config["extra_special_tokens"] = {"video_token": "<tool>", "audio_token": "<image>"}
    if rng.random() < 0.35:
        config["added_tokens_decoder"] = decoder_of(tokens, rng)
    return config


def special_tokens_map(rng):
    found = {}
    for key, content in (("bos_token", "<s>"), ("eos_token", "</s>"), ("pad_token", "<pad>")):
        if rng.random() < 0.6:
            found[key] = content if rng.random() < 0.5 else {
                "content": content, "lstrip": rng.random() < 0.3, "normalized": rng.random() < 0.3, "rstrip": False,
                "single_word": False}
    if rng.random() < 0.2:
        found["additional_special_tokens"] = ["<|im_end|>", "[X]"]
    if rng.random() < 0.1:
        found["add_bos_token"] = True
    return found


def layout_of(bases, rng):
    """{"base", "parts", "files"} of a random folder."""
    base = rng.choice(list(bases))
    raw = bases[base]
    IDS.update({name: raw["model"]["vocab"][name] for name in IDS})
    parts = {"normalizer": rng.choice(list(normalizers(base))), "pre_tokenizer": rng.choice(list(pre_tokenizer_parts(base))),
             "post_processor": rng.choice(list(post_processors())), "added_tokens": added_tokens(raw, rng)}
    if rng.random() < 0.1:
        parts["padding"] = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                            "pad_type_id": 0, "pad_token": "[PAD]"}
    files = {}
    if rng.random() < 0.95:
        files["tokenizer_config.json"] = tokenizer_config(parts["added_tokens"], rng)
    if rng.random() < 0.9:
        model_type = rng.choice(MODEL_TYPES)
        files["config.json"] = {"model_type": model_type} if model_type else {}
        if rng.random() < 0.1:
            files["config.json"]["tokenizer_class"] = rng.choice(CLASSES)
    if rng.random() < 0.25:
        files["special_tokens_map.json"] = special_tokens_map(rng)
    if rng.random() < 0.1:
        vocab = raw["model"]["vocab"]
        files["added_tokens.json"] = {name: vocab[name] for name in ("<unk>", "</s>") if name in vocab}
    parts = {key: value for key, value in parts.items() if raw.get(key) != value}
    return {"base": base, "parts": parts, "files": files}


def write_layout(layout, bases, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    files = {"tokenizer.json": {**bases[layout["base"]], **layout["parts"]}, **layout["files"]}
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False)


def load(folder):
    """AutoTokenizer's tokenizer, or None if loading fails."""
    try:
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except Exception:  # pylint: disable=broad-except
        return None


def answer(tokenizer, text):
    ids = tokenizer.encode(text, add_special_tokens=False)
    special = tokenizer.encode(text)
    return {"ids": ids, "special": special, "decoded": tokenizer.decode(special),
            "skipped": tokenizer.decode(special, skip_special_tokens=True)}


def answer_or_none(tokenizer, text):
    """None if the text needs an unknown token that is not in the vocab."""
    try:
        return answer(tokenizer, text)
    except Exception as error:  # pylint: disable=broad-except
        if "Unk token" not in str(error):
            raise
        return None


def golden_line(tokenizer, text):
    found = answer_or_none(tokenizer, text)
    if found is None:
        return [text, None, None, None, None]
    return [text, found["ids"], None if found["special"] == found["ids"] else found["special"],
            None if found["decoded"] == text else found["decoded"],
            None if found["skipped"] == found["decoded"] else found["skipped"]]


def plain_layouts(bases):
    """Every class with its options over the usual files. These come before random folders."""
    for base, raw in bases.items():
        IDS.update({name: raw["model"]["vocab"][name] for name in IDS})
        for name in [*CLASSES[::2], None]:
            for options in ({}, {"legacy": True}, {"legacy": False}, {"add_bos_token": True}, {"add_bos_token": False},
                            {"add_prefix_space": True}, {"add_prefix_space": False}):
                config = {"bos_token": "<s>", "eos_token": "</s>", **options}
                if name:
                    config["tokenizer_class"] = name
                yield {"base": base, "parts": {"post_processor": template(["<s>"])},
                       "files": {"tokenizer_config.json": config}}
        for model_type in MODEL_TYPES:
            yield {"base": base, "parts": {}, "files": {"config.json": {"model_type": model_type}}}


# Names that transformers does not know, and one that evald does not serve. None and "" are further, different cases.
ODD_NAMES = ["", "Own", "InternLM2TokenizerFast", "XverseTokenizer", "AlbertTokenizerFast", "DistilBertTokenizer"]


def odd_files():
    """The parts of tokenizer_config.json and config.json that name classes, with odd names."""
    for name in ODD_NAMES:
        yield {"tokenizer_class": name}, {}
        yield {}, {"tokenizer_class": name}
        yield {"tokenizer_class": name}, {"tokenizer_class": "LlamaTokenizer"}
        yield {"tokenizer_class": name}, {"tokenizer_class": "Qwen2TokenizerFast"}
        yield {"tokenizer_class": name}, {"tokenizer_class": ""}
    yield {"tokenizer_class": None}, {"tokenizer_class": ""}


def odd_picks():
    with tempfile.TemporaryDirectory() as folder:
        for base, raw in (("bytes", bytes_base()), ("marks", marks_base())):
            raw["model"].update(vocab={"a": 0}, merges=[])
            raw.update(added_tokens=[], post_processor=None)
            for model_type, own in itertools.product([*MODEL_TYPES, "ministral", "made_up"], (False, True)):
                for config, model in odd_files():
                    if own:
                        config = {**config, "auto_map": {"AutoTokenizer": ["own.Slow", "own.Fast"]}}
                    if model_type:
                        model = {**model, "model_type": model_type}
                    files = {"tokenizer_config.json": config, "config.json": model}
                    write_layout({"base": base, "parts": {}, "files": files}, {base: raw}, folder)
                    tokenizer = load(folder)
                    yield {"tokenizer_config": config, "config": model, "byte_level": base == "bytes",
                           "class": type(tokenizer).__name__ if tokenizer is not None else None}


def picks():
    """The class that AutoTokenizer picks. Classes are distinguished by their names only."""
    with tempfile.TemporaryDirectory() as folder:
        for base in ("bytes", "marks"):
            raw = {"bytes": bytes_base, "marks": marks_base}[base]()
            raw["model"].update(vocab={"a": 0}, merges=[])
            raw.update(added_tokens=[], post_processor=None)
            for model_type in [*MODEL_TYPES, "mixtral", "phi3", "gemma", "albert", "falcon", "made_up"]:
                for name in [*CLASSES, "PreTrainedTokenizer", "BloomTokenizerFast", None]:
                    for own in (False, True):
                        for where in ("tokenizer_config", "config"):
                            config = {"auto_map": {"AutoTokenizer": ["own.Slow", "own.Fast"]}} if own else {}
                            model = {"model_type": model_type} if model_type else {}
                            if name:
                                (config if where == "tokenizer_config" else model)["tokenizer_class"] = name
                            layout = {"base": base, "parts": {}, "files": {"tokenizer_config.json": config,
                                                                         "config.json": model}}
                            write_layout(layout, {base: raw}, folder)
                            tokenizer = load(folder)
                            if tokenizer is None and name == "PreTrainedTokenizer":
                                continue  # its from_pretrained fails if config.json names it; evald reads the file
                            yield {"tokenizer_config": config, "config": model, "byte_level": base == "bytes",
                                   "class": type(tokenizer).__name__ if tokenizer is not None else None}


def write_lines(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def golden(target):
    os.makedirs(target, exist_ok=True)
    bases = {"bytes": bytes_base(), "marks": marks_base()}
    for name, raw in bases.items():
        with open(os.path.join(target, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump(raw, file, ensure_ascii=False, separators=(",", ":"))
    rng = random.Random(23)
    layouts = list(plain_layouts(bases))
    layouts += [layout_of(bases, rng) for _ in range(GOLDEN_LAYOUTS - len(layouts))]
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for layout in layouts:
            write_layout(layout, bases, folder)
            tokenizer = load(folder)
            if tokenizer is None:
                continue
            texts = rng.sample(TEXTS, TEXTS_PER_LAYOUT)
            lines.append({**layout, "named": tokenizer.special_tokens_map,
                          "lines": [golden_line(tokenizer, text) for text in texts]})
    write_lines(os.path.join(target, "layouts.jsonl"), lines)
    write_lines(os.path.join(target, "picks.jsonl"), itertools.chain(picks(), odd_picks()))
    print(f"transformers {transformers.__version__}: {len(lines)} of {len(layouts)} layouts")


def random_texts(rng):
    texts = rng.sample(TEXTS, 16)
    for _ in range(24):
        pieces = [rng.choice(TEXTS) if rng.random() < 0.5 else kinds.random_text(rng)[:40] for _ in range(rng.randrange(1, 5))]
        texts.append(rng.choice(["", " "]).join(pieces))
    return texts


def compare(program, count, seed):
    """Returns the number of layouts that differ or that evald refuses."""
    bases = {"bytes": bytes_base(), "marks": marks_base()}
    rng = random.Random(seed)
    tally = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(count):
            layout = layout_of(bases, rng)
            write_layout(layout, bases, folder)
            tokenizer = load(folder)
            texts = random_texts(rng)
            if tokenizer is not None:
                texts = [text for text in texts if answer_or_none(tokenizer, text) is not None]
            lines = "".join(json.dumps(text) + "\n" for text in texts)
            done = subprocess.run([program, folder], input=lines.encode(), capture_output=True, check=False)
            found = [json.loads(line) for line in done.stdout.decode().split("\n") if line]
            if tokenizer is None:
                tally["transformers fails, evald " + ("fails" if done.returncode else "does not")] += 1
                continue
            tally[type(tokenizer).__name__] += 1
            if done.returncode:
                known = [why for why in ("but the tokenizers library would give it", "the same text once normalized")
                         if why in done.stderr.decode()]
                tally[f"refused: {known[0]}" if known else "refused"] += 1
                if not known:
                    print(f"refused: {json.dumps(layout)[:1500]}\n  {done.stderr.decode().strip()}", flush=True)
                continue
            tally["lines"] += len(texts)
            bad = [(text, answer(tokenizer, text), got) for text, got in zip(texts, found, strict=True)
                   if answer(tokenizer, text) != got]
            tally["lines that differ"] += len(bad)
            if bad:
                tally["layouts that differ"] += 1
                if tally["layouts that differ"] <= SHOWN_MAX:
                    print(f"{type(tokenizer).__name__} {json.dumps(layout)}\n  {bad[0]}", flush=True)
    print(dict(tally))
    return tally["layouts that differ"] + tally["refused"]


def wrapped(words, width):
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] += word + " "
    lines[-1] = lines[-1].rstrip()
    return lines


def mapping():
    """Prints the rows of kRegistered, of kOverriding and of kFurther."""
    types = collections.defaultdict(list)
    for model_type, name in tokenization_auto.TOKENIZER_MAPPING_NAMES.items():
        if name:
            types[name.removesuffix("Fast")].append(model_type)
    for name in sorted(types):
        row = f'    {{"{name}", "{" ".join(sorted(types[name]))}"}},'
        if len(row) <= 98:
            print(row)
            continue
        print(f'    {{"{name}",')
        print("\n".join(f'     "{line}"' for line in wrapped(sorted(types[name]), 86)) + "},")
    overriding = sorted(tokenization_auto.MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS)
    print("\n".join(f'    "{line}"' for line in wrapped(overriding, 88)) + ";")
    further = {name.removesuffix("Fast") for name in dir(transformers)
               if re.search("(Tokenizer(Fast|Legacy|Base)?|Backend)$", name)
               and tokenization_auto.tokenizer_class_from_name(name) is not None}
    print("\n".join(f'    "{line}"' for line in wrapped(sorted(further - set(types)), 88)) + ";")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--golden")
    parser.add_argument("--compare")
    parser.add_argument("--layouts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mapping", action="store_true")
    args = parser.parse_args()
    if args.mapping:
        mapping()
    if args.golden:
        golden(args.golden)
    if args.compare:
        sys.exit(1 if compare(args.compare, args.layouts, args.seed) else 0)


if __name__ == "__main__":
    main()
