#include "agent_work.h"

#include <fstream>

#include "base/file.h"

namespace evald::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAgent = "0123456789abcdef0123456789abcdef";
constexpr const char* kHash = "5f0c7d6a1e2b3c4d5f0c7d6a1e2b3c4d";
constexpr const char* kKey = "ab12cd34";

void Put(const fs::path& file, const std::string& text) {
  MakeDirectories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

}  // namespace

void GiveWork(const fs::path& folder, AgentFiles* files) {
  const fs::path prepared = folder / "prepared" / kKey, checkpoint = folder / "staged" / kHash;
  const fs::path generations = folder / "7.1-0.jsonl";
  for (const char* name : {"task.json", "documents.jsonl", "requests.jsonl"})
    Put(prepared / name, "{}\n");
  for (const char* name : {"config.json", "tokenizer.json"}) Put(checkpoint / name, "{}");
  Put(checkpoint / "model.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
  Put(generations, "{\"doc_id\":0}\n");
  files->Begin(kAgent);
  files->Sent(kAgent, "w0", protocol::Load{checkpoint.string(), kHash});
  files->Sent(kAgent, "m0",
              protocol::Job{3, "gsm8k", prepared.string(), 0, 4, generations.string(), kHash,
                            (folder / "scores.jsonl").string(), "r"});
}

}  // namespace evald::test
