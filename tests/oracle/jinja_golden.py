#!/usr/bin/env python3
"""Writes golden renderings of jinja2 itself for tests/unit/jinja.

    jinja_golden.py OUT.jsonl [--lm-eval PACKAGE_FOLDER]

Each line: {"mode": "harness" | "chat" | "plain", "template", "variables", "output"}. If jinja2 raises an
error, {"error": true} replaces the output. The modes are lm_eval's environment, transformers'
chat-template environment, and jinja2.Environment(). With --lm-eval, the templates of the named
tasks' YAML files are added, rendered for made-up documents.
"""

import argparse
import json
import re
from pathlib import Path

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

DOC = {
    "question": "  What is 2 + 2?\n", "choices": ["3", "4", "it's", 'say "hi"'], "answer": 1,
    "text": "Héllo wörld, ǆ straße ΑΣ 😀", "n": 7, "f": 2.5, "neg": -7, "none": None, "yes": True, "no": False,
    "empty": "", "zero": 0, "big": 1e22, "tiny": 1.5e-7, "items_": [3, 1, 2], "words": ["b", "A", "c", "a"],
    "d": {"b": 1, "a": [1, 2, {"x": None}], "items": 5, "key with space": "v"},
    "rows": [{"k": "x", "v": 2}, {"k": "y", "v": 1}, {"k": "x", "v": 3}],
    "nested": [[1, 2], [3, 4]], "multi": "line1\nline2\r\nline3\n\nline5", "messy": "\ta  b\x0b c\u00a0",
    "label": "0", "esc": "tab\tnl\nq'q\"q\\u\u00e9\u200b\U0001f600\x07", "html": "<a href='x'>&</a>",
    "sentence": "The quick brown-fox (jumps) over [the] lazy dog",
    "answer_text": "So 3+4 = 7.\n#### 1,234",
}

