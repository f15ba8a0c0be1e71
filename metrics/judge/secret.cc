#include "metrics/judge/secret.h"

#include <algorithm>

#include "evald/json.h"

namespace evald {
namespace {

constexpr size_t kSecretBytesMin = 8;

void ReplaceAll(std::string* text, std::string_view what, std::string_view with) {
  for (size_t at = text->find(what); at != std::string::npos;
       at = text->find(what, at + with.size()))
    text->replace(at, what.size(), with);
}

// As the inside of a JSON text; some writers escape "/", and those of HTML three more characters.
std::string Escaped(const std::string& key, bool ascii) {
  const std::string quoted = Json(key).dump(-1, ' ', ascii, Json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

std::string ForHtml(std::string text) {
  ReplaceAll(&text, "&", "\\u0026");
  ReplaceAll(&text, "<", "\\u003c");
  ReplaceAll(&text, ">", "\\u003e");
  return text;
}

}  // namespace

Secret::Secret(const std::string& key) {
  if (key.size() < kSecretBytesMin) return;
  forms_ = {key};
  for (const bool ascii : {false, true}) {
    const std::string plain = Escaped(key, ascii);
    std::string slashes = plain;
    ReplaceAll(&slashes, "/", "\\/");
    for (const std::string& form : {plain, slashes, ForHtml(plain)}) {
      if (std::find(forms_.begin(), forms_.end(), form) == forms_.end()) forms_.push_back(form);
    }
  }
}

std::string Secret::Hide(std::string text) const {
  for (const std::string& form : forms_) ReplaceAll(&text, form, "***");
  return text;
}

bool Secret::IsIn(std::string_view text) const {
  return !forms_.empty() && text.find(forms_.front()) != std::string_view::npos;
}

}  // namespace evald
