// The parity check against planted faults. The engine under test is evald's own, on another copy of
// the checkpoint or with other kernels.
#include <gtest/gtest.h>

#include <cstring>

#include "base/file.h"
#include "base/jsonl.h"
#include "tests/unit/native/native_test_util.h"
#include "worker/parity/parity_check.h"

namespace evald::parity {
namespace {

namespace fs = std::filesystem;
using native::CheckpointCopy;
using native::Tensors;

constexpr std::chrono::minutes kPatience{5};

NumberType TypeOf(const std::string& golden) { return *NumberTypeOf(native::StoredType(golden)); }

std::vector<std::optional<double>> Ask(Engine* engine, const std::vector<ScoreWindow>& windows) {
  std::vector<Request> requests;
  for (const ScoreWindow& window : windows) {
    Request request;
    request.kind = RequestKind::kLoglikelihood;
    request.context_tokens.assign(window.tokens.begin(),
                                  window.tokens.begin() + window.score_from + 1);
    request.continuation_tokens = window.targets;
    requests.push_back(request);
  }
  std::vector<std::optional<double>> scores;
  for (const Generation& answer : native::AnswerAll(engine, requests))
    scores.emplace_back(answer.loglikelihood);
  return scores;
}

// The verdict on an engine that has loaded `served` with these kernels, where `staged` was staged.
Report ReportOf(const fs::path& staged, NumberType type, const fs::path& served,
                const std::string& kernels) {
  ParityCheck check(kPatience, 1);
  check.Begin(staged, type, false);
  const auto engine = native::LoadedEngine(served, {{"kernels", kernels}});
  const Report report = check.Check(
      [&](const std::vector<ScoreWindow>& windows) { return Ask(engine.get(), windows); });
  if (std::getenv("EVALD_SHOW") != nullptr)
    std::printf("%-60s %-14s %s\n", served.c_str(), kernels.c_str(),
                report.ToJson().dump().c_str());
  return report;
}

fs::path Step(const std::string& name) {
  return fs::path(EVALD_SOURCE_DIR) / "examples/quickstart/checkpoints" / name;
}

// The kernels of an engine that computes in the type.
std::string KernelsOf(NumberType type) {
  return type == NumberType::kF32    ? "auto"
         : type == NumberType::kBf16 ? "rounded_bf16"
                                     : "rounded_fp16";
}

class Clean : public testing::TestWithParam<std::string> {};

TEST_P(Clean, EnginesOfTheSameWeightsAgree) {
  const NumberType type = TypeOf(GetParam());
  std::vector<std::string> kernels = native::AllKernels();
  kernels.push_back(KernelsOf(type));
  for (const std::string& name : kernels) {
    const Report report =
        ReportOf(native::GoldenPath(GetParam()), type, native::GoldenPath(GetParam()), name);
    EXPECT_EQ(report.outcome, Report::Outcome::kAgrees) << name << ": " << report.reason;
    EXPECT_GT(report.distance.scores, 40);
    EXPECT_TRUE(report.left_out.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, Clean, testing::ValuesIn(native::GoldenNames()),
                         [](const auto& info) { return info.param; });

TEST(Clean, CheckpointsOfTheExampleAgree) {
  for (const char* step : {"step-00100", "step-00350", "step-00600", "step-01200"}) {
    for (const char* kernels : {"auto", "portable", "rounded_bf16"}) {
      const Report report = ReportOf(Step(step), NumberType::kBf16, Step(step), kernels);
      EXPECT_EQ(report.outcome, Report::Outcome::kAgrees) << report.reason;
    }
  }
}

// fp8 (e4m3, one scale for a tensor), and back to the stored type.
float ToFp8(float x, float scale) {
  const float y = x / scale;
  const int exponent = std::max(-6, std::ilogb(y));
  const float step = std::ldexp(1.0f, exponent - 3);
  return std::nearbyint(y / step) * step * scale;
}

float FromBf16(const char* at) {
  uint16_t half = 0;
  std::memcpy(&half, at, 2);
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value = 0;
  std::memcpy(&value, &bits, 4);
  return value;
}

void PutBf16(float value, char* at) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  const auto half = static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  std::memcpy(at, &half, 2);
}

void RoundToFp8(Tensors::Tensor* tensor) {
  if (tensor->shape.size() != 2 || tensor->dtype != "BF16") return;
  float most = 0;
  for (size_t i = 0; i < tensor->data.size(); i += 2)
    most = std::max(most, std::fabs(FromBf16(&tensor->data[i])));
  const float scale = most / 448;  // the largest number of e4m3
  for (size_t i = 0; i < tensor->data.size(); i += 2)
    PutBf16(ToFp8(FromBf16(&tensor->data[i]), scale), &tensor->data[i]);
}

// A copy of a folder, to be damaged.
struct Copy {
  explicit Copy(const fs::path& from) {
    fs::copy(from, folder.path(), fs::copy_options::recursive);
  }
  void Change(const std::function<void(Tensors*)>& change) const {
    const fs::path file = folder.path() / "model.safetensors";
    Tensors tensors = Tensors::Read(file);
    change(&tensors);
    tensors.Write(file);
  }
  const fs::path& path() const { return folder.path(); }
  TemporaryFolder folder;
};

void ExpectDiffers(const Report& report, const std::string& fault) {
  EXPECT_EQ(report.outcome, Report::Outcome::kDiffers)
      << fault << ": " << report.ToJson().dump() << report.causes;
  EXPECT_FALSE(report.causes.empty());
}

TEST(Faults, WeightsOfAnotherStep) {
  for (const auto& [staged, served] :
       {std::pair("step-01200", "step-00600"), std::pair("step-00350", "step-00100"),
        std::pair("step-00600", "step-00350")}) {
    ExpectDiffers(ReportOf(Step(staged), NumberType::kBf16, Step(served), "rounded_bf16"), served);
  }
}

TEST(Faults, TwoLayersExchanged) {
  const Copy copy(Step("step-01200"));
  copy.Change([](Tensors* all) {
    for (auto& [name, tensor] : all->tensors) {
      const size_t at = name.find(".layers.2.");
      if (at == std::string::npos) continue;
      std::string other = name;
      other.replace(at, 10, ".layers.3.");
      std::swap(tensor.data, all->tensors.at(other).data);
    }
  });
  ExpectDiffers(ReportOf(Step("step-01200"), NumberType::kBf16, copy.path(), "rounded_bf16"),
                "layers exchanged");
}

TEST(Faults, OneMatrixPermuted) {
  for (const char* part : {"layers.1.self_attn.v_proj", "layers.4.mlp.up_proj",
                           "layers.0.self_attn.q_proj", "layers.3.self_attn.k_proj"}) {
    const Copy copy(Step("step-01200"));
    copy.Change([&](Tensors* all) {
      for (auto& [name, tensor] : all->tensors) {
        if (name.find(part) == std::string::npos) continue;
        const size_t row = tensor.data.size() / static_cast<size_t>(tensor.shape[0]);
        std::rotate(tensor.data.begin(), tensor.data.begin() + static_cast<ptrdiff_t>(row),
                    tensor.data.end());
      }
    });
    ExpectDiffers(ReportOf(Step("step-01200"), NumberType::kBf16, copy.path(), "rounded_bf16"),
                  part);
  }
}

TEST(Faults, WeightsInFp8) {
  for (const char* step : {"step-00100", "step-00350", "step-00600", "step-01200"}) {
    const Copy copy(Step(step));
    copy.Change([](Tensors* all) {
      for (auto& [name, tensor] : all->tensors) RoundToFp8(&tensor);
    });
    const Report report = ReportOf(Step(step), NumberType::kBf16, copy.path(), "rounded_bf16");
    ExpectDiffers(report, step);
  }
}

TEST(Faults, RopeScalingLeftOut) {
  for (const auto& [golden, key] :
       {std::pair("llama3", "rope_parameters"), std::pair("llama3", "rope_scaling"),
        std::pair("yarn", "rope_scaling"), std::pair("linear", "rope_scaling"),
        std::pair("qwen3", "rope_parameters")}) {
    const Json config =
        ParseJson(ReadFile(native::GoldenPath(golden) / "config.json"), "config.json");
    if (!config.contains(key) || config[key].is_null()) continue;
    CheckpointCopy copy(golden);
    copy.SetConfig(key,
                   std::string(key) == "rope_scaling"
                       ? Json(nullptr)
                       : Json{{"rope_type", "default"}, {"rope_theta", config[key]["rope_theta"]}});
    const NumberType type = TypeOf(golden);
    ExpectDiffers(ReportOf(native::GoldenPath(golden), type, copy.path(), KernelsOf(type)), golden);
  }
}

TEST(Faults, WindowLeftOut) {
  for (const char* golden : {"mistral", "gemma2"}) {
    CheckpointCopy copy(golden);
    copy.SetConfig("sliding_window", 200);
    const NumberType type = TypeOf(golden);
    ExpectDiffers(ReportOf(native::GoldenPath(golden), type, copy.path(), KernelsOf(type)), golden);
  }
}

}  // namespace
}  // namespace evald::parity