EXPRESSIONS = r"""
question.strip()
choices[0]
choices[-1]
choices[1:3]
choices[::-1]
choices[:2]
choices[10:]
text[1:5]
text[::-1]
text[-3:]
text[0]
answer
n / 2
n // 2
neg // 2
neg % 3
n % -3
neg / 2
f * 2
f ** 2
2 ** 10
2 ** -1
n * 1.0
1e3
1e16
123456789012345678.0
big
tiny
0.1 + 0.2
1/3
100.0
1e-5
0.0001
-0.0
5 // 2.0
-5.5 // 2
-5.5 % 2
7 % 2.5
10 - 2 - 3
2 * 3 + 4
2 + 3 * 4
-n
+n
- - n
not n
not none
n and f
zero or 'x'
none or empty or 'last'
n == 7.0
yes == 1
'a' < 'b' < 'c'
1 < 2 > 0
n in items_
3 in items_
'quick' in sentence
'zz' not in sentence
'a' in d
none is none
n is odd
n is even
n is divisibleby 7
n is divisibleby(3)
n is number
text is string
d is mapping
d is iterable
choices is sequence
n is iterable
missing is defined
missing is undefined
n is defined
d.zzz is defined
yes is boolean
n is boolean
n is integer
f is float
yes is true
no is false
n is not none
n is eq 7
n is gt 3
n is lt(3)
n is in items_
'abc' is lower
'ABC' is upper
n is sameas 7
'upper' is filter
'odd' is test
none
yes
no
[1, 2.0, 'a', none, true]
(1,)
(1, 2)
()
[]
{}
{'a': 1, 'b': [1, (2, 3)]}
{1: 'x', 2.5: none}
d
rows
esc
[esc]
[text]
["it's"]
['say "x" it\'s']
d.a
d['a']
d['key with space']
d['items']
d.items()|list
d.keys()|list
d.values()|list
d.get('b')
d.get('zzz')
d.get('zzz', 'dflt')
d.a[2].x
nested[1][0]
nested.1.0
'a' ~ 1 ~ none ~ 2.0
'a' + 'b'
[1] + [2]
(1,) + (2,)
'ab' * 3
3 * 'ab'
[1, 2] * 2
'x' if n > 3 else 'y'
'x' if n > 30 else 'y'
'x' if n > 30
'%s is %d and %.2f' % ('a', 3, 2.567)
'%5d|%-5d|%05d' % (42, 42, 42)
'%x %X %o' % (255, 255, 8)
'%e %g %G' % (12345.678, 0.00001, 1e20)
'%r' % 'it'
'%%'  % ()
'%s' % [1, 2]
'%(a)s-%(b)d' % {'a': 'x', 'b': 3}
'%+d % d' % (3, 3)
'%10.3f|' % 3.14159
'%s %s' % ('a',)
'{} {}'.format('a', 1)
'{0}{1}{0}'.format('a', 'b')
'{x:.3f}'.format(x=3.14159)
'{:>8}|{:<8}|{:^8}|'.format('a', 'b', 'c')
'{:08.2f}'.format(3.14159)
'{:,}'.format(1234567)
'{:,.2f}'.format(1234567.891)
'{:+d}'.format(5)
'{:x}'.format(255)
'{:*^9}'.format('mid')
'{!r}'.format('a')
'{{}}'.format()
'{a[k]}'.format(a={'k': 'v'})
'{:5}'.format(3)
'{:.3}'.format('abcdef')
'{:%}'.format(0.256)
'{:.1%}'.format(0.256)
text.upper()
text.lower()
text.title()
text.capitalize()
text.swapcase()
sentence.title()
sentence|title
text|title
text|upper
text|capitalize
'ΑΣ'.lower()
'ΑΣΑ'.lower()
'ß'.upper()
'ǆ'.title()
sentence.split()
sentence.split(' ', 2)
sentence.rsplit(' ', 2)
sentence.split('o')
messy.split()
messy.split(none, 1)
messy.rsplit(none, 1)
' a b c '.rsplit(none, 1)
' a b c '.split(none, 1)
'a,b,,c'.split(',')
''.split()
''.split(',')
'abc'.split('')
answer_text.split('####')[-1].strip()
answer_text.split('#### ')[1].replace(',', '')
multi.splitlines()
multi.splitlines(true)
'a-b-c'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('-')
', '.join(choices)
', '.join(items_)
sentence.find('quick')
sentence.find('zzz')
text.find('w')
text.rfind('ö')
'abcabc'.find('c', 3)
'abcabc'.index('c')
'abcabc'.index('z')
'abcabc'.count('bc')
'aaa'.count('')
sentence.startswith('The')
sentence.endswith(('dog', 'cat'))
'abc'.startswith('c', 2)
'xxabcxx'.strip('x')
'xxabcxx'.lstrip('x')
'xxabcxx'.rstrip('xc')
'abc'.removeprefix('a')
'abc'.removesuffix('c')
'5'.zfill(3)
'-5'.zfill(4)
'a'.center(6, '*')
'ab'.center(5)
'a'.ljust(4) ~ '|'
'a'.rjust(4)
'123'.isdigit()
'²'.isdigit()
'²'.isdecimal()
'12a'.isalnum()
'abc'.isalpha()
' \t'.isspace()
'Abc'.isupper()
'abc1'.islower()
choices.index('4')
choices.count('4')
question|trim
'xxaxx'|trim('x')
choices|join(', ')
choices|join
rows|join(',', attribute='k')
items_|sort
items_|sort(reverse=true)
words|sort
words|sort(case_sensitive=true)
rows|sort(attribute='v')
rows|sort(attribute='k,v')
words|unique|list
words|min
words|max
items_|max
rows|max(attribute='v')
[]|max
items_|sum
rows|sum(attribute='v')
rows|sum(attribute='v', start=10)
items_|first
items_|last
[]|first
items_|length
text|length
d|length
choices|count
items_|reverse|list
'abc'|reverse
d|dictsort
d|dictsort(by='key', reverse=true)
{'b': 2, 'a': 1}|dictsort(by='value')
{'b': 2, 'a': 1}|items|list
items_|map('string')|join('-')
rows|map(attribute='k')|list
rows|map(attribute='zz', default='-')|list
words|map('upper')|list
words|map('replace', 'a', 'z')|list
items_|select('odd')|list
items_|reject('odd')|list
items_|select('gt', 1)|list
items_|select('>', 1)|list
[0, 1, '', 'a']|select|list
rows|selectattr('k', 'eq', 'x')|list
rows|selectattr('v', 'equalto', 1)|map(attribute='k')|first
rows|rejectattr('k', 'eq', 'x')|list
rows|groupby('k')|list
items_|batch(2)|list
items_|batch(2, 'x')|list
items_|slice(2)|list
range(7)|slice(3, 'f')|list
range(5)|list
range(1, 6, 2)|list
range(5, 0, -2)|list
range(3)[1]
range(0)|length
missing|default('dflt')
none|default('dflt')
none|default('dflt', true)
empty|d('e', true)
d.zzz|default('z')
f|round
3.14159|round(2)
2.675|round(2)
2.5|round
3.5|round
0.5|round|int
7|round
3.7|round(0, 'floor')
3.2|round(method='ceil')
1234.567|round(-2)
'12'|int
'12.7'|int
'３'|int
'１２'|int
'٣'|int
' ３ '|int
'٣.٥'|float
'３.５'|float
'𝟛𝟚'|int
'²'|int
'abc'|int
'abc'|int(5)
'0x1A'|int(base=16)
12.9|int
'3.5'|float
'x'|float(1.5)
3|float
-5|abs
-5.5|abs
n|string
none|string
[1, 'a']|string
'abc'|list
'abc'|replace('b', 'X')
'aaa'|replace('a', 'b', 2)
'abc'|replace('', '-')
'%s-%s'|format('a', 2)
multi|indent
multi|indent(2, true)
multi|indent(2, blank=true)
multi|indent('> ')
sentence|truncate(20)
sentence|truncate(20, true)
sentence|truncate(20, true, '…')
sentence|truncate(500)
sentence|wordcount
'mid'|center(9)
rows|map(attribute='v')|sum
d|attr('x') is defined
dict(a=1, b=2)
dict(d, z=1)|length
'abc'['upper']()
'a' 'b'
'\x41\u00e9\n\t\\\''
'\101'
"it's"
1_000
0x1f
0b101
0o17
1.5e3
items_[n]
items_['x']
text.zzz
missing
missing.x
d.zzz.x
missing + 1
'a' + 1
1 < 'a'
n()
none.x
[1, 2] < [1, 3]
(1, 'a') == (1, 'a')
[1] == (1,)
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
1 / 0
5 is divisibleby 2.5
true + true
none == false
[none, 1]|select('none')|list
namespace(a=1).a
-2 ** 2
2 ** 3 ** 2
-2 | abs
not yes and no
1 if yes else 2 if no else 3
[1, 2, 3][1:]|first
(1, 2, 3)|last
'a|b'.split('|')|last|upper
choices[answer]
choices[n - 6]
['A', 'B'][answer]
(question ~ ' ' ~ choices[0]).strip().lower()
{'a': {'b': 'c'}}.a.b
[[1, 2], [3]]|sum(start=[])
'x'.join(['1'])
question.strip() + "\n" + "A. " + choices[0]
html
'é'.encode is defined
[1.0, 2.50, 1e100]
1e400
loop is defined
"{{ not a tag }}"
'%}' ~ '}}'
{'a': {'b': {}}}
'%c%c|%3c|%-3c|' % (65, 'é', 'x', 128512)
'%c' % 'ab'
'%c' % -1
'%c' % yes
'%c' % f
'{:<4}|{:>4}|{:^5}|{:04}|{:+}|{:,}'.format(yes, no, yes, no, yes, yes)
'{}'.format(yes)
[0, 1, 2, 999, 1000, 999999, 1000000, 1500.7, 123456789012, 1e30, -5, '12345', yes]|map('filesizeformat')|join(';')
[1, 1023, 1024, 1048576, 1e10]|map('filesizeformat', true)|join(';')
[1024, 5e25]|map('filesizeformat', binary=true)|join(';')
none|filesizeformat
'x'|filesizeformat
'a b/c?d=é&e~_.-+%'|urlencode
n|urlencode
yes|urlencode
none|urlencode
{'a b': 'c/d', 'é': 1, 'x': none}|urlencode
''|urlencode
{}|urlencode
html is escaped
html|escape is escaped
n is escaped
"""

