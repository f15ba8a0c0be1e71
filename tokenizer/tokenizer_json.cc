#include "tokenizer/tokenizer_json.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "evald/error.h"

namespace evald::tok {
namespace {

constexpr size_t kBytesMax = size_t{256} << 20;
constexpr int kDepthMax = 64;
constexpr size_t kMembersMax = 10'000;

// Gets every event of the parser. The members of model.vocab go into the vocabulary and not into
// the document.
class Reader {
 public:
  Reader(TokenizerJson* out, const std::string& where) : out_(out), where_(where) {}

  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    switch (event) {
      case Json::parse_event_t::key:
        return Key(depth, value.get_ref<const std::string&>());
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        if (depth >= kDepthMax) Refuse(fmt::format("nested deeper than {} levels", kDepthMax));
        if (in_vocab_ && depth == 3) Refuse("model.vocab: expected a number for each token");
        if (event == Json::parse_event_t::array_start) in_vocab_ = false;
        members_.push_back(0);
        return true;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        if (!members_.empty()) members_.pop_back();
        if (depth <= 2) in_vocab_ = false;
        return true;
      case Json::parse_event_t::value:
        if (in_vocab_ && depth == 3) AddToken(value);
        return true;
    }
    return true;
  }

 private:
  [[noreturn]] void Refuse(const std::string& why) const {
    throw Error(ErrorKind::kInput, where_ + ": " + why);
  }

  bool Key(int depth, const std::string& key) {
    if (in_vocab_ && depth == 3) {
      token_ = key;
      return false;
    }
    if (depth == 1) in_model_ = key == "model";
    in_vocab_ = depth == 2 && in_model_ && key == "vocab";
    if (++members_.back() > kMembersMax) {
      Refuse(fmt::format("an object has more than {} members", kMembersMax));
    }
    return true;
  }

  void AddToken(const Json& id) {
    if (!id.is_number_integer() ||
        (id.is_number_unsigned() && id.get<uint64_t>() > uint64_t{Vocabulary::kIdsMax})) {
      Refuse(fmt::format("model.vocab: token '{}': found {}, expected an id", token_, id.dump()));
    }
    out_->vocabulary.Add(token_, id.get<int64_t>(), where_ + ": model.vocab");
  }

  TokenizerJson* out_;
  const std::string& where_;
  std::vector<size_t> members_;
  std::string token_;
  bool in_model_ = false;
  bool in_vocab_ = false;
};

}  // namespace

TokenizerJson ParseTokenizerJson(std::string_view text, const std::string& where) {
  if (text.size() > kBytesMax) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {} large, expected at most {}", where,
                                               HumanBytes(text.size()), HumanBytes(kBytesMax)));
  }
  TokenizerJson out;
  try {
    out.json = Json::parse(text, Reader(&out, where));
  } catch (const Json::parse_error& e) {
    throw Error(ErrorKind::kInput, fmt::format("{}: not JSON at byte {}", where, e.byte));
  } catch (const Json::exception&) {
    throw Error(ErrorKind::kInput, where + ": not JSON: a number is out of range");
  }
  if (!out.json.is_object()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: found {}, expected an object", where, out.json.type_name()));
  }
  return out;
}

}  // namespace evald::tok
