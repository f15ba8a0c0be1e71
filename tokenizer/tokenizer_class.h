#pragma once

#include <string>
#include <string_view>

#include "evald/json.h"

namespace evald::tok {

/// The tokenizer classes of transformers 5.23. AutoTokenizer picks one for a folder. Most classes
/// take only the vocabulary, the merges and the post-processor from tokenizer.json, and build the
/// normalizer, the pre-tokenizer and the decoder anew. Sources:
/// transformers/models/auto/tokenization_auto.py,
/// models/{llama,gpt2,qwen2,gpt_neox,gemma}/tokenization_*.py and tokenization_utils_tokenizers.py.

/// The way in which a served class builds a tokenizer.
enum class Build {
  kFromFile,  ///< TokenizersBackend: tokenizer.json as it is
  kLlama,     ///< LlamaTokenizer
  kGpt2,      ///< GPT2Tokenizer
  kQwen2,     ///< Qwen2Tokenizer
  kGptNeoX,   ///< GPTNeoXTokenizer
  kGemma,     ///< GemmaTokenizer
};

/// A served class. A default is the content of the token that the class uses if the files name
/// none; null for no token.
struct ClassRules {
  const char* name;
  Build build;
  const char* bos = nullptr;
  const char* eos = nullptr;
  const char* unk = nullptr;
  const char* pad = nullptr;
  const char* mask = nullptr;
};

/// The class that AutoTokenizer picks, and the file and key that decide.
struct PickedClass {
  std::string name;
  std::string where;
};

/// The files of a checkpoint's folder that decide the class.
struct ClassFiles {
  Json tokenizer_config;  ///< an object; empty if there is no file
  Json config;            ///< config.json; an object, empty if there is no file
  std::string directory;
};

/// The class that AutoTokenizer.from_pretrained picks without trust_remote_code. `tokenizer_json`
/// is the text of that file. The name may be one that is not served.
PickedClass PickClass(const ClassFiles& files, std::string_view tokenizer_json);

/// The rules of a class by its name; null if the class is not served.
const ClassRules* FindClass(std::string_view name);

/// Like FindClass. Throws Error(kInput) for a class that is not served. The error says which file
/// and key name the class.
const ClassRules& RequireClass(const PickedClass& picked);

/// Writes the parts that the class builds anew into the document of a tokenizer.json. `settings`
/// are the arguments of the class (tokenizer_config.json). `where` is their place.
void Rebuild(const ClassRules& rules, const Json& settings, const std::string& where, Json* file);

/// Puts the corrected splitting expression of Mistral's tokenizers into the document, under the
/// same conditions as transformers: fix_mistral_regex is set, the tokenizer has more than 100,000
/// tokens, and config.json is that of a Mistral model written before transformers 5.
void FixMistralPattern(const Json& settings, const Json& config, size_t tokens, Json* file);

}  // namespace evald::tok
