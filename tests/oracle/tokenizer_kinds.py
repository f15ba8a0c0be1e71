"""Tokenizers of several families, trained with the tokenizers library on text made here, and a
generator of awkward text. Used by tokenizer_golden.py and tokenizer_fuzz.py.

Needs the packages tokenizers and transformers.
"""

import json
import os
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

SCRIPTS = [
    "The quick brown fox jumps over the lazy dog, doesn't it? They've said we'll see. I'M HERE",
    "def solve(n: int) -> list[int]:\n    return [i ** 2 for i in range(n) if i % 3 == 0]\n\n\n",
    "for (int i = 0; i < 10; ++i) {\n\t\tstd::cout << i << '\\n';\r\n}\t// done\n",
    "Natürlich hört Straße größer als früher auf, façade, naïve, Ångström, jalapeño, İstanbul",
    "Привет, как дела? Всё хорошо, спасибо. Съешь ещё этих мягких французских булок",
    "中文分词测试：今天天气很好。東京都に住んでいます。カタカナ ひらがな 한국어 문장입니다",
    "مرحبا بالعالم، كيف حالك؟ שלום עולם हिन्दी में लिखा हुआ वाक्य ภาษาไทยไม่มีช่องว่าง",
    "Janet’s ducks lay 16 eggs per day. 3,141.59 + 2.718 = 5.860; 2024-01-31 1234567 ½ ² ₃ Ⅷ ٣٤٥ १२",
    "🙂 👩‍👩‍👧‍👦 🇩🇪 ❤️ ✅ ① Ⓐ ﬁ ﬂ Å é ṩ \u1e9b\u0323 가 \u1100\u1161 ｆｕｌｌ",
    "A)  B)   C)    D)     \u00a0nbsp\u3000ideographic \u2028ls \u2029ps \u200bzw\u200djoin\ufeff",
    "$\\frac{a}{b}$ <tag attr=\"x\">&amp;</tag> https://example.org/a?b=c#d user@example.org __init__",
]

PIECES = [
    " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "▁", "Ġ", "'s", "'LL", "’s", "a", "Z", "é", "e\u0301",
    "ß", "İ", "Σ", "Ω", "中", "文", "あ", "한", "\u1100\u1161\u11a8", "ع", "א", "ह", "ि", "ก", "\u0300",
    "\u0323\u0307", "0", "9", "123", "12345", "½", "²", "Ⅷ", "٣", "१", ".", ",", "!?", "—", "«", "_", "-",
    "$", "+", "<", ">", "{", "\\", "\"", "`", "\u200b", "\u200d", "\ufeff", "\u00a0", "\u3000", "\u2028",
    "\u0085", "\x00", "\x01", "\x1c", "\x1f", "\x7f", "\u0080", "\ufffd", "\uffff", "\U0010ffff",
    "\ue000", "🙂", "👩‍👧", "🇩🇪", "❤️", "𝔘", "𝟘", "ﬁ", "ﷺ", "Å", "㍿", "<s>", "</s>", "<unk>",
    "<|endoftext|>", "<|im_start|>", "<mask>", "<tool>", "[X]", "<0x41>", "<0x0A>", "word", "Word",
    "hello", " world", "def ", "return", "==", "://",
]


def random_text(rng):
    """A text of a few dozen characters: known sentences, awkward pieces, random code points."""
    parts = []
    for _ in range(rng.choice([1, 2, 3, 5, 8, 13])):
        kind = rng.random()
        if kind < 0.45:
            parts.append(rng.choice(PIECES))
        elif kind < 0.75:
            sentence = rng.choice(SCRIPTS)
            start = rng.randrange(len(sentence))
            parts.append(sentence[start:start + rng.randrange(1, 25)])
        elif kind < 0.85:
            parts.append(rng.choice([" ", "\n", "\t", "a", "=", "0", "é"]) * rng.randrange(1, 12))
        elif kind < 0.95:
            parts.append(chr(rng.choice([0x20, 0xA0, 0x370, 0x900, 0x2000, 0x3040, 0x4E00, 0x1F300])
                             + rng.randrange(0x90)))
        else:
            parts.append(random_character(rng))
    return "".join(parts)


def random_character(rng):
    while True:
        code = rng.randrange(0x110000)
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def corpus():
    rng = random.Random(5)
    for _ in range(40):
        yield from SCRIPTS
    for _ in range(400):
        words = " ".join(rng.choice(SCRIPTS).split()[:6])
        yield words


