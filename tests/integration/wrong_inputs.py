"""The wrong inputs of test_wrong_inputs.py: what a person may do wrong, as functions that make it and return the command.
tests/golden/wrong_inputs.txt has the answers."""
import json
import os
import shutil
import socket
import struct

from evald_case import QUICKSTART

CASES = {}  # by group, then by name
CHECKPOINT = QUICKSTART / "checkpoints" / "step-01200"
UTF8_WRONG = b"checkpoint: q\ntasks: [\xff\xfe]\n"


def case(group, name):
    """Adds a case: a function of the Desk that returns the arguments of evald, or a function that asks a service."""
    def add(make):
        assert name not in CASES.setdefault(group, {}), name
        CASES[group][name] = make
        return make
    return add


class Desk:
    """A folder with a task over 20 documents, in which a case makes its wrong input. Commands run in it."""

    def __init__(self, folder, url=""):
        self.folder = folder
        self.url = url
        self.environment = {}
        self.write("tasks/math.yaml", self.task())
        self.write("data/math.jsonl", "".join(
            json.dumps({"question": f"What is {i} plus 1?", "answer": str(i + 1)}) + "\n" for i in range(20)))

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    @staticmethod
    def task(**changes):
        """A task file, one key a line."""
        task = {"task": "math", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "../data/math.jsonl"}},
                "test_split": "test", "output_type": "generate_until", "doc_to_text": "{{question}}", "doc_to_target": "{{answer}}",
                "generation_kwargs": {"until": ["\n"], "max_gen_toks": 16}, "metric_list": [{"metric": "exact_match"}], **changes}
        return "".join(f"{key}: {json.dumps(value)}\n" for key, value in task.items() if value is not None)

    def eval(self, *lines, name="e.yaml", tasks="[math]", engine="{name: emulated}", **more):
        """An eval.yaml that is right but for its last lines."""
        keys = {"tasks": tasks, "task_dirs": "[tasks]", "engine": engine, "workers": "{count: 1, threads: 1}",
                "metrics": "{processes: 1}", "cache_dir": "cache", "state_dir": "state", "output": "{dir: runs}", **more}
        self.write(name, "".join(f"{key}: {value}\n" for key, value in keys.items() if value is not None)
                   + "".join(line + "\n" for line in lines))
        return name

    def native(self, checkpoint="c", *lines, **more):
        return self.eval(*lines, **{"engine": "{name: native}", "checkpoint": checkpoint, "staging": "{root: shm}", **more})

    def checkpoint(self, name="c", without=(), **config):
        """A good checkpoint but for these keys of config.json."""
        folder = self.folder / name
        folder.mkdir()
        for path in CHECKPOINT.iterdir():
            if path.name not in without:
                (folder / path.name).symlink_to(path)
        if config:
            self.replace("config.json", json.dumps({**json.loads((CHECKPOINT / "config.json").read_text()), **config}), name)
        return folder

    def replace(self, file, content, name="c"):
        (self.folder / name / file).unlink(missing_ok=True)
        self.write(f"{name}/{file}", content)

    def tensors(self, change):
        """Changes the header and the data of the checkpoint's weights."""
        content = (CHECKPOINT / "model.safetensors").read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        header, data = json.loads(content[8:8 + length]), content[8 + length:]
        data = change(header, data) or data
        text = json.dumps(header).encode()
        self.replace("model.safetensors", struct.pack("<Q", len(text)) + text + data)

    def rows(self, *rows, name="data/math.jsonl"):
        self.write(name, "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))


# ---- eval.yaml

def simple(name, *lines, command="validate", group="config", more=(), **keys):
    @case(group, name)
    def make(desk):
        return [command, desk.eval(*lines, **keys), *more]


@case("config", "no file")
def _(desk):
    return ["run", "nofile.yaml"]


@case("config", "no file: validate")
def _(desk):
    return ["validate", "nofile.yaml"]


simple("tasks misspelt", "taks: [math]", tasks=None)
simple("output is text", output="runs")
simple("count is text", workers="{count: two}")
simple("nested key misspelt", workers="{conut: 2}")
simple("count of 0", workers="{count: 0}")
simple("tasks is empty", tasks="[]")
simple("tasks is text", tasks="math")
simple("task misspelt", tasks="[mth]")
simple("several tasks misspelt", tasks="[mth, gsm8, math]")
simple("key under a wrong name", "model: c")
simple("key in the wrong place", "max_gen_toks: 16")
simple("limit of 0", "limit: 0")
simple("limit of 1.5", "limit: 1.5")
simple("shots of -1", "num_fewshot: -1")
simple("all at once", "taks: 5", "seed: abc", "bootstrap_iters: -1", workers="{count: two, thread: 1}", engine="{name: emulated, delay: 3}",
       checkpoint="nowhere", data_dir="nodata", limits="{memory: 5 apples}")
simple("not YAML", "a: b: c")
simple("key given twice", "seed: 1", "seed: 2")
simple("second document", "---", "seed: 1")
simple("output name with a slash", output="{dir: runs, name: a/b}")
simple("bytes without a unit", staging="{keep: lots}")
simple("command without results", tasks="[{name: prog, command: [prog]}]")
simple("command as text", tasks="[{name: prog, command: prog --model x}]")
simple("command with an unknown placeholder", tasks="[{name: prog, command: [prog, '{modle}'], results: {file: a.json, scores: {acc: $.acc}}}]")
simple("sample metric unknown", tasks="[{task: math, sample_metrics: [pas@4]}]")
simple("limit and limit_total", tasks="[{task: math, limit: 3, limit_total: 4}]")
simple("task twice with other settings", tasks="[{task: math, limit: 3}, {task: math, limit: 4}]")
simple("template arguments without a template", "chat_template_args: {a: 1}")
simple("chat template without a checkpoint", "chat_template: true")
simple("date of a template", "chat_date: yesterday")
simple("thinking without a template", engine="{name: emulated, enable_thinking: true}")
simple("generation_config", "generation_config: never")
simple("task entry without task", tasks="[{taks: math}]")
simple("task entry of numbers", tasks="[[1, 2]]")
simple("judge with an unknown key", "judge: {base_url: 'http://127.0.0.1:9/v1', model: m, temprature: 1}")
simple("judge's key not set", "judge: {base_url: 'http://127.0.0.1:9/v1', model: m, api_key_env: EVALD_NO_SUCH_KEY}")
simple("judge's address", "judge: {base_url: 127.0.0.1, model: m}")
simple("shots too many", "num_fewshot: 5000")
simple("shots of 500", "num_fewshot: 500")
simple("generation_kwargs misspelt", "generation_kwargs: {temprature: 1}")
simple("generation_kwargs of text", "generation_kwargs: {temperature: hot}")
simple("engine unknown", engine="{name: natvie}")
simple("engine of another tool", engine="{name: hf}")
simple("engine setting of another type", engine="{name: emulated, delay_ms: long}")
simple("replay of nothing", engine="{name: replay, generations: nowhere}")
simple("openai without an address", engine="{name: openai, model: m}")
simple("device that is none", workers="{devices: ['cuda:0']}")
simple("devices and count", workers="{devices: ['cpu:0'], count: 1}")
simple("task_dirs of a folder that is not there", task_dirs="[tasks, more]")


@case("config", "empty file")
def _(desk):
    desk.write("e.yaml", "")
    return ["validate", "e.yaml"]


@case("config", "binary file")
def _(desk):
    desk.write("e.yaml", bytes(range(256)))
    return ["validate", "e.yaml"]


@case("config", "file not UTF-8")
def _(desk):
    desk.write("e.yaml", UTF8_WRONG)
    return ["validate", "e.yaml"]


@case("config", "tab")
def _(desk):
    desk.write("e.yaml", "checkpoint: c\n\ttasks: [math]\n")
    return ["validate", "e.yaml"]


@case("config", "folder in place of the file")
def _(desk):
    return ["run", "tasks"]


@case("config", "checkpoint that is not there")
def _(desk):
    return ["validate", desk.native("q/checkpoints/step-09999")]


@case("config", "no checkpoint")
def _(desk):
    return ["validate", desk.eval(engine="{name: native}")]


# ---- the command line

def typed(name, *arguments, group="command line"):
    @case(group, name)
    def make(desk):
        desk.eval()
        return list(arguments)


typed("set without a value", "run", "e.yaml", "--set", "foo")
typed("set of an unknown key", "run", "e.yaml", "--set", "workers.coutn=3")
typed("set of another type", "run", "e.yaml", "--set", "workers.count=x")
typed("set within a number", "run", "e.yaml", "--set", "seed.a=1")
typed("set that is not YAML", "run", "e.yaml", "--set", "tasks=[a")
typed("error as JSON", "run", "e.yaml", "--set", "workers.count=x", "--json")
typed("two errors as JSON", "run", "e.yaml", "--set", "workers.count=x", "--set", "seed=y", "--json")
typed("option misspelt", "run", "e.yaml", "--limt", "3")
typed("option misspelt with =", "run", "e.yaml", "--limt=3")
typed("option of another command", "run", "e.yaml", "--priority", "3")
typed("option without its value", "run", "e.yaml", "--limit")
typed("command misspelt", "rnu", "e.yaml")
typed("no command")
typed("file missing", "run")
typed("two files", "run", "e.yaml", "f.yaml")
typed("limit of text", "validate", "e.yaml", "--limit", "ten")
typed("gates file that is not there", "run", "e.yaml", "--gates", "nogates.yaml")
typed("baseline that is not there", "run", "e.yaml", "--baseline", "norun")
typed("data folder that is not there", "run", "e.yaml", "--data-dir", "nodata")
typed("log level", "--log-level", "loud", "validate", "e.yaml")
typed("resume of an unknown run", "run", "e.yaml", "--resume", "nope")
typed("resume without any run", "run", "e.yaml", "--resume")
typed("task unknown on the command line", "validate", "e.yaml", "--tasks", "math,mth")
typed("tasks: needs of an unknown task", "tasks", "--needs", "gsm9k")
typed("compare without runs", "compare", "tasks", "data")
typed("compare with a path that is not there", "compare", "norun", "tasks")
typed("translate of another program", "translate", "python", "x.py")
typed("translate of an unknown option", "translate", "lm_eval", "--model", "hf", "--taks", "gsm8k")
typed("translate of nothing", "translate")
typed("stage of nothing", "stage")
typed("stage of a folder that is not there", "stage", "/nope", "--root", "shm")
typed("stage: drop of an unknown fingerprint", "stage", "--drop", "abc", "--root", "shm")
typed("stage: drop by another digit", "stage", "--drop", "xyz", "--root", "shm")
typed("stage: a size", "stage", "tasks", "--keep", "much", "--root", "shm")
typed("submit of nothing", "submit")
typed("submit of a file that is not there", "submit", "nofile.yaml")
typed("server that is not there", "submit", "e.yaml", "--server", "http://127.0.0.1:1")
typed("server without http", "status", "--server", "127.0.0.1:8642")
typed("watch: policy", "watch", "--checkpoints", "tasks", "e.yaml", "--policy", "newst")
typed("agent without a server", "agent")
typed("agent with a bad server", "agent", "--server", "eval.example")
typed("endpoint of a folder that is not there", "endpoint", "nowhere")
typed("serve on all addresses", "serve", "--set", "listen=0.0.0.0:0", "--set", "state_dir=state")
typed("serve: port", "serve", "--set", "listen=127.0.0.1:99999")
typed("simulate: a policy", "simulate", "--policy", "fastest")
typed("priors of no run", "priors", "import", "e.yaml")
typed("completion of an unknown shell", "completion", "tcsh")
typed("logs of no log", "logs", "nothing.log", "--server", "http://127.0.0.1:1")


@case("command line", "checkpoint without tasks")
def _(desk):
    desk.checkpoint()
    return ["run", "c"]


@case("command line", "serve: a key misspelt")
def _(desk):
    desk.write("s.yaml", "lisen: 127.0.0.1:8642\nactive_runs: many\n")
    return ["serve", "s.yaml"]


@case("command line", "serve: a port in use")
def _(desk):
    desk.taken = socket.socket()
    desk.taken.bind(("127.0.0.1", 0))
    desk.taken.listen()
    return ["serve", "--set", f"listen=127.0.0.1:{desk.taken.getsockname()[1]}", "--set", "state_dir=state"]


@case("command line", "serve: tokens in clear text")
def _(desk):
    desk.write("tok", "secret-token admin alice\n")
    return ["serve", "--set", "tokens=tok", "--set", "listen=127.0.0.1:0", "--set", "state_dir=state"]


@case("command line", "serve: a watch without its file")
def _(desk):
    desk.write("s.yaml", "listen: 127.0.0.1:0\nwatch:\n  - {checkpoints: c, eval: none.yaml}\n  - {checkpoint: c}\n")
    return ["serve", "s.yaml"]


@case("command line", "simulate: a bad workload")
def _(desk):
    desk.eval()
    return ["simulate", "--workload", "e.yaml"]


@case("command line", "output that cannot be written")
def _(desk):
    return ["run", desk.eval(output="{dir: /proc/x}")]


@case("command line", "output is a file")
def _(desk):
    return ["run", desk.eval(output="{dir: e.yaml}")]


@case("command line", "state folder that cannot be written")
def _(desk):
    return ["run", desk.eval(state_dir="/proc/evald")]


@case("command line", "run that exists")
def _(desk):
    desk.write("runs/same/run.json", {"id": "same", "state": "done", "created": 1, "deciding": {}})
    return ["run", desk.eval(output="{dir: runs, name: same}")]


@case("command line", "staging root of everybody")
def _(desk):
    (desk.folder / "shm").mkdir()
    (desk.folder / "shm").chmod(0o1777)
    desk.checkpoint()
    return ["run", desk.native()]


@case("command line", "cuda:all without a GPU")
def _(desk):
    desk.checkpoint()
    return ["run", desk.native(workers="{devices: ['cuda:all']}")]


# ---- scoring

def score(name, *lines, task="math", more=()):
    @case("score", name)
    def make(desk):
        desk.rows(*lines, name="g.jsonl")
        return ["score", "--task", task, "--generations", "g.jsonl", "--task-dir", "tasks", *more]


def answer(number, **changes):
    return {"doc_id": number, "idx": 0, "repeat": 0, "text": "1", "finish": "stop", "tokens_in": 1, "tokens_out": 1,
            "truncated": 0, **changes}


score("other columns", {"task_id": 1})
score("another type", answer(0, text=5))
score("completions of a task without ids", {"task_id": "a/0", "completion": "x"})
score("not JSON", answer(0), '{"doc_id": 1, ')
score("documents missing", answer(0), answer(3))
score("document that is not there", *[answer(i) for i in range(20)], answer(99))
score("document twice", *[answer(i) for i in range(20)], answer(4, text="other"))
score("task unknown", answer(0), task="mth")
score("empty file")
score("judge without a model", answer(0), more=("--judge-url", "http://127.0.0.1:9/v1"))


@case("score", "no file")
def _(desk):
    return ["score", "--task", "math", "--generations", "nope.jsonl"]


# ---- checkpoints

def model(name, change=None, command="validate", without=(), lines=(), **config):
    @case("checkpoint", name)
    def make(desk):
        desk.checkpoint(without=without, **config)
        if change:
            change(desk)
        return [command, desk.native("c", *lines)]


def weights(desk):
    return (CHECKPOINT / "model.safetensors").read_bytes()


def cut(desk):
    desk.replace("model.safetensors", weights(desk)[:2000000])


def cut_tokenizer(desk):
    desk.replace("tokenizer.json", (CHECKPOINT / "tokenizer.json").read_bytes()[:50000])


def shards(desk):
    (desk.folder / "c/model.safetensors").rename(desk.folder / "c/model-00001-of-00002.safetensors")
    desk.replace("model.safetensors.index.json", {"weight_map": {
        "model.embed_tokens.weight": "model-00001-of-00002.safetensors", "model.norm.weight": "model-00002-of-00002.safetensors"}})


def without_a_tensor(header, data):
    """Takes the last tensor of the file away."""
    name = max((n for n in header if n != "__metadata__"), key=lambda n: header[n]["data_offsets"][1])
    begin = header.pop(name)["data_offsets"][0]
    return data[:begin]


def other_head(header, data):
    header["lm_head.weight"] = {"dtype": "BF16", "shape": [1024, 192], "data_offsets": [len(data), len(data) + 1024 * 192 * 2]}
    return data + os.urandom(1024 * 192 * 2)


def of_another_type(header, data):
    header["model.embed_tokens.weight"]["dtype"] = "I16"


def unknown_type(header, data):
    header["model.embed_tokens.weight"]["dtype"] = "F4_E2M1X"


def further_tensor(header, data):
    header["model.layers.0.self_attn.q_proj.bias"] = {"dtype": "BF16", "shape": [192], "data_offsets": [len(data), len(data) + 384]}
    return data + bytes(384)


model("weights cut", cut)
model("weights cut: run", cut, command="run")
model("tokenizer cut", cut_tokenizer)
model("tokenizer cut: run", cut_tokenizer, command="run")
model("no tokenizer", without=("tokenizer.json",))
model("no config", without=("config.json",))
model("no weights", without=("model.safetensors",))
model("config not JSON", lambda desk: desk.replace("config.json", '{"architectures": ["LlamaForCausalLM"], \n'))
model("config not JSON: run", lambda desk: desk.replace("config.json", '{"architectures": ["LlamaForCausalLM"], \n'), command="run")
model("config a list", lambda desk: desk.replace("config.json", "[]"))
model("architecture not served", architectures=["MambaForCausalLM"], model_type="mamba")
model("architecture not served: run", architectures=["MambaForCausalLM"], model_type="mamba", command="run")
model("other hidden size", hidden_size=256)
model("other hidden size: run", hidden_size=256, command="run")
model("more layers", num_hidden_layers=6)
model("heads that do not divide", num_key_value_heads=4)
model("rope scaling unknown", rope_parameters={"rope_theta": 10000.0, "rope_type": "longrope"})
model("activation unknown", hidden_act="swish2")
model("quantised", quantization_config={"bits": 4})
model("vocabulary of 0", vocab_size=0)
model("tensor missing", lambda desk: desk.tensors(without_a_tensor))
model("tensor too many", lambda desk: desk.tensors(further_tensor))
model("head that is not tied", lambda desk: desk.tensors(other_head))
model("type not served", lambda desk: desk.tensors(of_another_type))
model("type unknown", lambda desk: desk.tensors(unknown_type))
model("header of nonsense", lambda desk: desk.replace("model.safetensors", b"\x9a\x87\x65\x43\x21\x0f\xed\x87" + bytes(100)))
model("header that is NaN", lambda desk: desk.replace("model.safetensors", struct.pack("<Q", 12) + b'{"a": NaN}  ' + bytes(100)))
model("weights empty", lambda desk: desk.replace("model.safetensors", b""))
model("weights of git LFS", lambda desk: desk.replace(
    "model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 4334640\n"))
model("shard missing", shards)
model("index not JSON", lambda desk: desk.replace("model.safetensors.index.json", "{"))
model("chat template missing", lines=("chat_template: true",))
model("chat template broken", lambda desk: desk.replace("chat_template.jinja", "{% for m in messages %}{{ m.content }}"),
      lines=("chat_template: true",))
model("chat template that fails", lambda desk: desk.replace("chat_template.jinja", "{{ raise_exception('no system turn') }}"),
      lines=("chat_template: true",))
model("answers longer than the context", lines=("generation_kwargs: {max_gen_toks: 100000}",))
model("answers longer than the context: run", lines=("generation_kwargs: {max_gen_toks: 100000}",), command="run")
model("several at once", lambda desk: (cut_tokenizer(desk), desk.rows({"q": 1})), hidden_size=256)


@case("checkpoint", "context beyond the model's")
def _(desk):
    desk.checkpoint()
    return ["validate", desk.native(engine="{name: native, max_length: 100000}")]


@case("checkpoint", "a file in place of the folder")
def _(desk):
    desk.write("c", "x")
    return ["validate", desk.native()]


@case("checkpoint", "empty folder")
def _(desk):
    (desk.folder / "c").mkdir()
    return ["validate", desk.native()]


@case("checkpoint", "endpoint of a broken one")
def _(desk):
    desk.checkpoint()
    desk.replace("config.json", "{")
    return ["endpoint", "c", "--port", "0"]


# ---- tasks and data

def task(name, command="validate", rows=None, more=(), lines=(), text=None, **changes):
    @case("task", name)
    def make(desk):
        desk.write("tasks/math.yaml", text or desk.task(**changes))
        if rows is not None:
            desk.rows(*rows)
        return [command, desk.eval(*lines), *more]


def data(name, *rows, command="validate"):
    task(name, command=command, rows=rows)


data("broken line", {"question": "a", "answer": "b"}, {"question": "a", "answer": "b"}, '{"question": "abc", "answer": ')
data("broken line: run", {"question": "a", "answer": "b"}, {"question": "a", "answer": "b"}, '{"question": "abc", "answer": ', command="run")
data("other columns", {"q": "a", "a": "b"})
data("other columns: run", {"q": "a", "a": "b"}, command="run")
data("column of the target missing", {"question": "a", "solution": "b"})
data("no documents")
data("a list in a line", [1, 2])
data("key twice", '{"question": "a", "question": "b", "answer": "c"}')
task("data file not there", dataset_kwargs={"data_files": {"test": "../data/none.jsonl"}})
task("data file not there: run", dataset_kwargs={"data_files": {"test": "../data/none.jsonl"}}, command="run")
task("dataset not there", dataset_path="openai/gsm8k", dataset_name="main", dataset_kwargs=None)
task("dataset not in its folder", dataset_path="openai/gsm8k", dataset_name="main", dataset_kwargs=None, more=("--data-dir", "data"))
task("no split", test_split=None)
task("split that is not there", test_split="tset")
task("metric unknown", metric_list=[{"metric": "exact_mach"}])
task("metric unknown: run", metric_list=[{"metric": "exact_mach"}], command="run")
task("aggregation unknown", metric_list=[{"metric": "exact_match", "aggregation": "maen"}])
task("filter unknown", filter_list=[{"name": "f", "filter": [{"function": "regx"}]}])
task("filter without a function", filter_list=[{"name": "f", "filter": [{"regex_pattern": "a"}]}])
task("regular expression", filter_list=[{"name": "f", "filter": [{"function": "regex", "regex_pattern": "(a"}, {"function": "take_first"}]}])
task("output type unknown", output_type="generate")
task("choices missing", output_type="multiple_choice", metric_list=[{"metric": "acc"}])
task("template not closed", doc_to_text="{{question")
task("template with an unknown filter", doc_to_text="{{question | upcase}}")
task("key misspelt", numfewshot=5)
task("several wrong things", metric_list=[{"metric": "exact_mach"}], filter_list=[{"name": "f", "filter": [{"function": "regx"}]}])
task("shots of nothing", num_fewshot=3, fewshot_split="train")
task("shots of text", num_fewshot="five")
task("function that is not built in", text=Desk.task(doc_to_text=None) + "doc_to_text: !function utils.text\n")
task("not YAML", text="task: math\n  a: b\n")
task("answers too long", generation_kwargs={"until": ["\n"], "max_gen_toks": 0})
task("repeats of 0", repeats=0)
task("judge that nobody named", metric_list=[{"metric": "judge", "prompt": "{{answer}}?", "verdict": "yes"}])


# ---- gates

def gates(name, text, command="validate"):
    @case("gates", name)
    def make(desk):
        desk.write("g.yaml", text)
        return [command, desk.eval(), "--gates", "g.yaml"]


gates("bound misspelt", "baseline: e.yaml\nrules:\n  - {task: math, metric: exact_match, max_dorp: 0}\n")
gates("no bound", "rules:\n  - {task: math, metric: exact_match}\n")
gates("rules misspelt", "rulse:\n  - {task: math, metric: exact_match, min: 0}\n")
gates("task unknown", "rules:\n  - {task: mth, metric: exact_match, min: 0.5}\n")
gates("metric unknown", "rules:\n  - {task: math, metric: acc, min: 0.5}\n")
gates("two bounds", "rules:\n  - {task: math, metric: exact_match, min: 0.5, max: 0.7}\n")
gates("several", "rules:\n  - {task: math, metric: exact_match, min: high}\n  - {taks: math, metric: exact_match, min: 0}\n  - {task: math, min: 0}\n")
gates("no baseline", "rules:\n  - {task: math, metric: exact_match, max_drop: 0.1}\n")
gates("baseline not there", "baseline: norun\nrules:\n  - {task: math, metric: exact_match, max_drop: 0.1}\n")
gates("tier unknown", "rules:\n  - {task: math, metric: exact_match, min: 0, tier: critcal}\n")
gates("share of 2", "truncated: {max: 2}\n")
gates("empty", "")


# ---- runs that cannot go on

@case("run", "server that is not there")
def _(desk):
    return ["run", "-q", desk.eval(engine="{name: openai, base_url: 'http://127.0.0.1:9/v1', model: m, ready_seconds: 1, retries: 0}")]


@case("run", "program of an engine that is not there")
def _(desk):
    desk.checkpoint()
    return ["run", "-q", desk.native(engine="{name: vllm, command: [/nowhere/vllm]}")]


@case("run", "program of an engine that ends")
def _(desk):
    desk.checkpoint()
    desk.write("fails", "#!/bin/sh\necho cannot do that >&2\nexit 127\n").chmod(0o755)
    return ["run", "-q", desk.native(engine="{name: vllm, command: [" + str(desk.folder / "fails") + "]}")]


def code(desk, sandbox):
    source = (QUICKSTART / "tasks" / "quickstart_code.yaml").read_text().replace("../data/code/test.jsonl", "../data/code.jsonl")
    desk.write("tasks/quickstart_code.yaml", source)
    shutil.copy(QUICKSTART / "data/code/test.jsonl", desk.folder / "data/code.jsonl")
    return desk.eval(tasks="[quickstart_code]", metrics="{processes: 1, sandbox: " + sandbox + "}")


@case("run", "Python of the sandbox that is not there")
def _(desk):
    return ["run", code(desk, "{python: /usr/bin/nopython}")]


@case("run", "Python of the sandbox that is not there: validate")
def _(desk):
    return ["validate", code(desk, "{python: /usr/bin/nopython}")]


# ---- a service

def rest(name, method, path, body):
    @case("service", name)
    def make(desk):
        desk.eval()
        value = body(desk) if callable(body) else body
        return (method, path, value)


def submission(desk, **changes):
    config = {"tasks": ["math"], "task_dirs": [str(desk.folder / "tasks")], "engine": {"name": "emulated"}}
    config.update(changes)
    return {"config": {key: value for key, value in config.items() if value is not None}}


def broken_tokenizer(desk):
    desk.checkpoint()
    cut_tokenizer(desk)
    return submission(desk, engine=None, checkpoint=str(desk.folder / "c"))


def broken_model(desk):
    desk.checkpoint(hidden_size=256)
    return submission(desk, engine=None, checkpoint=str(desk.folder / "c"))


def without_data(desk):
    (desk.folder / "data/math.jsonl").unlink()
    return submission(desk)


def without_column(desk):
    desk.rows({"q": 1})
    return submission(desk)


def too_long(desk):
    desk.checkpoint()
    return submission(desk, engine=None, checkpoint=str(desk.folder / "c"), generation_kwargs={"max_gen_toks": 4096})


def bad_metric(desk):
    desk.write("tasks/math.yaml", desk.task(metric_list=[{"metric": "exact_mach"}]))
    return submission(desk)


rest("run with a cut tokenizer", "POST", "/v1/runs", broken_tokenizer)
rest("run with other shapes", "POST", "/v1/runs", broken_model)
rest("run without data", "POST", "/v1/runs", without_data)
rest("run without a column", "POST", "/v1/runs", without_column)
rest("run with too long answers", "POST", "/v1/runs", too_long)
rest("run with an unknown metric", "POST", "/v1/runs", bad_metric)
rest("run with several faults", "POST", "/v1/runs", lambda desk: submission(desk, taks=[], seed="x"))
rest("member unknown", "POST", "/v1/runs", {"confg": {}})
rest("neither config nor yaml", "POST", "/v1/runs", {})
rest("priority of 1000", "POST", "/v1/runs", lambda desk: {**submission(desk), "priority": 1000})
rest("base relative", "POST", "/v1/runs", lambda desk: {**submission(desk), "base": "here"})
rest("run that is not there", "GET", "/v1/runs/nope", None)
rest("run to cancel that is not there", "POST", "/v1/runs/nope/cancel", None)
rest("path that is not there", "GET", "/v1/rnus", None)
rest("parameter unknown", "GET", "/v1/runs?stat=done", None)
rest("state unknown", "GET", "/v1/runs?state=dnoe", None)
rest("watch of a column that is missing", "POST", "/v1/watches",
     lambda desk: {**without_column(desk), "checkpoints": str(desk.folder / "tasks")})
rest("watch of a folder that is not there", "POST", "/v1/watches", lambda desk: {**submission(desk), "checkpoints": "/nope/nope"})


def client(name, *arguments, make=None):
    @case("service", name)
    def command(desk):
        desk.eval(name="h.yaml", **(make or {}))
        return [*arguments, "--server", desk.url]


client("submit: a task misspelt", "submit", "h.yaml", make={"tasks": "[nope]"})
client("submit: a key misspelt", "submit", "h.yaml", make={"taks": "[a]"})
client("status of an unknown run", "status", "nope")
client("results of an unknown run", "results", "nope")
client("cancel of an unknown run", "cancel", "nope")
client("logs of an unknown log", "logs", "nothing.log")
client("submit: resume of an unknown run", "submit", "--resume", "nope")
client("watch command: a folder that is not there", "watch", "--checkpoints", "/nope/nope", "h.yaml")
