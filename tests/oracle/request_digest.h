#pragma once

#include <openssl/evp.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"
#include "prepared/prepared_task.h"
#include "python/number.h"
#include "python/value.h"

// The digests of requests that tests/oracle/requests_compare.py computes over the harness's
// requests.
namespace evald::oracle {

inline std::string SamplingText(const Request& request) {
  if (request.kind != RequestKind::kGenerateUntil) return "";
  const SamplingParams& s = request.sampling;
  const double temperature = s.do_sample ? s.settings.value("temperature", 1.0) : 0.0;
  return PythonRepr(Json(s.until)) + "|" + std::to_string(s.max_gen_toks) + "|" +
         (s.do_sample ? "True" : "False") + "|" + python::FloatRepr(temperature) + "|" +
         python::FloatRepr(s.settings.value("top_p", 1.0)) + "|" +
         std::to_string(s.settings.value("top_k", 0));
}

inline std::string DigestText(const PreparedDocument& document, const Request& request) {
  std::string text;
  for (const std::string& part :
       {std::to_string(request.doc_id), std::to_string(request.idx),
        std::string(ToString(request.kind)), request.context, request.continuation,
        SamplingText(request), PythonRepr(document.target)}) {
    text += part + "\x1f";
  }
  return text + PythonRepr(document.choices) + "\x1e";
}

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }
  void Update(const std::string& text) {
    EVP_DigestUpdate(context_.get(), text.data(), text.size());
  }
  std::string Hex() {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_.get(), bytes, &size);
    std::string hex;
    for (unsigned int i = 0; i < size; ++i) {
      hex += "0123456789abcdef"[bytes[i] >> 4];
      hex += "0123456789abcdef"[bytes[i] & 15];
    }
    return hex;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

/// {"documents", "requests", "hash", "hundreds": [...]} of a prepared task.
inline Json Digests(const PreparedTask& task) {
  Sha256 whole;
  std::map<int64_t, Sha256> hundreds;
  int64_t count = 0;
  for (int64_t i = 0; i < task.document_count(); ++i) {
    const PreparedDocument document = task.Document(i);
    for (const Request& request : task.Requests(i, i + 1)) {
      const std::string text = DigestText(document, request);
      whole.Update(text);
      hundreds[i / 100].Update(text);
      ++count;
    }
  }
  Json out = {{"documents", task.document_count()}, {"requests", count}, {"hash", whole.Hex()}};
  out["hundreds"] = Json::array();
  for (auto& hundred : hundreds) out["hundreds"].push_back(hundred.second.Hex());
  return out;
}

}  // namespace evald::oracle