def trained(model, vocab_size, special, pre=None, norm=None, alphabet=(), **kwargs):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre
    tokenizer.normalizer = norm
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=list(special),
                                  initial_alphabet=list(alphabet), show_progress=False, **kwargs)
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def byte_level(vocab_size, special, pre, norm=None, model=None):
    tokenizer = trained(model or models.BPE(), vocab_size, special, pre, norm,
                        pre_tokenizers.ByteLevel.alphabet())
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def gpt2():
    tokenizer = byte_level(700, ["<|endoftext|>"], pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer, {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>",
                       "unk_token": "<|endoftext|>"}


def llama3():
    pre = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = byte_level(900, [], pre, model=models.BPE(ignore_merges=True))
    tokenizer.add_special_tokens(["<s>", "</s>", "<|im_start|>"])
    bos = tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing("<s> $A", "<s> $A <s> $B", [("<s>", bos)])])
    return tokenizer, {"bos_token": "<s>", "eos_token": "</s>"}


def qwen2():
    pre = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2), "isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = byte_level(600, [], pre, normalizers.NFC())
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>"])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("hello", normalized=True)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer, {"bos_token": None, "eos_token": "<|endoftext|>", "add_bos_token": False}


def sentencepiece(vocab_size, pre, norm, decoder):
    model = models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = trained(model, vocab_size, special, pre, norm, limit_alphabet=120)
    raw = json.loads(tokenizer.to_str())
    raw["added_tokens"] = raw["added_tokens"][:3]
    raw["model"]["byte_fallback"] = True
    raw["model"]["fuse_unk"] = True
    tokenizer = Tokenizer.from_str(json.dumps(raw))
    tokenizer.decoder = decoder
    tokenizer.post_processor = processors.TemplateProcessing(
        "<s> $A", "<s> $A <s> $B", [("<s>", 1)])
    return tokenizer


SPM_DECODER = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
               decoders.Strip(" ", 1, 0)]
SPM_CONFIG = {"bos_token": {"content": "<s>", "lstrip": False, "normalized": False, "rstrip": False,
                            "single_word": False, "__type": "AddedToken"},
              "eos_token": "</s>", "unk_token": "<unk>"}


def llama2_legacy():
    norm = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    pre = pre_tokenizers.Metaspace(prepend_scheme="never", split=True)  # for the training only
    tokenizer = sentencepiece(800, pre, norm, decoders.Sequence(SPM_DECODER))
    tokenizer.pre_tokenizer = None
    return tokenizer, SPM_CONFIG


def llama2_metaspace():
    train = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    tokenizer = sentencepiece(800, train, None, decoders.Sequence(SPM_DECODER))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return tokenizer, dict(SPM_CONFIG, add_bos_token=True, add_eos_token=True)


def metaspace_digits():
    norm = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r" {2,}"), " ")])
    pre = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(prepend_scheme="always"),
                                   pre_tokenizers.Digits(individual_digits=True)])
    tokenizer = sentencepiece(700, pre, norm, decoders.Metaspace())
    return tokenizer, SPM_CONFIG


def neox():
    """Runs of spaces as added tokens, and added tokens with every flag."""
    tokenizer = byte_level(500, ["<|endoftext|>"], pre_tokenizers.ByteLevel(add_prefix_space=True),
                           normalizers.NFC())
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in (8, 4, 3, 2)])
    tokenizer.add_tokens([AddedToken("é", normalized=True)])
    tokenizer.add_special_tokens([
        AddedToken("<mask>", lstrip=True, special=True), AddedToken("<tool>", rstrip=True, special=True),
        AddedToken("<s>", lstrip=True, rstrip=True, special=True),
        AddedToken("word", single_word=True, special=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        "$A <|endoftext|>", None, [("<|endoftext|>", 0)])
    return tokenizer, {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}


def suffixed():
    """Prefix and suffix marks in the model, unknown tokens, many pre-tokenizers."""
    model = models.BPE(unk_token="<unk>", continuing_subword_prefix="##", end_of_word_suffix="</w>")
    norm = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(),
                                 normalizers.Strip()])
    pre = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("isolated"),
                                   pre_tokenizers.Digits(individual_digits=False)])
    tokenizer = trained(model, 500, ["<unk>", "<s>"], pre, norm, limit_alphabet=80,
                        continuing_subword_prefix="##", end_of_word_suffix="</w>")
    return tokenizer, {"unk_token": "<unk>", "pad_token": "[X]"}


def fused():
    """Consecutive unknown characters become one token; words and signs are split apart; there is no decoder."""
    model = models.BPE(unk_token="<unk>", fuse_unk=True)
    tokenizer = trained(model, 400, ["<unk>"], pre_tokenizers.Whitespace(), normalizers.NFKD(),
                        limit_alphabet=60)
    raw = json.loads(tokenizer.to_str())
    raw["model"]["fuse_unk"] = True
    return Tokenizer.from_str(json.dumps(raw)), {"unk_token": "<unk>", "eos_token": "<unk>"}


TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
    r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def split(pattern, behavior="isolated"):
    return pre_tokenizers.Split(Regex(pattern), behavior)


