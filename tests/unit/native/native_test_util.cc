#include "native_test_util.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "worker/native/native_engine.h"

namespace evald::native {
namespace fs = std::filesystem;

std::vector<std::string> GoldenNames() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(GoldenPath(""))) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path GoldenPath(const std::string& name) {
  return fs::path(EVALD_SOURCE_DIR) / "tests/golden/native" / name;
}

Json Golden(const std::string& name) {
  const fs::path path = GoldenPath(name) / "golden.json";
  return ParseJson(ReadFile(path), path.string());
}

std::vector<float> GoldenLogits(const std::string& name) {
  const std::string bytes = ReadFile(GoldenPath(name) / "logits.bin");
  std::vector<float> logits(bytes.size() / sizeof(float));
  std::memcpy(logits.data(), bytes.data(), logits.size() * sizeof(float));
  return logits;
}

CheckpointCopy::CheckpointCopy(const std::string& name) {
  fs::copy(GoldenPath(name), path(), fs::copy_options::recursive);
}

void CheckpointCopy::SetConfig(const std::string& key, const Json& value) {
  Json config = ParseJson(ReadFile(folder_ / "config.json"), "config.json");
  if (value.is_null()) {
    config.erase(key);
  } else {
    config[key] = value;
  }
  Write("config.json", config.dump());
}

void CheckpointCopy::ChangeTensors(const std::string& part,
                                   const std::function<void(Tensors::Tensor*)>& change) {
  Tensors all = Tensors::Read(folder_ / "model.safetensors");
  int changed = 0;
  for (auto& [name, tensor] : all.tensors) {
    if (name.find(part) == std::string::npos) continue;
    change(&tensor);
    ++changed;
  }
  if (changed == 0) throw std::logic_error("no tensor is called " + part);
  all.Write(folder_ / "model.safetensors");
}

void CheckpointCopy::MakeEmbeddingNan(int32_t token) {
  Tensors all = Tensors::Read(folder_ / "model.safetensors");
  for (auto& [name, tensor] : all.tensors) {
    for (const char* part : {"embed_tokens", "embed_in", "tok_embeddings"}) {
      if (name.find(part) == std::string::npos) continue;
      const size_t row = tensor.data.size() / static_cast<size_t>(tensor.shape[0]);
      tensor.data.replace(static_cast<size_t>(token) * row, row, row, '\xFF');  // NaN in each type
    }
  }
  all.Write(folder_ / "model.safetensors");
}

void CheckpointCopy::Clear(const std::string& part) {
  ChangeTensors(part, [](Tensors::Tensor* tensor) {
    std::fill(tensor->data.begin(), tensor->data.end(), '\0');
  });
}

void CheckpointCopy::Write(const std::string& file, const std::string& content) {
  WriteFileAtomic(folder_ / file, content);
}

std::string StoredType(const std::string& name) {
  for (const fs::directory_entry& entry : fs::directory_iterator(GoldenPath(name))) {
    if (entry.path().extension() != ".safetensors") continue;
    return Tensors::Read(entry.path()).tensors.begin()->second.dtype;
  }
  return "";
}

std::vector<std::string> AllKernels() {
  std::vector<std::string> names = AvailableKernels();
  if (HasBf16Products()) names.emplace_back("avx512_bf16");
  return names;
}

Tensors Tensors::Read(const fs::path& path) {
  const std::string bytes = ReadFile(path);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const Json header = ParseJson(bytes.substr(8, length), path.string());
  Tensors result;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    const auto begin = value["data_offsets"][0].get<uint64_t>();
    const auto end = value["data_offsets"][1].get<uint64_t>();
    result.tensors[name] = {value["dtype"].get<std::string>(),
                            value["shape"].get<std::vector<int64_t>>(),
                            bytes.substr(8 + length + begin, end - begin)};
  }
  return result;
}

void Tensors::Write(const fs::path& path) const {
  Json header = Json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.data.size()}}};
    data += tensor.data;
  }
  const std::string text = header.dump();
  const uint64_t length = text.size();
  WriteFileAtomic(path, std::string(reinterpret_cast<const char*>(&length), 8) + text + data);
}

BareModel::BareModel(const fs::path& directory, const std::string& kernels, int threads)
    : config(ReadModelConfig(directory)),
      weights(directory, config),
      pool(threads),
      device(config, SelectKernels(kernels), &pool),
      cache(&device, uint64_t{64} << 20),
      model(config, weights, &device) {}

std::vector<std::vector<float>> BareModel::Logits(const std::vector<int32_t>& tokens,
                                                  const std::vector<int64_t>& positions,
                                                  int64_t chunk) {
  std::vector<PageRef> pages;
  std::vector<Page*> table;
  for (int64_t i = 0; i < PagesFor(static_cast<int64_t>(tokens.size())); ++i) {
    pages.push_back(cache.Allocate());
    table.push_back(pages.back().get());
  }
  std::vector<std::vector<float>> result;
  const auto count = static_cast<int64_t>(tokens.size());
  for (int64_t first = 0; first < count; first += chunk) {
    Segment segment;
    segment.tokens = tokens.data() + first;
    segment.count = static_cast<int>(std::min(chunk, count - first));
    segment.first_position = first;
    segment.pages = table.data();
    const std::vector<float> logits = model.Logits({segment});
    for (const int64_t position : positions) {
      if (position < first || position >= first + segment.count) continue;
      const auto row = logits.begin() + (position - first) * config.vocab_size;
      result.emplace_back(row, row + config.vocab_size);
    }
  }
  return result;
}

