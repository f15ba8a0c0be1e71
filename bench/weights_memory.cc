#include "bench/weights_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/file.h"
#include "base/jsonl.h"
#include "bench/run_evald.h"
#include "evald/error.h"

namespace evald::bench {
namespace fs = std::filesystem;
namespace {

constexpr int kWorkers = 4;
constexpr std::chrono::milliseconds kEvery{100};

struct Shape {
  int hidden = 2048, intermediate = 5632, layers = 4, heads = 32, kv_heads = 1, head = 64;
};

// bf16 numbers of about 0.01, with random signs and fractions.
void AppendRandom(PendingFile* file, uint64_t bytes, uint64_t* state) {
  std::string buffer(std::min<uint64_t>(bytes, 1 << 20), '\0');
  for (uint64_t done = 0; done < bytes; done += buffer.size()) {
    buffer.resize(std::min<uint64_t>(buffer.size(), bytes - done));
    for (size_t i = 0; i + 1 < buffer.size(); i += 2) {
      *state = *state * 6364136223846793005u + 1442695040888963407u;
      const auto random = static_cast<uint16_t>(*state >> 48);
      const uint16_t value = (random & 0x8000) | 0x3c00 | (random & 0x7f);
      buffer[i] = static_cast<char>(value & 0xff);
      buffer[i + 1] = static_cast<char>(value >> 8);
    }
    file->Append(buffer);
  }
}

// Makes a Llama checkpoint of random weights with the tokenizer of `example`. Returns the bytes of
// its tensors.
uint64_t MakeModel(const fs::path& folder, const fs::path& example) {
  const Shape s;
  MakeDirectories(folder);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    fs::copy_file(example / name, folder / name);
  }
  Json config = ParseJson(ReadFile(example / "config.json"), "config.json");
  config.update({{"hidden_size", s.hidden},
                 {"intermediate_size", s.intermediate},
                 {"num_hidden_layers", s.layers},
                 {"num_attention_heads", s.heads},
                 {"num_key_value_heads", s.kv_heads},
                 {"head_dim", s.head}});
  WriteFileAtomic(folder / "config.json", config.dump(1));
  const int vocab = config.at("vocab_size").get<int>();
  std::vector<std::pair<std::string, std::vector<int>>> tensors = {
      {"model.embed_tokens.weight", {vocab, s.hidden}}, {"model.norm.weight", {s.hidden}}};
  for (int i = 0; i < s.layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    tensors.push_back({layer + "input_layernorm.weight", {s.hidden}});
    tensors.push_back({layer + "post_attention_layernorm.weight", {s.hidden}});
    tensors.push_back({layer + "self_attn.q_proj.weight", {s.heads * s.head, s.hidden}});
    tensors.push_back({layer + "self_attn.k_proj.weight", {s.kv_heads * s.head, s.hidden}});
    tensors.push_back({layer + "self_attn.v_proj.weight", {s.kv_heads * s.head, s.hidden}});
    tensors.push_back({layer + "self_attn.o_proj.weight", {s.hidden, s.heads * s.head}});
    tensors.push_back({layer + "mlp.gate_proj.weight", {s.intermediate, s.hidden}});
    tensors.push_back({layer + "mlp.up_proj.weight", {s.intermediate, s.hidden}});
    tensors.push_back({layer + "mlp.down_proj.weight", {s.hidden, s.intermediate}});
  }
  Json header = Json::object();
  uint64_t bytes = 0;
  for (const auto& [name, shape] : tensors) {
    uint64_t size = 2;
    for (const int dimension : shape) size *= static_cast<uint64_t>(dimension);
    header[name] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {bytes, bytes + size}}};
    bytes += size;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  PendingFile file(folder / "model.safetensors");
  const uint64_t length = text.size();
  file.Append({reinterpret_cast<const char*>(&length), sizeof length});
  file.Append(text);
  uint64_t state = 7;
  AppendRandom(&file, bytes, &state);
  file.Commit();
  return bytes;
}

