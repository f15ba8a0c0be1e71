"""Expressions that split text, with (?i) and letters beyond ASCII.

    python tests/oracle/tokenizer_patterns.py --golden tests/golden/tokenizer/patterns.jsonl
    python tests/oracle/tokenizer_patterns.py --compare build/release/tests/tokenizer-dump

The first form writes {"pattern", "in", "out"}: the pieces that the tokenizers library (0.23) makes. The second form
compares every expression on every letter that has another case, and on characters near them. Exit status 1 if some
differ.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

PATTERNS = [
    r"\w+", r"[\w]+", r"\W+", r"[^\w]+", r"(?i)\w+", r"(?i)[\w]+", r"\d+", r"(?i)\p{Lu}+", r"(?i)[\p{Lu}]+", r"(?i)[^\p{Lu}]+",
    r"(?i)\P{Lu}+", r"(?i)\p{Ll}", r"(?i)[\p{Ll}]", r"(?i)\p{L}", r"(?i)[\p{L}\p{M}]+", r"(?i)[^\p{L}\p{N}]",
    r"(?i:[\p{Lu}\p{Lt}])x?", r"a(?i)[\p{Lu}]", r"a(?i)\p{Lu}|[\p{Ll}]", r"(?:a(?i)\p{Lu})|[\p{Ll}]", r"(?i)[à-ÿ]+",
    r"(?i)[^à-ÿ]+", r"(?i)[α-ω]", r"(?i)ß", r"(?i)[ß]", r"(?i)straße", r"(?i)[ɐ-ʯ]", r"(?i)[\x{10D50}-\x{10D65}]",
    "(?i)\\x{A7CB}+", r"(?i)\x{264}", "(?i)\ua7cb\u0264\ua7dc|\u1c89|\u0264+", r"(?i)[^\x{264}x]", r"(?i)[^\x{A7CB}]",
    r"(?i)[\p{L}&&[^\x{A7CB}]]", r"(?i)[]a\p{Lu}]", r"(?i)x(?-i:[\p{Lu}])|(?i:[^\p{Ll}\s])+", "(?x)(?i) [\\p{Lu} #] # \\p{Lu} [",
    r"(?i)(?#[)\p{Lu}", r"(?i)\中|[\中\p{Lu}]", r"(?i:'s|'t)|\p{L}+", r"(?i)[а-я]+|[A-Z]", r"(?i)[ﬁ]", r"(?i)[a-zſK]+",
    r"(?i)[\p{Lu}&&[^A-Z]]+", r"(?i)(?-i:\p{Lu})[\p{Ll}]", r"(?i)\p{Latin}", r"(?i)[\p{Cyrillic}]", r"(?i)[ა-ჿ]", r"(?i)[Ა-Ჿ]+",
    r"(?i)[Ꭰ-Ᏽ]", r"(?i)[ꭰ-ꮿ]", r"(?i)ﬅ", r"(?i)[ﬆ]", r"(?i)ΐ", r"(?i)[ΰ]", r"(?i)[^k]", r"(?i)[k-s]+",
]

SENTENCES = ["straße STRASSE ﬁ fi ss SS ſs ﬅ ﬆ st ST ŉ ʼn", " ΐ ΐ ΰ ΰ ᾼ αι ΑΙ İ i̇ I ı i", "Ა ა Ꭰ ꭰ K k Å å ſ s Kelvin",
             "\ua7cb\u0264 \ua7cc\ua7cd \ua7dc\u019b \u1c89\u1c8a \U00010d50\U00010d70", "a²1 x½ ³¹¼¾ º ª µ", "Don'T It'S ХОРОШО хорошо ÀÉ àé"]


def letters():
    """Letters with another case, Latin-1, and letters that gained another case with Unicode 15 or 16."""
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        c = chr(code)
        later = code in (0x264, 0x19B) or any(low <= code <= high for low, high in (
            (0x1C80, 0x1C8F), (0xA7C0, 0xA7DF), (0x10D40, 0x10D90), (0x1DF20, 0x1DF2B)))
        if code < 0x250 or later or c.upper() != c or c.lower() != c or c.casefold() != c:
            yield c


def pieces(pattern, text):
    return [piece for piece, _ in pre_tokenizers.Split(Regex(pattern), "isolated").pre_tokenize_str(text)]


def golden(path):
    rng = random.Random(3)
    every = list(letters())
    with open(path, "w", encoding="utf-8") as file:
        for pattern in PATTERNS:
            texts = [rng.choice(SENTENCES), SENTENCES[3], " ".join(f"a{c}1" for c in rng.sample(every, 8)),
                     "".join(rng.sample(every, 8))]
            for text in texts:
                file.write(json.dumps({"pattern": pattern, "in": text, "out": pieces(pattern, text)}, ensure_ascii=False,
                                      separators=(",", ":")) + "\n")


def compare(program):
    differ = 0
    lines = [f"a{c}1 x" for c in letters()] + SENTENCES
    vocab = {f"<0x{byte:02X}>": byte for byte in range(256)} | {"_": 256, "<a>": 257}
    for pattern in PATTERNS:
        tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], byte_fallback=True, unk_token="<a>"))
        # Metaspace marks the beginning of each piece.
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.Metaspace("_", "always", split=False)])
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save(f"{folder}/tokenizer.json")
            text = "".join(json.dumps(line) + "\n" for line in lines)
            done = subprocess.run([program, folder], input=text.encode(), stdout=subprocess.PIPE, check=True)
        found = [json.loads(line)["ids"] for line in done.stdout.decode().split("\n") if line]
        wanted = [encoded.ids for encoded in tokenizer.encode_batch(lines)]
        bad = [line for line, got, want in zip(lines, found, wanted, strict=True) if got != want]
        differ += len(bad)
        if bad:
            print(f"{pattern}: {len(bad)} lines differ, first {bad[0]!r}")
    print(f"{len(PATTERNS)} expressions, {len(lines)} lines each, {differ} differ")
    return differ


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--golden")
    parser.add_argument("--compare")
    args = parser.parse_args()
    if args.golden:
        golden(args.golden)
    if args.compare:
        sys.exit(1 if compare(args.compare) else 0)


if __name__ == "__main__":
    main()