STATEMENTS = [
    "{% if n > 3 %}big{% elif n > 1 %}mid{% else %}small{% endif %}",
    "{% if missing is defined %}x{% else %}y{% endif %}",
    "{% for c in choices %}{{ loop.index }}. {{ c }}\n{% endfor %}",
    "{% for c in choices %}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.length }} {% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in d %}{{ k }},{% endfor %}",
    "{% for x in items_ if x > 1 %}{{ x }}{{ loop.index }}{% endfor %}",
    "{% for x in [] %}a{% else %}none{% endfor %}",
    "{% for x in nested %}{% for y in x %}{{ loop.depth }}{{ y }}{% endfor %}|{{ loop.index }}{% endfor %}",
    "{% for a, b in nested %}{{ a }}-{{ b }} {% endfor %}",
    "{% for a, b in items_ %}{{ a }}{% endfor %}",
    "{% for x in items_ %}{{ loop.previtem }}{% endfor %}",
    "{% for x in items_ %}{% if not loop.first %}{{ loop.previtem }}{% endif %}{% if not loop.last %}{{ loop.nextitem }}{% endif %};{% endfor %}",
    "{% for x in words %}{{ loop.cycle('odd', 'even') }} {% endfor %}",
    "{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }} {% endfor %}",
    "{% for c in 'añb' %}[{{ c }}]{% endfor %}",
    "{% set x = 5 %}{{ x }}",
    "{% set x, y = 1, 2 %}{{ x }}{{ y }}",
    "{% set x = 1 %}{% for i in items_ %}{% set x = i %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set ns = namespace(total=0) %}{% for i in items_ %}{% set ns.total = ns.total + i %}{% endfor %}{{ ns.total }}",
    "{% set x %}block {{ n }}{% endset %}[{{ x }}]",
    "{% set x | upper %}block {{ n }}{% endset %}[{{ x }}]",
    "{% for x in items_ %}{{ n }}{% set n = x %}{{ n }} {% endfor %}{{ n }}",
    "{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(1) }} {{ f(1, 3) }} {{ f(b=5, a=4) }}",
    "{% macro f(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, x=4) }}",
    "{% macro f() %}{{ n }}{{ caller() }}{% endmacro %}{% call f() %}inner{% endcall %}",
    "{% macro f() %}{{ caller('x') }}{% endmacro %}{% call(v) f() %}[{{ v }}]{% endcall %}",
    "{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
    "{% set y = 1 %}{% macro f() %}{{ y }}{% endmacro %}{% set y = 2 %}{{ f() }}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}",
    "{% filter upper %}abc {{ text }}{% endfilter %}",
    "{% filter replace('a', 'b') | upper %}abc{% endfilter %}",
    "{% raw %}{{ x }}{% y %}{% endraw %}!",
    "a {#- comment -#} b",
    "a {# {{ x }} #} b",
    "a \n {%- if true -%} \n b \n {%- endif -%} \n c",
    "a {{- ' x ' -}} b",
    "  {% if true %}\n  yes\n  {% endif %}\nend\n",
    "\n\n{% set a = 1 %}\n  {{ a }}\n",
    "a\n  {%+ if true %}b{% endif +%}\nc",
    "line\r\nnext\rlast\n",
    "trailing\n", "trailing\n\n", "", "\n", " ", "{{ '' }}", "{% print 1, 'a' %}",
    "{{ 1 }}\n{{ 2 }}\n", "{%- for i in [1,2] -%}\n  {{ i }}\n{%- endfor -%}\n",
    "{% for i in [1,2,3] %}\n{{ i }}\n{% endfor %}\n",
    "    {# c #}\n    {{ n }}\n", "x{% raw %}\n  a\n{% endraw %}\ny",
    "{% if n %}{% for x in items_ %}{% if x == 2 %}two{% else %}{{ x }}{% endif %}{% endfor %}{% endif %}",
    "{{ missing }}", "{% for x in missing %}{% endfor %}ok", "{% if missing %}a{% endif %}ok", "{{ missing|length }}",
    "{{ missing|upper }}", "{{ missing ~ 'x' }}", "{{ missing == 1 }}", "{{ 'x' if missing }}", "{{ missing in items_ }}", "{{ 1 in missing }}",
    "{{ unknown_function(1) }}", "{{ n|unknown_filter }}", "{{ n is unknown_test }}", "{% unknown %}", "{% if %}", "{{ }}",
    "{{ (1 }}", "{{ 1 + }}", "{% for %}", "{% endif %}", "{% if n %}", "{{ 'abc }}", "{# open", "{% raw %} open", "{{ a b }}",
    "{% break %}", "{% for i in [1,2,3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in [1,2,3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}",
    "{{ d|tojson }}", "{{ [1, 2.0, none, true, 'é<>&\\'']|tojson }}", "{{ d|tojson(indent=2) }}", "{{ text|tojson }}", "{{ []|tojson }}{{ {}|tojson(indent=1) }}",
    "{{ rows|tojson(indent=4) }}", "{{ 1e22|tojson }}{{ 'a\\n\\t\"' | tojson }}",
    "{{ raise_exception('stop') }}", "{{ html|e }}",
    "{{ question|regex_replace('\\\\s+', ' ') }}", "{{ sentence|regex_replace('(\\\\w+) (\\\\w+)', '\\\\2 \\\\1') }}",
    "{{ sentence|regex_replace('o', '0', 1) }}", "{{ 'aXbX'|regex_replace('X$', '') }}",
    "{% set m = {'a': 1} %}{% set m2 = dict(m, b=2) %}{{ m2 }}",
    "{% set l = [1] %}{% set l = l + [2] %}{{ l }}",
    "{% for g in rows|groupby('k') %}{{ g.grouper }}:{{ g.list|length }};{% endfor %}",
    "{% for key, group in rows|groupby('k') %}{{ key }}{% for r in group %}{{ r.v }}{% endfor %};{% endfor %}",
    "{% set g = items_|map('string') %}{{ g|list }}{{ g|list }}",
    "{{ x }}{% set x = 1 %}", "{% set n = n + 1 %}{{ n }}", "{% set (a, b) = (1, 2) %}{{ a }}{{ b }}",
    "{% for i in range(3) %}{% set v = i %}{% endfor %}{{ v is defined }}",
    "{{ [1,2,3]|sum }}{{- '\n' }}", "{{ '\\n' }}", "{{ \"a\nb\" }}", "{{ \"a\r\nb\" }}",
    "{%set x=1%}{{x}}", "{{n}}{{-n-}}{{ n}}", "{{ {'a':1}['a'] }}", "{{ {}}}",
    "{% macro m(a, b) %}{{ a }}{{ b is defined }}{% endmacro %}{{ m(1) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% for x in [1, 2] recursive %}{{ x }}{% endfor %}",
]

