"""Compares evald's tokenizer with the tokenizers library on many random lines.

    python tests/oracle/tokenizer_fuzz.py build/dev/tests/tokenizer-dump [--lines N] [--seed S]
    python tests/oracle/tokenizer_fuzz.py build/dev/tests/tokenizer-dump --code-points

The first form encodes and decodes N lines for each kind of tokenizer_kinds.py. The second form puts
every Unicode code point through each normal form and through the pattern classes of the known
families, and names the code points that differ. Exit status 1 if something differs.
"""

import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

import tokenizer_kinds as kinds

SHOWN_MAX = 5


def dump(command, lines):
    """tokenizer-dump's answer to each of `lines`."""
    text = "\n".join(json.dumps(line) for line in lines) + "\n"
    done = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


def lines_of(count, vocabulary, rng):
    for _ in range(count):
        if rng.random() < 0.9:
            yield kinds.random_text(rng)
        else:
            yield [rng.randrange(vocabulary) for _ in range(rng.randrange(1, 16))]


def expected(tokenizer, line):
    answer = {}
    ids = line
    if isinstance(line, str):
        answer["ids"] = tokenizer.encode(line, add_special_tokens=False).ids
        answer["special"] = ids = tokenizer.encode(line).ids
    answer["decoded"] = tokenizer.decode(ids, skip_special_tokens=False)
    answer["skipped"] = tokenizer.decode(ids, skip_special_tokens=True)
    return answer


def compare_kind(program, name, folder, count, seed):
    """Returns the number of lines that differ."""
    kinds.write_kind(name, folder)
    subprocess.run(["rm", f"{folder}/tokenizer_config.json"], check=True)
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    rng = random.Random(f"{seed}-{name}")
    lines = lines_of(count, tokenizer.get_vocab_size() + 2, rng)
    differ = 0
    while batch := list(itertools.islice(lines, 20000)):
        for line, found in zip(batch, dump([program, folder], batch), strict=True):
            wanted = expected(tokenizer, line)
            if found != wanted:
                differ += 1
                if differ <= SHOWN_MAX:
                    print(f"{name}: {line!r}\n  wanted {wanted}\n  found  {found}")
    print(f"{name}: {count} lines, {differ} differ", flush=True)
    return differ


def every_code_point():
    return [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def ranges(codes):
    """Sorted code points as 'U+0041..U+005A U+0061'."""
    parts = []
    for code in codes:
        if parts and parts[-1][1] == code - 1:
            parts[-1][1] = code
        else:
            parts.append([code, code])
    return " ".join(f"U+{a:04X}" if a == b else f"U+{a:04X}..U+{b:04X}" for a, b in parts)


def compare_normal_forms(program):
    differ = 0
    characters = every_code_point()
    for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"):
        normalizer = getattr(normalizers, form)()
        # The letters before and after show reordering and composition.
        lines = [f"e{c}\u0301" for c in characters]
        found = dump([program, "--normalize", form], lines)
        bad = [ord(c) for c, line, out in zip(characters, lines, found, strict=True)
               if normalizer.normalize_str(line) != out]
        print(f"{form}: {len(bad)} code points differ {ranges(bad)}", flush=True)
        differ += len(bad)
    return differ


def compare_classes(program, folder):
    r"""Splits 'a<c>1 ' by patterns of \p{L}, \p{N} and \s and by the code point classes."""
    tests = {name: pre_tokenizers.Split(Regex(pattern), "isolated") for name, pattern in (
        ("letter", r"\p{L}+"), ("number", r"\p{N}+"), ("space", r"\s+"), ("llama3", kinds.LLAMA3))}
    tests |= {"punctuation": pre_tokenizers.Punctuation(), "digits": pre_tokenizers.Digits(),
              "whitespace": pre_tokenizers.Whitespace(),
              "whitespace_split": pre_tokenizers.WhitespaceSplit()}
    characters = every_code_point()
    lines = [f"a{c}1 " for c in characters]
    differ = 0
    for name, pre_tokenizer in tests.items():
        # A byte is merged with its neighbour only if no split is between them.
        vocab = {f"<0x{byte:02X}>": byte for byte in range(256)} | {
            "a": 256, "1": 257, " ": 258, "<a>": 259, "</w>": 260}
        tokenizer = Tokenizer(models.BPE(vocab=vocab | {"</e>": 261}, merges=[], byte_fallback=True,
                                         end_of_word_suffix="", unk_token="<a>"))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizer, pre_tokenizers.Metaspace("_", "always", split=False)])
        tokenizer.save(f"{folder}/tokenizer.json")
        found = dump([program, folder], lines)
        bad = [ord(c) for c, line, out in zip(characters, lines, found, strict=True)
               if tokenizer.encode(line).ids != out["ids"]]
        print(f"{name}: {len(bad)} code points differ {ranges(bad)}", flush=True)
        differ += len(bad)
    return differ


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="the built tokenizer-dump")
    parser.add_argument("--lines", type=int, default=100_000, help="lines for each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--code-points", action="store_true")
    parser.add_argument("--kinds", nargs="*", default=list(kinds.KINDS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.code_points:
            differ = compare_normal_forms(args.program) + compare_classes(args.program, folder)
        else:
            differ = sum(compare_kind(args.program, name, f"{folder}/{name}", args.lines, args.seed)
                         for name in args.kinds)
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
