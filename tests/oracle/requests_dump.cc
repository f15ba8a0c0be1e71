// evald-requests-dump [--data-dir DIR] [--task-dir DIR] [--chat CHECKPOINT] [--system TEXT]
//                     [--one-turn] [--full] TASK...
// Prepares the tasks and prints one JSON line for each: its digests and configuration, and with
// --full every request. For tests/oracle/requests_compare.py.
//
// evald-requests-dump --yaml
// Reads paths of task files from standard input and prints each file as JSON, with its includes.
// For tests/oracle/yaml_compare.py.
//
// evald-requests-dump --accepted --task-dir DIR
// Prints {"task", "error"} for each task of DIR: "" if evald would run it, with task_code: allow
// and its data at hand. For tests/oracle/library_report.py.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/jsonl.h"
#include "datasets/task_set.h"
#include "datasets/yaml_reader.h"
#include "evald/error.h"
#include "metrics/scorer.h"
#include "tests/oracle/request_digest.h"

namespace {

using evald::Json;

void PrintRequests(const evald::PreparedTask& task) {
  for (int64_t i = 0; i < task.document_count(); ++i) {
    const evald::PreparedDocument document = task.Document(i);
    for (const evald::Request& request : task.Requests(i, i + 1)) {
      std::cout << evald::ToLine({{"doc_id", request.doc_id},
                                  {"idx", request.idx},
                                  {"kind", evald::ToString(request.kind)},
                                  {"context", request.context},
                                  {"continuation", request.continuation},
                                  {"sampling", evald::oracle::SamplingText(request)},
                                  {"target", document.target},
                                  {"choices", document.choices}})
                << "\n";
    }
  }
}

int PrintYaml() {
  std::string path;
  while (std::getline(std::cin, path)) {
    Json line = {{"file", path}};
    try {
      line["value"] = evald::LoadTaskYaml(path).value;
    } catch (const evald::Error& error) {
      line["error"] = error.what();
    }
    std::cout << evald::ToLine(line) << "\n";
  }
  return 0;
}

std::string WhyNot(const evald::TaskRegistry& registry, const std::string& name) {
  try {
    evald::TaskRequest request;
    request.name = name;
    for (const evald::LeafTask& leaf : registry.Resolve({request}).leaves) {
      evald::TaskDefinition task = evald::DefineTask(leaf);
      task.sources["code"] = Json::object();  // its functions may run
      const evald::Scorer scorer(task, nullptr);
    }
    return "";
  } catch (const evald::Error& error) {
    return error.message();
  }
}

int PrintAccepted(const std::filesystem::path& folder) {
  const evald::TaskRegistry registry({folder});
  for (const evald::TaskProblem& problem : registry.Problems())
    std::cout << evald::ToLine({{"file", problem.file}, {"error", problem.problem}}) << "\n";
  for (const evald::TaskListing& listing : registry.List()) {
    if (listing.kind != "task" || listing.source == "built in") continue;
    std::cout << evald::ToLine({{"task", listing.name}, {"error", WhyNot(registry, listing.name)}})
              << "\n";
  }
  return 0;
}

int Run(int argc, char** argv, const std::filesystem::path& scratch) {
  evald::PrepareOptions options;
  options.cache_dir = scratch;
  std::vector<std::filesystem::path> task_dirs;
  std::vector<evald::TaskRequest> requests;
  bool full = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--yaml") return PrintYaml();
    if (argument == "--accepted" && i + 2 < argc) return PrintAccepted(argv[i + 2]);
    if (argument == "--full") {
      full = true;
    } else if (argument == "--data-dir" && i + 1 < argc) {
      options.data_dir = argv[++i];
    } else if (argument == "--task-dir" && i + 1 < argc) {
      task_dirs.emplace_back(argv[++i]);
    } else if (argument == "--chat" && i + 1 < argc) {
      options.prompts.chat = std::make_shared<evald::ChatTemplate>(
          evald::ChatTemplate::Load(argv[++i], "", std::nullopt));
    } else if (argument == "--system" && i + 1 < argc) {
      options.prompts.system_instruction = argv[++i];
    } else if (argument == "--one-turn") {
      options.prompts.fewshot_as_multiturn = false;
    } else {
      requests.emplace_back().name = argument;
    }
  }
  const evald::TaskRegistry registry(task_dirs);
  for (const evald::LeafTask& leaf : registry.Resolve(requests).leaves) {
    const evald::PreparedTask task(evald::PrepareTask(leaf, options));
    if (full) {
      PrintRequests(task);
      continue;
    }
    Json line = {{"task", leaf.name}};
    line.update(evald::oracle::Digests(task));
    line["config"] = task.task().at("config");
    std::cout << evald::ToLine(line) << "\n";
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string scratch = (std::filesystem::temp_directory_path() / "evald-requests-XXXXXX").string();
  if (mkdtemp(scratch.data()) == nullptr) return 3;
  int status = 2;
  try {
    status = Run(argc, argv, scratch);
  } catch (const evald::Error& error) {
    std::cerr << error.what() << "\n";
  }
  std::filesystem::remove_all(scratch);
  return status;
}