struct Memory {
  int workers = 0;
  uint64_t mapped = 0;     // PSS of staged files
  uint64_t anonymous = 0;  // PSS of memory without a file
};

// Adds a process that maps files below `root`.
void AddProcess(const fs::path& process, const std::string& root, Memory* sum) {
  std::ifstream smaps(process / "smaps");
  std::string line, key;
  bool ours = false, anonymous = false;
  uint64_t mapped = 0, other = 0;
  while (std::getline(smaps, line)) {
    std::istringstream words(line);
    words >> key;
    if (key.find('-') != std::string::npos && key.back() != ':') {  // a mapping begins
      ours = line.find(root) != std::string::npos;
      anonymous = line.find('/') == std::string::npos;
    } else if (key == "Pss:") {
      uint64_t kilobytes = 0;
      words >> kilobytes;
      if (ours) mapped += kilobytes * 1024;
      if (anonymous) other += kilobytes * 1024;
    }
  }
  if (mapped == 0) return;
  ++sum->workers;
  sum->mapped += mapped;
  sum->anonymous += other;
}

Memory Look(const fs::path& root) {
  Memory sum;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    if (std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0])) != 0) {
      AddProcess(entry.path(), root.string(), &sum);
    }
  }
  return sum;
}

// The most memory that four workers hold while they evaluate `checkpoint`.
Memory Run(const Options& options, const fs::path& checkpoint, const fs::path& example,
           const std::string& name) {
  const fs::path root = fmt::format("/dev/shm/evald-bench-memory-{}", ::getpid());
  const fs::path folder = options.scratch / name;
  const Json config = {
      {"checkpoint", checkpoint.string()},
      {"tasks", {{{"task", "quickstart_choice"}, {"limit", 16}}}},
      {"task_dirs", {(example / "../../tasks").lexically_normal().string()}},
      {"engine", {{"name", "native"}, {"kv_cache", "64MiB"}, {"concurrency", 1}, {"chunk", 16}}},
      {"workers", {{"count", kWorkers}, {"threads", 1}}},
      {"staging", {{"root", root.string()}}},
      {"cache_dir", (folder / "cache").string()},
      {"state_dir", (folder / "state").string()},
      {"output", {{"dir", (folder / "runs").string()}}}};
  const fs::path file = WriteText(folder / "eval.yaml", config.dump(1));
  std::atomic<bool> over{false};
  std::exception_ptr failure;
  std::thread run([&] {
    try {
      RunCommand(
          {(options.binaries / "evald").string(), "run", file.string(), "--json", "--quiet"});
    } catch (...) {
      failure = std::current_exception();
    }
    over = true;
  });
  Memory most;
  while (!over) {
    const Memory now = Look(root);
    if (now.workers == kWorkers && now.mapped + now.anonymous > most.mapped + most.anonymous)
      most = now;
    std::this_thread::sleep_for(kEvery);
  }
  run.join();
  std::error_code ignored;
  fs::remove_all(root, ignored);
  if (failure) std::rethrow_exception(failure);
  return most;
}

}  // namespace

Json MeasureWeightsMemory(const Options& options) {
  const fs::path example =
      (options.binaries / "../../examples/quickstart/checkpoints/step-00100").lexically_normal();
  if (!fs::exists(example / "tokenizer.json")) {
    return {{"skipped", fmt::format("{}: the example checkpoint is not there", example.string())}};
  }
  const fs::path model = options.scratch / "model";
  const uint64_t bytes = MakeModel(model, example);
  const Memory small = Run(options, example, example, "small");
  const Memory large = Run(options, model, example, "large");
  const uint64_t more = large.anonymous > small.anonymous ? large.anonymous - small.anonymous : 0;
  return {{"copies", static_cast<double>(large.mapped + more) / static_cast<double>(bytes)},
          {"target_at_most", 1.1},
          {"weight_bytes", bytes},
          {"mapped_bytes", large.mapped},
          {"anonymous_bytes", more},
          {"workers", large.workers}};
}

}  // namespace evald::bench
