"""Writes tests/golden/metrics/python_regex.json: the matches of CPython's `re`.

Usage: python3.11 tests/oracle/python_regex.py > tests/golden/metrics/python_regex.json

The patterns are those of the filters and metrics of lm_eval 0.4.13's tasks, and one for each rule in which
Oniguruma and `re` differ. Each is applied to fixed texts and to seeded random texts. The entry of a pattern is
[pattern, [[text number, [[begin, end of group 0, of group 1, ...], ...]], ...]]. Offsets count code points, and
-1 stands for a group that took no part. Only texts with a match are listed.
"""

import json
import random
import re
import warnings

warnings.simplefilter("ignore")

HARNESS = [
    r"#### (\-?[0-9\.\,]+)", r"(-?[$0-9.,]{2,})|(-?[0-9]+)", ",", r"\$", r"(?s).*#### ", r"\.$",
    r"(\([A-Z]\))", r"The answer is (\-?[0-9\.\,]*[0-9]+)", r"\b(Yes|No|yes|no)\b", "([-0-9]+)",
    r"([A-E]).*", r"answer is \(?([ABCDEFGHIJ])\)?", r"(?<=The answer is )(.*)(?=.)",
    r"((?<=The answer is )(.*)(?=.)|(?<=the answer is )(.*)(?=.)|(?<=The answer: )(.*)(?=.))",
    r"([ \[\(<{}>\)\]]+)", r"(?<= )([\" \[\(<{}>\)\]]+)|([\" \[\(<{}>\)\]]+)", r"^\s*([A-D])", r"^(.*?)\s*$",
    r"^(.*?)(?=\n|$)", r"(\b[ABCD]\b)", r"(?=(female|woman|man|male))", r"^\s+", r"\s+$", ".",
    r"(((?<=[answer is ])[A-D])|([A-D]\n)|([A-D]\.)|( [A-D] )|(^[A-D]$)|(\[[A-D]\])|([A-D]))",
    r"[Tt]he (?:[Bb]est [Aa]nswer|[Ff]inal [Aa]nswer|[Aa]nswer)[^A-D]*([A-D])|\\boxed\{([A-D])\}",
    r".*[aA]nswer:\s*([A-L])", r"(-?[0-9]+([ .,][0-9.,]+)?)", r"\['(.*?)'\]", r"\('([^']*)', '([^']*)'\)",
    r"```(?:\w+)?\n?(.*?)\n?```", r"\b(PER|LOC|ORG|DATE):\s*([^$]+)", r":[\s]*(A|B|C|D)",
    r"\b(?:The |the |An |A |The |a |an )", "उत्तर है \\(?([ABCDEFGHIJ])\\)?",
]
RULES = [
    r"\w+", r"\W+", r"\s+", r"\S+", r"\d+", r"\D+", r"[\w.]+", r"[\W]+", r"[^\W\d]+", r"[\s,]+", r"[^\S\n]+",
    r"\b", r"\B", r"\b\w", r"\w\b", r"(?a)\w+", r"(?a)\d", r"(?a)\s", r"(?a)\b", r"^", r"$", r"(?m)^", r"(?m)$",
    r"(?m)^.", r"\Aa", r"a\Z", r"\n\Z", r"x*", r"|a", r"a??|a", r"\b|\w+", r"(?i)straße", r"(?i)STRASSE",
    r"(?i)σ+", r"(?i)[k-s]+", r"(?i:A)b", r"(?i)a(?-i:B)", r"(?s:.)b", r"(?s)a.(?-s:.)", r"[[a]+", r"[a&&b]+",
    r"[]a]+", r"[^]a]+", r"[a\-z]+", r"[a-]+", r"[\b]", r"a{2}", r"a{2,}", r"a{,2}", r"a{1,2}?", r"a{2}?",
    r"a{2}+a", r"a++a", r"a*+b", r"(?>a*)b", r"a{", r"a{}", r"a{x}", r"{a}", r"a{1,x}", r"(a)|b", r"(?:(a)|b)*",
    r"(?P<q>['\"]).*?(?P=q)", r"(a)(b)?\1", r"(a)?(?(1)b|c)", r"(?P<x>a)?(?(x)b|c)", r"a(?#comment)b", r"\x41",
    r"\u00e9", r"\U0001F600", r"\101", r"\0", r"\.\,\-\#\ \&\~\"\'\<\>\/\`\@\!\%", r"[\.\,\-\#\]\^\\]+",
    r"(?<!a)b", r"(?<=ab|cd)e", r"a(?!b)", r"(a|ab)(c|bcd)(d*)", r"(a*)*", r"(a*)+", r"\t|\n|\r|\f|\v|\a",
    r"é|ü", r"[à-ÿ]+", r"[^\x00-\x7f]+", r"(?im)^b$", r"(?u)\w", r"\$\{(\w+)\}", r"(.)(?=\1)", r"(?s).+",
]
REFUSED = [
    r"a**", r"*a", r"(", r")", r"[a", r"\q", r"a(?i)b", r"(?x)a b", r"\N{DIGIT ONE}", r"(?P<a>x)(?P<a>y)",
    r"(?P=z)", r"\2(a)", r"[z-a]", r"[\w-a]", r"(?Z)a", r"\x4", "a\\", r"(?<name>a)", r"\p{L}", r"\h", r"\K", r"(?~a)",
    r"(?(3)a|b)", r"a{2}{3}", r"\z",
]
TEXTS = [
    "", "a", "\n", "#### 18", "so 1,234.50 #### 1,234.50.\n", "x $1,000 and -5 or 7.\n", "The answer is (B).",
    "The answer is 42.", "no answer", "Yes no\nyes No_ NO", "  A \n B.", "[A] (B) \\boxed{C}",
    "naïve café – ½ x² Ⅷ ٣ हिन्दी का ไทย ภาษา", "a‿b c_d e\u0301f g\u200dh", "\x1c\x1d\x1e\x1f\x85\xa0\u2028\u3000x\x0b\x0c",
    "STRASSE straße ſ K k S s", "ΣΑΣ σας ς", "aaa aab abab", "ab\nab\n", "b\r\nb", "a\n\n", "{a} a{ a{} a{x} a{1,x}",
    "```python\ndef f():\n  pass\n```\nx ``` y ```", "LOC: kenya, uganda $ PER: none", "('dog', 'NN'), ('runs', 'VB')",
    "['x'] ['y z']", "'it' \"that's\" 'x\"", "aba ac abc b bb", "\U0001F600 😀é Aé", "\x07\x08\x00", ".,-# &~\"'<>/`@!%",
    "[[a]] a&&b ]a- a-z", "उत्तर है (C", "cde abe e", "man woman female", "abcd abcabcd", "aabb 112233",
    "Answer: B\nanswer:  L", "bb\nb\nB\n", "${x} ${yy}", "मानक 12۳४ a1", "ﬁ ﬀ ŉ ǰ",
]


def random_texts():
    rng = random.Random(7)
    alphabet = "aabbAB cd01,.$-#\n\n'\"()[]{}:é²\u0301‿\x1c\xa0ßσΣKـक्"
    return ["".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 25))) for _ in range(60)]


def spans(match):
    out = []
    for group in range(match.re.groups + 1):
        out += list(match.span(group))
    return out


texts = TEXTS + random_texts()
found = []
for pattern in HARNESS + RULES:
    regex = re.compile(pattern)
    rows = [[i, [spans(m) for m in regex.finditer(t)]] for i, t in enumerate(texts)]
    found.append([pattern, [row for row in rows if row[1]]])
for pattern in REFUSED:
    if pattern in (r"(?x)a b", r"\N{DIGIT ONE}"):
        continue  # Python accepts these, evald does not
    try:
        re.compile(pattern)
    except re.error:
        continue
    raise SystemExit(f"Python takes {pattern}")
print(json.dumps({"texts": texts, "found": found, "refused": REFUSED}, ensure_ascii=False, separators=(",", ":")))
