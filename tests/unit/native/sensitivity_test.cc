// A golden check that a wrong engine would pass is worthless. So each feature is switched off in a
// copy of its checkpoint, and the check must fail by far.
#include <gtest/gtest.h>

#include "native_test_util.h"

namespace evald::native {
namespace {

TEST(SensitivityTest, Llama3RopeScaling) {
  CheckpointCopy copy("llama3");
  copy.SetConfig("rope_parameters", {{"rope_type", "default"}, {"rope_theta", 500.0}});
  EXPECT_GT(ErrorOf("llama3", copy), kFar);
}

TEST(SensitivityTest, Llama3RopeParts) {
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor", "rope_theta",
                          "original_max_position_embeddings"}) {
    CheckpointCopy copy("llama3");
    Json rope = {{"rope_type", "llama3"},   {"rope_theta", 500.0},
                 {"factor", 8.0},           {"low_freq_factor", 1.0},
                 {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 64}};
    copy.SetConfig("rope_parameters", rope);
    EXPECT_LT(ErrorOf("llama3", copy), 1e-4);
    rope[key] = rope[key].get<double>() * 1.5;
    copy.SetConfig("rope_parameters", rope);
    EXPECT_GT(ErrorOf("llama3", copy), kFar) << key;
  }
}

TEST(SensitivityTest, LinearRopeScalingAndTheta) {
  CheckpointCopy scaling("linear");
  scaling.SetConfig("rope_scaling", nullptr);
  EXPECT_GT(ErrorOf("linear", scaling), kFar);
  CheckpointCopy theta("untied");
  theta.SetConfig("rope_theta", 12000.0);
  EXPECT_GT(ErrorOf("untied", theta), kFar);
}

TEST(SensitivityTest, NormEpsilon) {
  for (const char* name : {"untied", "linear"}) {
    CheckpointCopy copy(name);
    copy.SetConfig("rms_norm_eps", 1e-6);
    EXPECT_GT(ErrorOf(name, copy), 10 * 1e-4) << name;
  }
}

// Query heads 1 and 2 are exchanged in the rows of q_proj and the columns of o_proj. Nothing would
// change if heads were not grouped 0,1 | 2,3 over the two key-value heads.
TEST(SensitivityTest, GroupingOfQueryHeads) {
  CheckpointCopy copy("linear");
  const auto file = copy.path() / "model.safetensors";
  Tensors all = Tensors::Read(file);
  const size_t head = 24, hidden = 40, width = 4 * head;
  for (auto& [name, tensor] : all.tensors) {
    std::string& data = tensor.data;
    const auto swap = [&data](size_t a, size_t b, size_t bytes) {
      std::swap_ranges(data.begin() + static_cast<int64_t>(a),
                       data.begin() + static_cast<int64_t>(a + bytes),
                       data.begin() + static_cast<int64_t>(b));
    };
    if (name.find("q_proj.weight") != std::string::npos) {
      swap(head * hidden * 4, 2 * head * hidden * 4, head * hidden * 4);
    } else if (name.find("q_proj.bias") != std::string::npos) {
      swap(head * 4, 2 * head * 4, head * 4);
    } else if (name.find("o_proj.weight") != std::string::npos) {
      for (size_t row = 0; row < hidden; ++row) {
        swap((row * width + head) * 4, (row * width + 2 * head) * 4, head * 4);
      }
    }
  }
  all.Write(file);
  EXPECT_GT(ErrorOf("linear", copy), kFar);
}

TEST(SensitivityTest, OutputMatrixIsItsOwnWhereNotTied) {
  CheckpointCopy copy("linear");
  const auto file = copy.path() / "model.safetensors";
  Tensors all = Tensors::Read(file);
  all.tensors["lm_head.weight"] = all.tensors["model.embed_tokens.weight"];
  all.Write(file);
  EXPECT_GT(ErrorOf("linear", copy), kFar);
  copy.SetConfig("tie_word_embeddings", true);
  EXPECT_GT(ErrorOf("linear", copy), kFar);
}

TEST(SensitivityTest, TiedEmbeddings) {
  // Untied, with an output matrix of zeros, all logits are zero.
  CheckpointCopy copy("llama3");
  const auto file = copy.path() / "model.safetensors";
  Tensors all = Tensors::Read(file);
  all.tensors["lm_head.weight"] = all.tensors["model.embed_tokens.weight"];
  all.Write(file);
  EXPECT_LT(ErrorOf("llama3", copy), 1e-4);
  std::string& data = all.tensors["lm_head.weight"].data;
  std::fill(data.begin(), data.end(), '\0');
  copy.SetConfig("tie_word_embeddings", false);
  all.Write(file);
  EXPECT_GT(ErrorOf("llama3", copy), kFar);
}

TEST(SensitivityTest, Biases) {
  for (const char* part :
       {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}) {
    CheckpointCopy copy("linear");
    const auto file = copy.path() / "model.safetensors";
    Tensors all = Tensors::Read(file);
    for (auto& [name, tensor] : all.tensors) {
      if (name.find(std::string(part) + ".bias") == std::string::npos) continue;
      std::fill(tensor.data.begin(), tensor.data.end(), '\0');
    }
    all.Write(file);
    EXPECT_GT(ErrorOf("linear", copy), kFar) << part;
  }
}

}  // namespace
}  // namespace evald::native