Spread LogitsSpread(const std::string& golden, BareModel* model, int64_t chunk) {
  const std::vector<float> expected = GoldenLogits(golden);
  size_t at = 0;
  Spread spread;
  double squares = 0;
  const Json prompts = Golden(golden)["logits"];
  for (const Json& prompt : prompts) {
    for (const auto& row : model->Logits(prompt["tokens"].get<std::vector<int32_t>>(),
                                         prompt["positions"].get<std::vector<int64_t>>(), chunk)) {
      for (const float logit : row) {
        const double difference = std::abs(static_cast<double>(logit) - expected.at(at++));
        if (std::isnan(difference)) return {INFINITY, INFINITY};
        spread.largest = std::max(spread.largest, difference);
        squares += difference * difference;
      }
    }
  }
  if (at != expected.size() || at == 0) return {INFINITY, INFINITY};
  spread.rms = std::sqrt(squares / static_cast<double>(at));
  return spread;
}

double LogitsError(const std::string& golden, BareModel* model, int64_t chunk) {
  return LogitsSpread(golden, model, chunk).largest;
}

double ErrorOf(const std::string& golden, const CheckpointCopy& copy) {
  BareModel model(copy.path());
  return LogitsError(golden, &model);
}

std::unique_ptr<Engine> LoadedEngine(const fs::path& directory, const Json& settings, int threads,
                                     uint64_t seed) {
  EngineOptions options;
  options.name = "native";
  options.settings = settings;
  options.threads = threads;
  options.seed = seed;
  auto engine = MakeNativeEngine(options);
  engine->Load(directory);
  return engine;
}

std::vector<Generation> AnswerAll(Engine* engine, const std::vector<Request>& requests) {
  std::vector<Generation> answers(requests.size());
  size_t next = 0, done = 0;
  while (done < requests.size()) {
    while (next < requests.size() &&
           engine->pending() < static_cast<size_t>(engine->Info().concurrency)) {
      engine->Submit(next, requests[next]);
      ++next;
    }
    for (Finished& finished : engine->Step(std::chrono::milliseconds(50))) {
      if (finished.refused) throw *finished.refused;
      answers.at(finished.tag) = std::move(finished.generation);
      ++done;
    }
  }
  return answers;
}

std::vector<Watched> WatchAll(Engine* engine, const std::vector<Request>& requests, int top) {
  std::vector<Watched> answers(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    std::vector<TokenReport>* reports = &answers[i].reports;
    engine->SubmitWatched(i, requests[i], {top, [reports](TokenReport report) {
                                             reports->push_back(std::move(report));
                                           }});
  }
  while (engine->pending() > 0) {
    for (Finished& finished : engine->Step(std::chrono::milliseconds(50))) {
      if (finished.refused) throw *finished.refused;
      answers.at(finished.tag).generation = std::move(finished.generation);
    }
  }
  return answers;
}

std::vector<std::string> AnswerLines(Engine* engine, const std::vector<Request>& requests) {
  std::vector<std::string> lines;
  for (const Generation& g : AnswerAll(engine, requests)) {
    lines.push_back(fmt::format("{}/{}/{} {:a} {} {} {} {} {} {} {}", g.doc_id, g.idx, g.repeat,
                                g.loglikelihood, g.is_greedy, g.text, static_cast<int>(g.finish),
                                g.tokens_in, g.tokens_out, g.truncated, static_cast<int>(g.kind)));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<Request> MixedRequests() {
  std::vector<Request> requests;
  const std::string shots =
      "Question: What is the capital of France?\nA. Paris\nB. London\nAnswer: A\n";
  for (int doc = 0; doc < 8; ++doc) {
    const std::string question = shots + "Question: what is " + std::to_string(doc * 7) + "\n";
    for (int choice = 0; choice < 4; ++choice) {
      requests.push_back(ScoreRequest(question, choice % 2 == 0 ? " A" : " B and more text"));
      requests.back().doc_id = doc;
      requests.back().idx = choice;
    }
    Request generate = GenerateRequest(question.substr(0, 20 + 9 * static_cast<size_t>(doc)),
                                       {"zzz"}, 5 + 11 * doc);
    generate.doc_id = 100 + doc;
    generate.sampling.do_sample = doc % 2 == 1;
    generate.sampling.settings["temperature"] = 0.8;
    generate.sampling.settings["top_p"] = 0.95;
    generate.sampling.settings["top_k"] = doc % 3 == 0 ? 0 : 40;
    requests.push_back(generate);
    generate.repeat = 1;
    requests.push_back(generate);
    Request rolling;
    rolling.kind = RequestKind::kLoglikelihoodRolling;
    rolling.doc_id = 200 + doc;
    for (int i = 0; i < doc; ++i) rolling.context += question;
    requests.push_back(rolling);
  }
  return requests;
}

Request GenerateRequest(const std::string& context, const std::vector<std::string>& until,
                        int max_gen_toks) {
  Request request;
  request.context = context;
  request.sampling.until = until;
  request.sampling.max_gen_toks = max_gen_toks;
  return request;
}

Request ScoreRequest(const std::string& context, const std::string& continuation) {
  Request request;
  request.kind = RequestKind::kLoglikelihood;
  request.context = context;
  request.continuation = continuation;
  return request;
}

std::string LoadError(const fs::path& directory) {
  return CaughtText([&] { LoadedEngine(directory); });
}

std::string SubmitError(Engine* engine, Request request) {
  return CaughtText([&] { engine->Submit(1, std::move(request)); });
}

}  // namespace evald::native
