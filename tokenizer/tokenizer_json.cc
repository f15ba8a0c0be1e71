#include "tokenizer/tokenizer_json.h"

#include <fmt/format.h>

#include <vector>

#include "base/json_tree.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald::tok {
namespace {

constexpr size_t kBytesMax = size_t{256} << 20;
constexpr size_t kDepthMax = 64;
constexpr size_t kMembersMax = 10'000;

// Gets the events of the parser. The members of model.vocab go into the vocabulary and not into the
// document. (A callback of Json::parse would do this, too, but after each object nlohmann's parser
// then walks through the whole list around it.)
class Reader {
 public:
  Reader(TokenizerJson* out, const std::string& where) : out_(out), where_(where) {}

  Json Take() { return tree_.Take(); }

  bool null() { return InVocab() ? AddToken(nullptr) : tree_.null(); }
  bool boolean(bool value) { return InVocab() ? AddToken(value) : tree_.boolean(value); }
  bool number_integer(int64_t value) {
    return InVocab() ? AddToken(value) : tree_.number_integer(value);
  }
  bool number_unsigned(uint64_t value) {
    return InVocab() ? AddToken(value) : tree_.number_unsigned(value);
  }
  bool number_float(double value, const std::string& text) {
    return InVocab() ? AddToken(value) : tree_.number_float(value, text);
  }
  bool string(std::string& value) { return InVocab() ? AddToken(value) : tree_.string(value); }
  bool binary(Json::binary_t& value) { return tree_.binary(value); }
  bool start_object(size_t members) {
    Begin();
    return tree_.start_object(members);
  }
  bool start_array(size_t items) {
    Begin();
    in_vocab_ = false;
    return tree_.start_array(items);
  }
  bool key(std::string& name) {
    if (InVocab()) {
      token_ = name;
      return true;
    }
    if (depth() == 1) in_model_ = name == "model";
    in_vocab_ = depth() == 2 && in_model_ && name == "vocab";
    if (++members_.back() > kMembersMax) {
      Refuse(fmt::format("an object has more than {} members", kMembersMax));
    }
    return tree_.key(name);
  }
  bool end_object() {
    End();
    return tree_.end_object();
  }
  bool end_array() {
    End();
    return tree_.end_array();
  }
  template <typename Failure>
  bool parse_error(size_t, const std::string&, const Failure& failure) {
    throw failure;
  }

 private:
  [[noreturn]] void Refuse(const std::string& why) const {
    throw Error(ErrorKind::kInput, where_ + ": " + why);
  }

  /// The number of objects and lists around the next event.
  size_t depth() const { return members_.size(); }
  bool InVocab() const { return in_vocab_ && depth() == 3; }

  void Begin() {
    if (depth() >= kDepthMax) Refuse(fmt::format("nested deeper than {} levels", kDepthMax));
    if (InVocab()) Refuse("model.vocab: expected a number for each token");
    members_.push_back(0);
  }

  void End() {
    members_.pop_back();
    if (depth() <= 2) in_vocab_ = false;
  }

  bool AddToken(const Json& id) {
    if (!id.is_number_integer() ||
        (id.is_number_unsigned() && id.get<uint64_t>() > uint64_t{Vocabulary::kIdsMax})) {
      Refuse(fmt::format("model.vocab: token '{}': found {}, expected an id", token_, id.dump()));
    }
    out_->vocabulary.Add(token_, id.get<int64_t>(), where_ + ": model.vocab");
    return true;
  }

  TokenizerJson* out_;
  const std::string& where_;
  JsonTree tree_;
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
    Reader reader(&out, where);
    Json::sax_parse(text, &reader);
    out.json = reader.Take();
  } catch (const Json::parse_error& e) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: not JSON at byte {} of {}", where, e.byte, text.size()),
                "the file is cut or broken: copy the tokenizer again, from where the model was "
                "trained");
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
