"""Scores on the GPU against those on the CPU. The allowed difference is that of bf16."""

import json
import math

from outcome import Failure, Outcome

# Multiple of the spread between transformers in bf16 and the CPU's fp32 on the same requests.
SPREAD_TIMES = 1.25
SPREAD_REQUESTS = 400


def compare(check):
    tasks, sandbox = ["quickstart_math", "quickstart_choice"], sandbox_works(check)
    if sandbox:  # programs of a model are only run in a sandbox
        tasks.insert(0, "quickstart_code")
    quickstart = both(check, "quickstart", tasks, task_dirs=[str(check.layout.quickstart / "tasks")])
    count = 57 if check.emulated else 2000
    mmlu = both(check, "mmlu", [{"task": "mmlu", "limit_total": count}], data_dir=str(check.layout.data))
    figures = {"sandbox": sandbox, "quickstart": scores_of(quickstart), "mmlu": scores_of(mmlu)}
    samples = [answers(run) for run in mmlu]
    figures["loglikelihoods"] = difference = differences(*samples)
    problems = [f"{task}: {gpu['value']} on the GPU, {cpu['value']} on the CPU"
                for task, (cpu, gpu) in figures["quickstart"].items()
                if abs(cpu["value"] - gpu["value"]) > 2 * max(cpu["stderr"], 0.01)]
    figures["spread"] = spread = bf16_spread(check, samples[0])
    if "rms" in spread and difference["rms"] > SPREAD_TIMES * spread["rms"]:
        problems.append(f"log-likelihoods are {difference['rms']:.2e} from the CPU's, "
                        f"transformers' in bf16 {spread['rms']:.2e}")
    if problems:
        raise Failure("; ".join(problems), figures)
    said = f"{difference['requests']} log-likelihoods within {difference['largest']:.2e} (rms {difference['rms']:.2e}"
    said += f"; transformers in bf16: {spread['rms']:.2e})" if "rms" in spread else f"; {spread['skipped']})"
    return Outcome("passed", f"{said}, {difference['answers_changed']} of {difference['questions']} answers changed",
                   figures)


def sandbox_works(check):
    doctor = check.try_program(check.layout.binaries / "evald", "doctor", "--json")
    found = [entry for entry in json.loads(doctor.output)["checks"] if entry["what"].startswith("sandbox")]
    return bool(found) and all(entry["available"] for entry in found)


def both(check, name, tasks, **config):
    """One run on the CPU and one on the GPU. Returns their folders."""
    gpu = f"cuda:{check.gpu}" if check.gpu else check.devices()[0]["id"]
    runs = []
    for kind, workers in (("cpu", {"count": 2}), ("gpu", {"devices": [gpu]})):
        config.update(checkpoint=str(check.layout.quickstart / "checkpoints/step-01200"), tasks=tasks,
                      engine={"name": "native"}, workers=workers, staging={"root": str(check.scratch / "staging")},
                      cache_dir=str(check.scratch / "cache"), state_dir=str(check.scratch / f"state-{kind}"),
                      output={"dir": str(check.scratch / "runs"), "name": f"{name}-{kind}"})
        file = check.scratch / f"{name}-{kind}.json"
        file.write_text(json.dumps(config))
        check.program(check.layout.binaries / "evald", "run", file, "--quiet")
        runs.append(check.scratch / "runs" / f"{name}-{kind}")
    return runs


def scores_of(runs):
    """task -> (score on the CPU, score on the GPU), for the main metric."""
    found = {}
    results = [json.loads((run / "results.json").read_text())["results"] for run in runs]
    for task in results[0]:
        found[task] = tuple(main_score(result[task]) for result in results)
    return found


def main_score(entry):
    for key, value in entry.items():
        name, comma, kind = key.partition(",")
        if comma and not name.endswith("_stderr"):
            stderr = entry.get(f"{name}_stderr,{kind}")
            return {"metric": key, "value": value, "stderr": stderr if isinstance(stderr, float) else 0}
    raise Failure(f"results without a metric: {entry}")


def answers(run):
    """(task, document) -> its choices: [(context, continuation, log-likelihood)]."""
    found = {}
    for path in sorted(run.glob("samples_*.jsonl")):
        for line in path.read_text().splitlines():
            sample = json.loads(line)
            arguments = sample["arguments"]
            texts = [arguments[f"gen_args_{index}"] for index in range(len(arguments))]
            found[path.stem, sample["doc_id"]] = [
                (text["arg_0"], text["arg_1"], float(answer[0][0]))
                for text, answer in zip(texts, sample["resps"], strict=True)]
    return found


def differences(cpu, gpu):
    if cpu.keys() != gpu.keys():
        raise Failure(f"{len(cpu)} documents on the CPU, {len(gpu)} on the GPU")
    apart, changed = [], 0
    for key, choices in cpu.items():
        ours = [choice[2] for choice in choices]
        theirs = [choice[2] for choice in gpu[key]]
        apart += [abs(a - b) for a, b in zip(ours, theirs, strict=True)]
        changed += ours.index(max(ours)) != theirs.index(max(theirs))
    return {"requests": len(apart), "questions": len(cpu), "answers_changed": changed, "largest": max(apart),
            "rms": root_mean_square(apart)}


def root_mean_square(values):
    return math.sqrt(sum(value * value for value in values) / len(values))


def bf16_spread(check, cpu):
    """The distance of transformers in bf16 from the CPU's numbers on the same requests."""
    requests = [choice for choices in cpu.values() for choice in choices]
    requests = requests[::max(1, len(requests) // SPREAD_REQUESTS)]
    file = check.scratch / "spread.json"
    file.write_text(json.dumps([{"context": context, "continuation": continuation}
                                for context, continuation, _ in requests]))
    report = check.python("peers.py", "choice", check.layout.quickstart / "checkpoints/step-01200", "--requests", file,
                          "--device", "cpu" if check.emulated else "cuda")
    if "skipped" in report:
        return {"skipped": f"no spread to compare with: {report['skipped']}"}
    apart = [abs(a - choice[2]) for a, choice in zip(report["loglikelihoods"], requests, strict=True)]
    return {"requests": len(apart), "largest": max(apart), "rms": root_mean_square(apart)}
