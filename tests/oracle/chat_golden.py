r"""Writes tests/golden/chat: chat templates in the styles of well-known families, and the text that transformers renders.

    python tests/oracle/chat_golden.py tests/golden/chat

  <style>/    a checkpoint's files that decide a chat: tokenizer_config.json, chat_template.jinja,
              additional_chat_templates/, special_tokens_map.json
  golden.jsonl   {"style", "messages", "add_generation_prompt", "output" or "error"} by
                 apply_chat_template(tokenize=False, continue_final_message=not add_generation_prompt)
  harness.jsonl  the same by HFLM.apply_chat_template, which leaves the system message out if the
                 template raises an error over it
  padding.jsonl  {"files", "output"}: the harness's text from a template that writes the named tokens. If the folder
                 names no padding token, the harness names one (configure_pad_token)

The templates are written for these tests and use the same features as the families' own templates. Needs
transformers 5.23, tokenizers and lm_eval 0.4.13; nothing is downloaded.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

from lm_eval.models.huggingface import HFLM
from lm_eval.models.utils import configure_pad_token
from tokenizers import Tokenizer, models
from transformers import AutoTokenizer, PreTrainedTokenizerFast

NAMED = {"bos_token": "<s>", "eos_token": "</s>"}

LLAMA2 = """\
{%- if messages[0]['role'] == 'system' -%}
  {%- set rules = '<<SYS>>\\n' + messages[0]['content'] + '\\n<</SYS>>\\n\\n' -%}
  {%- set turns = messages[1:] -%}
{%- else -%}
  {%- set rules = '' -%}
  {%- set turns = messages -%}
{%- endif -%}
{%- for turn in turns -%}
  {%- if (turn['role'] == 'user') != (loop.index0 % 2 == 0) -%}
    {{- raise_exception('The roles user and assistant must take turns') -}}
  {%- endif -%}
  {%- if loop.index0 == 0 -%}
    {%- set text = rules + turn['content'] -%}
  {%- else -%}
    {%- set text = turn['content'] -%}
  {%- endif -%}
  {%- if turn['role'] == 'user' -%}
    {{- bos_token + '[INST] ' + text.strip() + ' [/INST]' -}}
  {%- elif turn['role'] == 'assistant' -%}
    {{- ' ' + text.strip() + ' ' + eos_token -}}
  {%- endif -%}
{%- endfor -%}
"""

LLAMA3 = """\
{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not today is defined %}
    {%- set today = "26 Jul 2024" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- the system's turn comes first, with or without a message of its own #}
{%- if messages[0]['role'] == 'system' %}
    {%- set rules = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set rules = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: tools\\n" }}
{%- endif %}
{{- "Knowledge ends: December 2023\\n" }}
{{- "Today: " + today + "\\n\\n" }}
{{- rules }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("Only one call at a time") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + call.name + '", "parameters": ' }}
        {{- call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- else %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable and message.content is not string %}
            {{- message.content | tojson(indent=2) }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

QWEN25 = """\
{%- if tools %}
    {{- '<|im_start|>system\\n# Tools\\n' }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou help people.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

QWEN3 = """\
{%- set ns = namespace(searching=true, last_query=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and not (message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last_query = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if message.role in ["user", "system"] %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set thoughts = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thoughts = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thoughts = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query and (loop.last or thoughts) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + thoughts.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

MISTRAL = """\
{%- set rules = (messages | selectattr('role', 'equalto', 'system') | list | first | default({})).content | default('') %}
{%- set turns = messages | rejectattr('role', 'equalto', 'system') | list %}
{{- bos_token }}
{%- set state = namespace(index=0) %}
{%- for turn in turns %}
    {%- if turn.role in ['user', 'assistant'] %}
        {%- if (turn.role == "user") != (state.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, roles must alternate") }}
        {%- endif %}
        {%- set state.index = state.index + 1 %}
    {%- endif %}
{%- endfor %}
{%- for turn in turns %}
    {%- if turn.role == "user" %}
        {%- if loop.last and rules %}
            {{- "[INST] " + rules + "\\n\\n" + turn.content + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + turn.content + "[/INST]" }}
        {%- endif %}
    {%- elif turn.role == "assistant" %}
        {{- " " + turn.content|trim + eos_token }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are known, got " ~ turn.role) }}
    {%- endif %}
{%- endfor %}
"""

INTERNLM2 = (
    "{{ bos_token }}{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

OLMO2 = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}{{ '<|system|>\n' + message['content'] "
    "+ '\n' }}{% elif message['role'] == 'user' %}{{ '<|user|>\n' + message['content'] + '\n' }}{% elif message['role'] == "
    "'assistant' %}{% if not loop.last %}{{ '<|assistant|>\n' + message['content'] + eos_token + '\n' }}{% else %}{{ "
    "'<|assistant|>\n' + message['content'] + eos_token }}{% endif %}{% endif %}{% if loop.last and "
    "add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}{% endfor %}"
)

CHATML = """\
{% for message in messages %}
{% if message['role'] not in ['system', 'user', 'assistant', 'tool'] %}
{{ raise_exception('unknown role ' ~ message['role']) }}
{% endif %}
    {{- '<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>' }}
{% endfor %}
{% if add_generation_prompt %}
<|im_start|>assistant
{% endif %}
"""

ZEPHYR = """\
{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}
"""

# Gemma's rule for a system message: it raises an error.
NO_SYSTEM = """\
{{ bos_token }}
{%- if messages[0]['role'] == 'system' %}{{ raise_exception('No system message, please') }}{% endif %}
{%- macro turn(role, text) %}{{ '<start_of_turn>' ~ role ~ '\\n' ~ (text | trim) ~ '<end_of_turn>\\n' }}{% endmacro %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}{% continue %}{% endif %}
    {%- if loop.index > 40 %}{% break %}{% endif %}
    {%- if message.role == 'assistant' %}
        {%- generation %}{{ turn('model', message.content) }}{% endgeneration %}
    {%- else %}
        {{- turn(message.role, message.content) }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}
"""

USER = {"role": "user", "content": "How many legs has a spider?\n"}
ANSWER = {"role": "assistant", "content": "<think>\nEight, I think.\n</think>\n\n Eight. "}
SYSTEM = {"role": "system", "content": "  Answer in one word: é 中 🙂 <b>&amp;</b> 'x' \"y\"\n"}
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"type": "function", "function": {"name": "count", "arguments": {"of": "legs <é>", "n": [1, 2.5, None, True]}}}]}
CHATS = [
    [USER], [SYSTEM, USER], [USER, ANSWER, {"role": "user", "content": "Why?"}],
    [SYSTEM, USER, ANSWER, USER, ANSWER, {"role": "user", "content": " \n "}],
    [USER, {"role": "assistant", "content": "The answer is"}],
    [SYSTEM, USER, {"role": "assistant", "content": "The answer is "}],
    [USER, ANSWER, USER, {"role": "assistant", "content": "\n"}], [ANSWER, USER], [USER, USER], [SYSTEM],
    [USER, CALL, {"role": "tool", "content": "8"}, {"role": "tool", "content": "9"}], [{"role": "critic", "content": "x"}],
    [USER, {"role": "user", "content": ""}], [SYSTEM, SYSTEM, USER],
]


def special(content):
    return {"content": content, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
            "__type": "AddedToken"}


# Files of a checkpoint by style: the sources of a template and of special tokens.
STYLES = {
    "llama2": {"tokenizer_config.json": {**NAMED, "unk_token": "<unk>", "chat_template": LLAMA2}},
    "llama3": {"tokenizer_config.json": {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
               "chat_template.jinja": LLAMA3},
    "qwen25": {"tokenizer_config.json": {"bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>",
                                         "chat_template": QWEN25}},
    "qwen3": {"tokenizer_config.json": {"bos_token": None, "eos_token": "<|im_end|>", "chat_template": "not this"},
              "chat_template.jinja": QWEN3.replace("\n", "\r\n")},
    "mistral": {"tokenizer_config.json": {"bos_token": special("<s>"), "eos_token": special("</s>"),
                                          "chat_template": MISTRAL}},
    "internlm2": {"tokenizer_config.json": {**NAMED, "chat_template": INTERNLM2}},
    "olmo2": {"tokenizer_config.json": {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>",
                                        "chat_template": OLMO2}},
    "chatml": {"tokenizer_config.json": {"chat_template": [{"name": "tool_use", "template": "tools"},
                                                           {"name": "default", "template": CHATML}]}},
    "zephyr": {"tokenizer_config.json": {}, "special_tokens_map.json": NAMED, "chat_template.jinja": ZEPHYR,
               "additional_chat_templates/rag.jinja": "{{ messages[0].content }}"},
    "no_system": {"tokenizer_config.json": {**NAMED, "chat_template": NO_SYSTEM}},
}


WRITES_TOKENS = "{{ bos_token }}|{{ eos_token }}|{{ unk_token }}|{{ pad_token }}|{{ messages[0].content }}"
# The tokens that a folder names. Without a padding token, another token is used.
NAMED_TOKENS = [
    {}, NAMED, {"eos_token": "</s>"}, {"bos_token": "<s>"}, {"unk_token": "<unk>"}, {**NAMED, "unk_token": "<unk>"},
    {**NAMED, "unk_token": "a"}, {**NAMED, "pad_token": "<pad>"}, {"unk_token": "<unk>", "pad_token": "</s>"},
    {**NAMED, "unk_token": special("<unk>")}, {"eos_token": special("</s>"), "pad_token": None},
    {**NAMED, "unk_token": None}, {"cls_token": "[C]", "sep_token": "[S]"},
]
CLASSES = ["PreTrainedTokenizerFast", "LlamaTokenizer", "GPT2Tokenizer", "Qwen2Tokenizer", "GPTNeoXTokenizer", "Own"]


def padding_lines():
    for named in NAMED_TOKENS:
        for name in CLASSES:
            for padding in (None, {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None,
                                   "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}):
                with tempfile.TemporaryDirectory() as scratch:
                    Tokenizer(models.BPE(vocab={"a": 0}, merges=[])).save(f"{scratch}/tokenizer.json")
                    tokenizer = json.loads(Path(scratch, "tokenizer.json").read_text())
                    files = {"tokenizer.json": {**tokenizer, "padding": padding},
                             "tokenizer_config.json": {**named, "tokenizer_class": name, "chat_template": WRITES_TOKENS}}
                    write_style(Path(scratch), files)
                    model = TemplateOnly(configure_pad_token(AutoTokenizer.from_pretrained(scratch)))
                    yield {"files": files, "output": model.apply_chat_template([USER], True)}


def write_style(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((content if isinstance(content, str) else json.dumps(content, indent=1) + "\n").encode())


def load(folder):
    """The tokenizer of a style, with a vocabulary of one token that is never used here."""
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(folder, scratch, dirs_exist_ok=True)
        Tokenizer(models.BPE(vocab={"a": 0}, merges=[])).save(f"{scratch}/tokenizer.json")
        return PreTrainedTokenizerFast.from_pretrained(scratch)


class TemplateOnly(HFLM):
    """The harness's Hugging Face backend without a model."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.chat_template_args = {}


def attempt(call, messages, prompt):
    line = {"messages": messages, "add_generation_prompt": prompt}
    try:
        line["output"] = call(messages, prompt)
    except Exception as error:  # noqa: BLE001 - whatever jinja2 or transformers raise
        line["error"] = f"{type(error).__name__}: {error}"[:120]
    return line


def main(target):
    rendered, asked = [], []
    for style, files in STYLES.items():
        write_style(target / style, files)
        tokenizer = load(target / style)
        model = TemplateOnly(tokenizer)
        for chat in CHATS:
            for prompt in (True, False):
                rendered.append({"style": style, **attempt(
                    lambda m, p: tokenizer.apply_chat_template(m, tokenize=False, add_generation_prompt=p,
                                                               continue_final_message=not p), chat, prompt)})
                asked.append({"style": style, **attempt(model.apply_chat_template, chat, prompt)})
    for name, lines in (("golden.jsonl", rendered), ("harness.jsonl", asked), ("padding.jsonl", list(padding_lines()))):
        (target / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(name, len(lines), "lines,", sum("error" in line for line in lines), "errors")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
