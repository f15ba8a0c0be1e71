"""The parity check on a real vLLM: faults planted in what the server reads are caught, clean loads agree. Each case
starts a server. EVALD_VLLM is as in vllm_case.py."""
import json
import os
import re
import shutil
import struct
import unittest

from evald_case import BINARIES
from vllm_case import CHECKPOINTS, VLLM, VllmCase

STEP = CHECKPOINTS / "step-01200"
TASK = ("quickstart_choice",)
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
# Starts vLLM on another folder than the one that it is told.
OTHER_FOLDER = """import os, sys
other, vllm, serve, _, *rest = sys.argv[1:]
os.execv(vllm, [vllm, serve, other, *rest])
"""


def read_weights(folder):
    data = (folder / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + length]), bytearray(data[8 + length:])


def write_weights(folder, header, tensors):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + tensors)


def exchange_layers(folder):
    header, tensors = read_weights(folder)
    for name in [name for name in header if ".layers.2." in name]:
        other = name.replace(".layers.2.", ".layers.3.")
        header[name], header[other] = header[other], header[name]
    write_weights(folder, header, tensors)


def swap_merges(folder):
    """The two merges that are used most change places with two that are hardly ever used."""
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    merges = tokenizer["model"]["merges"]
    merges[0], merges[-1], merges[1], merges[-2] = merges[-1], merges[0], merges[-2], merges[1]
    path.write_text(json.dumps(tokenizer))


def bf16(low, high):
    return struct.unpack("<f", bytes([0, 0, low, high]))[0]


def fp8(value, scale):
    """The nearest number of e4m3 with this scale."""
    if value == 0:
        return value
    mantissa_step = 2.0 ** (max(-6, int(re.match(r"-?0x[01]\.[0-9a-f]+p([+-]\d+)", (value / scale).hex()).group(1))) - 3)
    return round(value / scale / mantissa_step) * mantissa_step * scale


def round_to_fp8(folder):
    header, tensors = read_weights(folder)
    for name, entry in header.items():
        if name == "__metadata__" or len(entry["shape"]) != 2:
            continue
        begin, end = entry["data_offsets"]
        halves = sorted({bytes(tensors[i:i + 2]) for i in range(begin, end, 2)})
        scale = max(abs(bf16(*half)) for half in halves) / 448
        rounded = {half: struct.pack("<f", fp8(bf16(*half), scale))[2:] for half in halves}
        for i in range(begin, end, 2):
            tensors[i:i + 2] = rounded[bytes(tensors[i:i + 2])]
    write_weights(folder, header, tensors)


def scale_rope(folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["rope_parameters"] = LLAMA3
    path.write_text(json.dumps(config))


class Parity(VllmCase):
    def copy(self, name, source=STEP, change=None):
        folder = self.folder / name
        shutil.copytree(source, folder)
        if change:
            change(folder)
        return folder

    def settings(self, staged, served=None, dtype="auto"):
        command = [VLLM]
        if served:
            program = self.folder / "other_folder.py"
            program.write_text(OTHER_FOLDER)
            command = ["/usr/bin/python3", str(program), str(served), VLLM]
        return [f"checkpoint={staged}", f"engine.command={json.dumps(command)}", f"engine.dtype={dtype}"]

    def parity(self, name, *settings):
        self.run_done(*self.vllm(name, *settings, tasks=TASK))
        report = self.loads(self.folder / "runs" / name)[0]["parity"]
        self.assertEqual(report["outcome"], "agrees", report)
        self.assertGreaterEqual(report["scores"], 54)
        self.assertNotIn("left_out", report)
        document = json.loads((self.folder / "runs" / name / "run.json").read_text())
        self.assertEqual(document["engine"]["parity"], "agrees")
        print(f"{name}: {report}", flush=True)

    def fault(self, name, *settings):
        process = self.evald("run", *self.vllm(name, *settings, tasks=TASK))
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertIn("does not compute this checkpoint", process.stderr)
        print(f"{name}: {re.search('does not compute this checkpoint: (.*)', process.stderr).group(1)}", flush=True)
        return process.stderr

    def test_clean_loads_agree(self):
        scaled = self.copy("scaled", change=scale_rope)
        for dtype in ("auto", "float32", "float16"):
            for step in (CHECKPOINTS / "step-00100", STEP, scaled):
                with self.subTest(dtype=dtype, step=step.name):
                    self.parity(f"{step.name}-{dtype}", *self.settings(step, dtype=dtype))

    def test_planted_faults_are_caught(self):
        scaled = self.copy("scaled", change=scale_rope)
        faults = {"other-step": (STEP, CHECKPOINTS / "step-00600"),
                  "layers": (STEP, self.copy("exchanged", change=exchange_layers)),
                  "fp8": (STEP, self.copy("rounded", change=round_to_fp8)),
                  "rope": (scaled, STEP)}
        for name, (staged, served) in faults.items():
            with self.subTest(fault=name):
                self.assertIn("nats off on average", self.fault(name, *self.settings(staged, served)))
        merges = self.fault("merges", *self.settings(STEP, self.copy("merges", change=swap_merges)))
        self.assertIn("it makes the tokens", merges)

    def test_a_wrong_server_may_be_taken_as_it_is(self):
        settings = self.settings(STEP, CHECKPOINTS / "step-00600")
        self.run_done(*self.vllm("taken", *settings, "engine.parity_seconds=0", tasks=TASK))



if __name__ == "__main__":
    if not os.access(BINARIES / "evald", os.X_OK):
        raise SystemExit(f"no evald in {BINARIES}")
    unittest.main(verbosity=2)
