"""What tests of the engine `vllm` share. EVALD_VLLM names the `vllm` program of a Python with
vLLM 0.32 or later; its CPU build will do. Without the variable, the one on PATH is used."""
import json
import os
import shutil
import struct
import subprocess

from engine_case import CHECKPOINTS, EngineCase
from evald_case import QUICKSTART, SOURCE

EXAMPLE = SOURCE / "examples" / "engines" / "vllm.yaml"
VLLM = shutil.which(os.environ.get("EVALD_VLLM", "vllm"))
LIMIT = int(os.environ.get("EVALD_VLLM_LIMIT", "12"))  # documents of each task
# Choices of several tokens, which are scored in another way than those of one, and rolling log-likelihoods.
MORE_TASKS = {
    "words": """output_type: multiple_choice
doc_to_text: "{{question.strip()}}\\nAnswer:"
doc_to_choice: "{{[choices[0] ~ ' the old', choices[1] ~ ' the old', choices[2] ~ ' the old', choices[3] ~ ' the old']}}"
doc_to_target: answer
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
""",
    "rolling": """output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{question}} {{choices[0]}}"
metric_list: [{metric: bits_per_byte}]
"""}


def why_not():
    """The reason for which vLLM cannot be used; empty if it can."""
    if VLLM is None:
        return "no `vllm` program: EVALD_VLLM may name one"
    try:
        shown = subprocess.run([VLLM, "--version"], capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{VLLM}: {error}"
    return "" if shown.returncode == 0 else f"{VLLM} --version: exit status {shown.returncode}"


def untie(source, target):
    """A copy of a checkpoint whose output layer is a tensor of its own, with the same values."""
    shutil.copytree(source, target)
    config = json.loads((target / "config.json").read_text())
    config["tie_word_embeddings"] = False
    (target / "config.json").write_text(json.dumps(config))
    data = (target / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    tensors = data[8 + length:]
    embedding = dict(header["model.embed_tokens.weight"])
    begin, end = embedding["data_offsets"]
    embedding["data_offsets"] = [len(tensors), len(tensors) + end - begin]
    header["lm_head.weight"] = embedding
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (target / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + tensors + tensors[begin:end])


class VllmCase(EngineCase):
    LIMIT = LIMIT

    why_not = staticmethod(why_not)

    def vllm(self, name, *settings, tasks=None):
        """The arguments of `run` for the example in fp32, in which answers are the native engine's."""
        return [EXAMPLE, *self.arguments(name, f"engine.command={json.dumps([VLLM])}", "engine.dtype=float32",
                                         "engine.kv_cache=1GiB", *settings, tasks=tasks)]

    def write_more_tasks(self):
        data = QUICKSTART / "data" / "choice" / "test.jsonl"
        for name, text in MORE_TASKS.items():
            (self.tasks / f"{name}.yaml").write_text(
                f"task: {name}\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {data}}}}}\n"
                f"test_split: test\nmetadata: {{version: 1.0}}\n{text}")

    @staticmethod
    def loads(folder):
        """What the worker reported of each load, from the run's timeline."""
        timeline = json.loads((folder / "timeline.json").read_text())
        return [event["args"] for event in timeline["traceEvents"] if event.get("name") == "pull" and "scoring" in event.get("args", {})]
