// InternLM2 and 2.5: Llama with queries, keys and values from one packed matrix. `bias` is only the
// attention's (configuration_internlm2.py and modeling_internlm2.py, which its checkpoints carry).
#include "worker/native/families/family.h"

namespace evald::native {
namespace {

void ReadInternLm2(const ConfigReader& reader, ModelConfig* config) {
  ReadCommon(reader, {}, config);  // no default sizes: the class comes with each checkpoint
  config->qkv_bias = config->output_bias = reader.FlagOr("bias", true);
}

TensorNames InternLm2Names() {
  TensorNames names;
  names.embedding = "model.tok_embeddings";
  names.head = "output";
  names.attention_norm = "attention_norm";
  names.mlp_norm = "ffn_norm";
  names.packed = "attention.wqkv";
  names.output = "attention.wo";
  names.gate = "feed_forward.w1";
  names.up = "feed_forward.w3";
  names.down = "feed_forward.w2";
  return names;
}

}  // namespace

const Family kInternLm2 = {"InternLM2ForCausalLM", "internlm2", InternLm2Names(), ReadInternLm2};

}  // namespace evald::native
