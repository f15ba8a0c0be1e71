#pragma once

#include <string>
#include <string_view>

#include "evald/json.h"

namespace evald::tok {

/// The tokenizer classes of transformers 5.23. AutoTokenizer picks one for a folder, and most
/// classes take only the vocabulary, the merges and the post-processor out of tokenizer.json: they
/// build the normalizer, the pre-tokenizer and the decoder anew. Sources:
/// transformers/models/auto/tokenization_auto.py, models/{llama,gpt2,qwen2,gpt_neox}/
/// tokenization_*.py and tokenization_utils_tokenizers.py.

/// How a served class builds a tokenizer.
enum class Build {
  kFromFile,  ///< TokenizersBackend: tokenizer.json as it is
  kLlama,     ///< LlamaTokenizer
  kGpt2,      ///< GPT2Tokenizer
  kQwen2,     ///< Qwen2Tokenizer
  kGptNeoX,   ///< GPTNeoXTokenizer
};

/// A served class. A default is the content of a token that the class names where the files name
/// none; null for no token.
struct ClassRules {
  const char* name;
  Build build;
  const char* bos = nullptr;
  const char* eos = nullptr;
  const char* unk = nullptr;
  const char* pad = nullptr;
};

/// The class that AutoTokenizer picks, and the file and key that decided.
struct PickedClass {
  std::string name;
  std::string where;
};

/// The files of a checkpoint's folder that decide about the class.
struct ClassFiles {
  Json tokenizer_config;  ///< an object; empty when there is no file
  Json config;            ///< config.json, likewise
  std::string directory;
};

/// The class that AutoTokenizer.from_pretrained picks without trust_remote_code. `tokenizer_json`
/// is the text of that file. The name may be one that is not served.
PickedClass PickClass(const ClassFiles& files, std::string_view tokenizer_json);

/// The rules of a class by its name, null for one that is not served.
const ClassRules* FindClass(std::string_view name);

/// As FindClass. Throws Error(kInput) for a class that is not served, with the place that names it.
const ClassRules& RequireClass(const PickedClass& picked);

/// Writes into the document of a tokenizer.json what the class builds anew. `settings` are the
/// arguments of the class (tokenizer_config.json), `where` is their place.
void Rebuild(const ClassRules& rules, const Json& settings, const std::string& where, Json* file);

/// Puts the corrected splitting expression of Mistral's tokenizers into the document where
/// transformers does: fix_mistral_regex is set, the tokenizer has more than 100,000 tokens, and
/// config.json is that of a Mistral model written before transformers 5.
void FixMistralPattern(const Json& settings, const Json& config, size_t tokens, Json* file);

}  // namespace evald::tok
