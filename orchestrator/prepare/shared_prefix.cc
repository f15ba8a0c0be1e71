#include "orchestrator/prepare/shared_prefix.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace evald {
namespace {

constexpr double kBytesPerToken = 4;

template <typename Sequence>
size_t Common(const Sequence& a, const Sequence& b, size_t most) {
  most = std::min({most, a.size(), b.size()});
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(most), b.begin()).first -
      a.begin());
}

}  // namespace

double SharedPrefixTokens(const PreparedTask& task, int64_t sample) {
  const int64_t documents = task.document_count();
  if (documents < 2) return 0;  // a single document shares nothing
  const int64_t count = std::min(sample, documents);
  std::optional<Request> first;
  size_t tokens = 0, bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t document = i * (documents - 1) / std::max<int64_t>(1, count - 1);
    for (Request& request : task.Requests(document, document + 1)) {
      if (!first) {
        first = std::move(request);
        tokens = first->context_tokens.size();
        bytes = first->context.size();
        continue;
      }
      tokens = Common(first->context_tokens, request.context_tokens, tokens);
      bytes = Common(first->context, request.context, bytes);
    }
  }
  if (!first) return 0;
  return first->context_tokens.empty() ? static_cast<double>(bytes) / kBytesPerToken
                                       : static_cast<double>(tokens);
}

}  // namespace evald