CHATS = [
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}",
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
    "{%- if messages[0]['role'] == 'system' %}\n    {{- messages[0]['content'] }}\n    {%- set rest = messages[1:] %}\n{%- else %}\n    {%- set rest = messages %}\n{%- endif %}\n{%- for m in rest %}\n    {%- if m.role == 'assistant' %}\n        {%- generation %}\n        {{- m.content }}\n        {%- endgeneration %}\n    {%- else %}\n        {{- m.role ~ ': ' ~ m.content }}\n    {%- endif %}\n{%- endfor %}\n",
    "{% set ns = namespace(found=false, last=-1) %}\n{% for m in messages[::-1] %}\n  {% set index = (messages|length - 1) - loop.index0 %}\n  {% if not ns.found and m.role == 'user' %}\n    {% set ns.found = true %}\n    {% set ns.last = index %}\n  {% endif %}\n{% endfor %}\n{{ ns.last }}\n",
    "{% for m in messages %}{{ m | tojson }}{{ m|tojson(indent=2) }}{% endfor %}",
    "{% if tools is defined and tools %}T{% endif %}{{ messages | length }}{{ messages[-1].content.split('</think>')[-1].lstrip('\\n') }}",
    "{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|join(' / ') }}",
]


def environments():
    harness = jinja2.Environment(loader=jinja2.BaseLoader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    harness.filters["regex_replace"] = lambda string, pattern, repl, count=0: re.sub(pattern, repl, string, count=count)

    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            lineno = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("_run"), [], [], body).set_lineno(lineno)

        def _run(self, caller):
            return caller()

    chat = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    chat.filters["tojson"] = lambda x, ensure_ascii=False, indent=None, separators=None, sort_keys=False: json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    chat.globals["raise_exception"] = raise_exception
    return {"harness": harness, "chat": chat, "plain": jinja2.Environment()}