def mistral_tekken():
    """Like Mistral since its third tokenizer: case decides where a word ends."""
    tokenizer = byte_level(800, [], pre_tokenizers.Sequence([split(TEKKEN), BYTES]),
                           model=models.BPE(ignore_merges=True))
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>", "[INST]", "[/INST]"])
    return tokenizer, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def qwen3():
    """Like Qwen 2.5 and 3: added tokens that are not special."""
    tokenizer = byte_level(650, [], pre_tokenizers.Sequence([split(QWEN2), BYTES]), normalizers.NFC())
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken(text, normalized=False)
                          for text in ("<think>", "</think>", "<tool_call>", "</tool_call>")])
    return tokenizer, {"bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}


def olmo2():
    tokenizer = byte_level(750, ["<|endoftext|>"], pre_tokenizers.Sequence([split(LLAMA3), BYTES]))
    tokenizer.add_tokens([AddedToken("|||IP_ADDRESS|||", normalized=False)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer, {"bos_token": None, "eos_token": "<|endoftext|>"}


def internlm2():
    """SentencePiece's spaces, a dummy space in front, and chat tokens after the vocabulary."""
    norm = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    pre = pre_tokenizers.Metaspace(prepend_scheme="never", split=True)  # for the training only
    tokenizer = sentencepiece(750, pre, norm, decoders.Sequence(SPM_DECODER))
    tokenizer.pre_tokenizer = None
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True)
                                  for text in ("<|im_start|>", "<|im_end|>", "<|plugin|>")])
    return tokenizer, SPM_CONFIG


def gemma():
    """A normalizer replaces spaces, and the text is split after them."""
    tokenizer = sentencepiece(700, pre_tokenizers.Split(" ", "merged_with_previous"),
                              normalizers.Replace(" ", "▁"),
                              decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                                 decoders.Fuse()]))
    return tokenizer, SPM_CONFIG


def deepseek():
    pre = pre_tokenizers.Sequence([split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(DEEPSEEK), BYTES])
    tokenizer = byte_level(800, ["<s>", "</s>"], pre)
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s> $B", [("<s>", 0)])
    return tokenizer, {"bos_token": "<s>", "eos_token": "</s>"}


def deepseek_coder():
    pre = pre_tokenizers.Sequence([
        split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"),
        pre_tokenizers.Digits(individual_digits=True), BYTES])
    tokenizer = byte_level(700, [], pre, normalizers.Sequence([]))
    tokenizer.add_special_tokens(["<s>", "</s>"])
    return tokenizer, {"bos_token": "<s>", "eos_token": "</s>"}


def falcon():
    """Pre-tokenizers after ByteLevel, which see its alphabet."""
    pre = pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(individual_digits=False), split("[0-9][0-9][0-9]")])
    return byte_level(600, [">>TITLE<<", "<|endoftext|>"], pre), {"eos_token": "<|endoftext|>"}


def starcoder():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return byte_level(600, ["<|endoftext|>"], pre), {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}


def bloom():
    pre = pre_tokenizers.Sequence([split(r" ?[^(\s|[.,!?…。，、।۔،])]+"), BYTES])
    return byte_level(600, ["<unk>", "<s>", "</s>"], pre), {"bos_token": "<s>", "eos_token": "</s>"}


def punctuated():
    """Every behaviour of a splitting pre-tokenizer, one after another."""
    pre = pre_tokenizers.Sequence([
        split(r"\n+", "removed"), pre_tokenizers.Punctuation("merged_with_previous"),
        split("[aeiou]", "merged_with_next"), pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.Split(" ", "isolated"), pre_tokenizers.Punctuation("merged_with_next"),
        pre_tokenizers.Digits(individual_digits=False),
        pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)])
    norm = normalizers.Sequence([normalizers.Lowercase(), normalizers.Strip(left=True, right=False)])
    return byte_level(600, ["<s>"], pre, norm), {"bos_token": "<s>", "eos_token": "<s>"}

KINDS = {kind.__name__: kind for kind in
         (gpt2, llama3, qwen2, llama2_legacy, llama2_metaspace, metaspace_digits, neox, suffixed, fused,
          mistral_tekken, qwen3, olmo2, internlm2, gemma, deepseek, deepseek_coder, falcon, starcoder, bloom,
          punctuated)}

# In these files merges have the older spelling, as strings.
OLD_MERGES = {"gpt2", "neox"}


def write_kind(name, folder):
    """Writes tokenizer.json and tokenizer_config.json of a kind. Returns the folder."""
    tokenizer, config = KINDS[name]()
    raw = json.loads(tokenizer.to_str())
    if name in OLD_MERGES:
        raw["model"]["merges"] = [" ".join(pair) for pair in raw["model"]["merges"]]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as file:
        json.dump(raw, file, ensure_ascii=False, separators=(",", ":"))
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump(dict(config, tokenizer_class="PreTrainedTokenizerFast",
                       clean_up_tokenization_spaces=False), file, indent=1)
    return folder
