#include "tests/unit/metrics/score_suite.h"

#include <atomic>

#include "base/file.h"
#include "base/jsonl.h"
#include "metrics/aggregate.h"
#include "metrics/generations_input.h"
#include "metrics/job.h"
#include "metrics/line_index.h"
#include "orchestrator/report/results.h"
#include "prepared/prepared_task.h"

namespace evald::test {
namespace fs = std::filesystem;
namespace {

void Prepare(const Json& data, const fs::path& folder) {
  PreparedTaskWriter writer(folder, data["task"]);
  for (const Json& entry : data["documents"]) {
    PreparedDocument document{entry["doc_id"].get<int64_t>(), entry["doc"], entry["target"],
                              entry["choices"]};
    std::vector<Request> requests;
    for (const Json& item : entry["requests"]) {
      Request request;
      request.doc_id = document.doc_id;
      request.idx = static_cast<int>(requests.size());
      request.kind = RequestKindFromString(item["kind"].get<std::string>());
      request.context = item["context"].get<std::string>();
      request.continuation = item.value("continuation", "");
      requests.push_back(std::move(request));
    }
    writer.Add(document, requests);
  }
  writer.Finish();
}

void WriteLines(const Json& lines, const fs::path& path) {
  PendingFile file(path);
  for (const Json& line : lines) file.Append(ToLine(line) + "\n");
  file.Commit();
}

}  // namespace

Json ReadSuite(const fs::path& folder) {
  const auto lines = [](const fs::path& path) {
    Json list = Json::array();
    ForEachJsonLine(path, [&](size_t, Json&& line) { list.push_back(std::move(line)); });
    return list;
  };
  Json suite = lines(folder / "suite.json")[0];
  suite["data"] = Json::object();
  for (const Json& name : suite["tasks"]) {
    const fs::path task = folder / name.get<std::string>();
    suite["data"][name.get<std::string>()] = {{"task", lines(task / "task.json")[0]},
                                              {"documents", lines(task / "documents.jsonl")},
                                              {"generations", lines(task / "generations.jsonl")}};
  }
  return suite;
}

Json ScoreSuite(const Json& suite, const fs::path& out,
                const std::function<CodeRunner*()>& runner) {
  ResultsInput input;
  for (const auto& [name, data] : suite["data"].items()) {
    const fs::path folder = out / name;
    fs::create_directories(folder);
    Prepare(data, folder / "prepared");
    WriteLines(data["generations"], folder / "given.jsonl");
    const PreparedTask prepared(folder / "prepared");
    ImportGenerations(prepared, folder / "given.jsonl", folder / "generations.jsonl");
    protocol::Job job{.job = 1,
                      .task = name,
                      .prepared = folder / "prepared",
                      .end = prepared.document_count(),
                      .generations = folder / "generations.jsonl",
                      .file = folder / "scores.jsonl"};
    std::atomic<int64_t> done{0};
    protocol::JobDone result;
    RunJob(job, runner, nullptr, std::atomic<bool>{false}, &done, &result);
    const TaskDefinition task = TaskFromJson(prepared.task(), name);
    const ScoreReader scores(folder / "scores.jsonl");
    const GenerationReader generations(folder / "generations.jsonl");
    std::vector<ScoredDocument> documents;
    for (int64_t i = 0; i < prepared.document_count(); ++i) documents.push_back(scores.Read(i));
    input.entries[name] = AggregateTask(task, documents, suite["bootstrap_iters"].get<int>());
    SampleSource source;
    source.generations = [&](int64_t doc_id, const std::function<void(Generation&&)>& visit) {
      const auto requests = static_cast<int>(prepared.Requests(doc_id, doc_id + 1).size());
      generations.ForEach(doc_id, requests, prepared.repeats(), visit);
    };
    source.score = [&](int64_t doc_id) { return scores.ReadNumbers(doc_id); };
    source.filtered = [&](int64_t doc_id, const std::string& filter) {
      return scores.Filtered(doc_id, filter);
    };
    // Every other document is written as one that is too long to be held
    source.bytes = [](int64_t doc_id) { return doc_id % 2 == 0 ? 1 : kSamplesHeldMax + 1; };
    input.task_hashes[name] =
        WriteSamples(out / ("samples_" + name + ".jsonl"), task, prepared, source, 2);
    input.tasks.push_back(task);
  }
  for (const Json& group : suite["groups"]) input.groups.push_back(GroupFromJson(group, "suite"));
  const Json results = BuildResults(input);
  WriteFileAtomic(out / "results.json", ResultsText(results));
  return results;
}

}  // namespace evald::test
