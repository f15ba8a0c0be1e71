r"""Names the code points that the tokenizers library and Debian's libraries classify differently.

    python tests/oracle/tokenizer_properties.py [PROPERTY ...]

For each Unicode property (default: those of tokenizer/properties.cc) it prints the characters that \p{...}
matches in the tokenizers library's Oniguruma and not in libonig.so.5, and the other way round. Then it does the
same for the classes of the pre-tokenizers Digits, Punctuation and Whitespace, and for Lowercase, against utf8proc.
Needs the package tokenizers, libonig5 and libutf8proc2.
"""

import ctypes
import sys

from tokenizers import Regex, normalizers, pre_tokenizers

PROPERTIES = ["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi",
              "Pf", "Po", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Han", "Hiragana",
              "Katakana", "Hangul", "Thai", "Arabic", "Cyrillic", "Latin", "Greek", "Hebrew", "Devanagari"]
CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
CHUNK = 4096
LETTER, MARK, ND, NL, NO, PC, PO = range(1, 6), range(6, 9), 9, 10, 11, 12, 18


def load_oniguruma():
    onig = ctypes.CDLL("libonig.so.5")
    onig.onig_new.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_uint] + [ctypes.c_void_p] * 3
    onig.onig_match.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_uint]
    utf8 = ctypes.addressof(ctypes.c_char.in_dll(onig, "OnigEncodingUTF8"))
    syntax = ctypes.addressof(ctypes.c_char.in_dll(onig, "OnigSyntaxOniguruma"))
    onig.onig_initialize((ctypes.c_void_p * 1)(utf8), 1)
    return onig, utf8, syntax


def taken_here(oniguruma, pattern):
    onig, utf8, syntax = oniguruma
    compiled = ctypes.c_void_p()
    text = ctypes.create_string_buffer(pattern.encode())
    begin = ctypes.addressof(text)
    info = ctypes.create_string_buffer(256)
    if onig.onig_new(ctypes.byref(compiled), begin, begin + len(pattern), 0, utf8, syntax, info) != 0:
        raise ValueError(pattern)
    place = ctypes.create_string_buffer(8)
    at = ctypes.addressof(place)
    taken = set()
    for character in CHARACTERS:
        spelled = character.encode()
        ctypes.memmove(at, spelled, len(spelled))
        if onig.onig_match(compiled, at, at + len(spelled), at, None, 0) >= 0:
            taken.add(ord(character))
    return taken


def taken_there(pre_tokenizer, separator=""):
    """Code points that become pieces: alone between separators, or in any piece without separators."""
    taken = set()
    for i in range(0, len(CHARACTERS), CHUNK):
        text = separator + "".join(c + separator for c in CHARACTERS[i:i + CHUNK])
        for piece, _ in pre_tokenizer.pre_tokenize_str(text):
            if not separator:
                taken.update(map(ord, piece))
            elif len(piece) == 1:
                taken.add(ord(piece))
    return taken


def ranges(codes):
    parts = []
    for code in sorted(codes):
        if parts and parts[-1][1] == code - 1:
            parts[-1][1] = code
        else:
            parts.append([code, code])
    return " ".join(f"{{0x{first:X}, 0x{last:X}}}," for first, last in parts)


def report(name, there, here):
    print(f"{name}: more {ranges(there - here)} less {ranges(here - there)}", flush=True)


def main():
    oniguruma = load_oniguruma()
    for name in sys.argv[1:] or PROPERTIES:
        pattern = f"\\p{{{name}}}"
        splitter = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
        report(name, taken_there(splitter), taken_here(oniguruma, pattern))
    if sys.argv[1:]:
        return
    utf8proc = ctypes.CDLL("libutf8proc.so.2")
    category = [utf8proc.utf8proc_category(code) for code in range(0x110000)]
    signs = set(map(ord, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"))
    here = {code for code, kind in enumerate(category) if ND <= kind <= NO}
    report("Digits", taken_there(pre_tokenizers.Digits(individual_digits=True), "xx"), here)
    here = {code for code, kind in enumerate(category) if PC <= kind <= PO} | signs
    report("Punctuation", taken_there(pre_tokenizers.Punctuation("isolated"), "xx"), here)
    circled = {*range(0x24B6, 0x24EA), *range(0x1F130, 0x1F14A), *range(0x1F150, 0x1F16A),
               *range(0x1F170, 0x1F18A)}
    here = {code for code, kind in enumerate(category)
            if kind in LETTER or kind in MARK or kind in (ND, NL, PC)} | circled | {0x200C, 0x200D}
    report("Whitespace", taken_there(pre_tokenizers.Whitespace(), "!!"), here)
    for character in CHARACTERS:
        lower = normalizers.Lowercase().normalize_str(character)
        found = chr(utf8proc.utf8proc_tolower(ord(character)))
        if lower != found:
            print(f"Lowercase: U+{ord(character):04X} is {[hex(ord(c)) for c in lower]}")


if __name__ == "__main__":
    main()