def case(environment, mode, template, variables):
    entry = {"mode": mode, "template": template, "variables": variables}
    try:
        entry["output"] = environment.from_string(template).render(**variables)
    except Exception as error:  # noqa: BLE001 - whatever jinja2 or Python raises
        entry["error"] = f"{type(error).__name__}: {error}"[:200]
    return entry


def task_templates(folder):
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: None)
    for name in ["humaneval", "mbpp", "gsm8k", "mmlu/default"]:
        for path in sorted((Path(folder) / "tasks" / name).glob("*")):
            if path.suffix != ".yaml" and not path.name.endswith("_yaml"):
                continue
            config = yaml.load(path.read_text(), Loader=Loader)
            for key in ["doc_to_text", "doc_to_target", "description", "gen_prefix"]:
                if isinstance(config.get(key), str):
                    yield config[key]


TASK_DOC = {
    "prompt": "def f(x):\n    \"\"\"Doc.\"\"\"\n", "test": "assert f(1) == 1", "entry_point": "f", "text": "Write a function.",
    "test_list": ["assert f(1) == 1", "assert f(2) == 2", "assert f(3) == 3"], "code": "def f(x):\r\n  return x",
    "question": "  How many?\n", "answer": "Three.\n#### 3", "choices": ["w", "x", "y", "z"],
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--lm-eval")
    args = parser.parse_args()
    envs = environments()
    cases = []
    for line in EXPRESSIONS.strip().split("\n"):
        for mode in ["harness", "plain"]:
            cases.append(case(envs[mode], mode, "{{ " + line + " }}", DOC))
    for template in STATEMENTS:
        for mode in ["harness", "chat", "plain"]:
            cases.append(case(envs[mode], mode, template, DOC))
    messages = [{"role": "user", "content": "Hi <there> é\n"}, {"role": "assistant", "content": "<think>x</think>\n\nHello"}, {"role": "user", "content": "Bye"}]
    for template in CHATS:
        for chat in [messages, [{"role": "system", "content": "Be nice."}] + messages]:
            cases.append(case(envs["chat"], "chat", template,
                              {"messages": chat, "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True}))
    if args.lm_eval:
        for template in sorted(set(task_templates(args.lm_eval))):
            for doc in [TASK_DOC, {**TASK_DOC, "is_fewshot": True}]:
                cases.append(case(envs["harness"], "harness", template, doc))
    with open(args.out, "w", encoding="utf-8") as out:
        shared = {json.dumps(DOC): "doc", json.dumps(TASK_DOC): "task_doc"}
        out.write(json.dumps({"doc": DOC, "task_doc": TASK_DOC}, ensure_ascii=True) + "\n")
        for entry in cases:
            name = shared.get(json.dumps(entry["variables"]))
            if name:
                entry["variables"] = name
            out.write(json.dumps(entry, ensure_ascii=True) + "\n")
    print(f"{len(cases)} cases, {sum('error' in c for c in cases)} of them errors")


if __name__ == "__main__":
    main()
