#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_roots.h"
#include "evald/request.h"

namespace evald {

/// A tokenizer, read from a checkpoint's `tokenizer.json` and the files beside it. Gives the tokens
/// that AutoTokenizer of transformers 5.23 (with tokenizers 0.23) gives for the folder. A folder
/// with a setting that evald does not know is refused by the name of that setting. Immutable; any
/// thread may call it.
///
/// The class that transformers picks decides which parts of tokenizer.json count
/// (tokenizer/tokenizer_class.h). `truncation` and `padding` are ignored, since transformers
/// switches both off for a plain call.
class Tokenizer {
 public:
  /// `directory` is a checkpoint's folder. Throws Error(kInput).
  static std::unique_ptr<Tokenizer> Load(const ReadFolder& directory);
  /// From the text of a tokenizer.json alone. The file is used as it is, without a class. `name` is
  /// used in errors.
  static std::unique_ptr<Tokenizer> Parse(std::string_view json, const std::string& name);

  virtual ~Tokenizer() = default;

  /// Tokens of valid UTF-8 text. `add_special_tokens` runs the post-processor (BOS and the like).
  virtual std::vector<int32_t> Encode(std::string_view text, bool add_special_tokens) const = 0;

  /// Text of tokens. Invalid UTF-8 becomes U+FFFD. `skip_special_tokens` leaves out special tokens,
  /// except those whose spelling the normalizer changes, as in the tokenizers library.
  virtual std::string Decode(const std::vector<int32_t>& tokens,
                             bool skip_special_tokens) const = 0;

  virtual int32_t vocabulary_size() const = 0;  ///< highest id + 1, added tokens included
  /// Id of a token by its exact spelling, or -1.
  virtual int32_t TokenId(std::string_view token) const = 0;
  /// The exact spelling of a token (a byte-level token: in the GPT-2 alphabet), or "" if there is
  /// no such token.
  virtual std::string Spelling(int32_t id) const = 0;

  /// Ids of the tokens that the files or the class name; -1 if there is none.
  virtual int32_t bos_id() const = 0;
  virtual int32_t eos_id() const = 0;
  /// Content hash (SHA-256, 32 hexadecimal digits of it) of everything that decides an encoding, as
  /// read from the files. It names tokens files, which users share.
  virtual std::string key() const = 0;
  /// XXH3-128 of the tokenizer.json.
  virtual std::string file_hash() const = 0;
};

/// Why `id` is no token of the tokenizer: "the tokenizer has no token 99; its ids go from 0 to 72".
/// "" if it is one.
std::string WrongWithTokenId(const Tokenizer& tokenizer, int32_t id);

/// Sets the request's token lists as lm-evaluation-harness's `hf` backend does for a causal model.
/// generate_until encodes the context. loglikelihood moves trailing spaces of the context to the
/// continuation, encodes context + continuation whole, and splits at the length of the encoded
/// context. An empty context becomes the prefix token (BOS, else EOS). See TemplateLM._encode_pair
/// and HFLM.tok_encode in lm_eval 0.4.13.
void EncodeRequest(const Tokenizer& tokenizer, Request* request);

}  // namespace evald
