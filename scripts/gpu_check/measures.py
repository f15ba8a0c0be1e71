"""Parts that measure: evald-gpu-bench's workloads, and other programs beside them."""

from outcome import Failure, Outcome, Skip


def bench(check, workload, *arguments):
    report = check.bench(workload, "--checkpoint", check.checkpoint(), *arguments)
    said = f"{report['value']:.3f} {report['unit']}"
    if report["target"] > 0:
        said += f", ratio {report['ratio']:.3f} where {report['target']:.2f} is the bar"
    reached = report["ratio"] >= report["target"]
    return Outcome("passed" if reached else "missed", said, report)


def pull(check):
    return bench(check, "pull")


def swap(check):
    return bench(check, "swap")


def generate(check):
    return bench(check, "gpu-generate", "--lengths", check.results.folder / "lengths.json")


def choice(check):
    return bench(check, "gpu-choice")


def idle(check):
    if check.emulated:
        raise Skip("the emulated device leaves no records of the driver")
    if not any(name.startswith("libcupti") for name in check.libraries):
        raise Skip("libcupti was found neither in CUDA's folders nor in Python's packages")
    return bench(check, "gpu-idle")


def products(check):
    report = check.bench("products")
    return Outcome("passed", f"{1 / max(report['ratio'], 1e-9):.3f} times the library's own choice", report)


def attention(check):
    report = check.bench("attention")
    shares = [f"{name}: {case['us']:.0f} us, {case['of_bound']:.2f} of the limit" for name, case in report["details"].items()]
    return Outcome("passed", "; ".join(shares), report)


def fast(check):
    """The same two workloads with --fast, beside the figures without it."""
    figures, said = {}, []
    for workload in ("gpu-generate", "gpu-choice"):
        report = check.bench(workload, "--checkpoint", check.checkpoint(), "--fast")
        figures[workload] = report
        before = check.results.read(workload).get("figures", {}).get("value")
        said.append(f"{workload} {report['value']:.1f} {report['unit']}" +
                    (f", {report['value'] / before:.3f} times the deterministic" if before else ""))
    return Outcome("passed", "; ".join(said), figures)


def peers(check):
    if check.emulated:
        raise Skip("the emulated device has no peers")
    checkpoint = check.checkpoint()
    loading = check.python("peers.py", "load", checkpoint)
    lengths = check.results.folder / "lengths.json"
    if not lengths.exists():
        raise Failure("gpu-generate, which writes the requests' lengths, has not run")
    generating = check.python("peers.py", "generate", checkpoint, "--lengths", lengths, "--seconds", "150")
    said = [f"safetensors {loading.get('gb_per_s', 0):.1f} GB/s" if "gb_per_s" in loading
            else f"safetensors: {loading.get('skipped')}",
            f"transformers {generating.get('output_tokens_per_s', 0):.0f} tokens/s"
            if "output_tokens_per_s" in generating else f"transformers: {generating.get('skipped')}"]
    return Outcome("passed", "; ".join(said), {"load": loading, "generate": generating})
