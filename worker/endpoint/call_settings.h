#pragma once

#include "worker/endpoint/call.h"
#include "worker/endpoint/call_fields.h"

namespace evald::endpoint {

/// Reads the members that completions and chat completions have in common: sampling, `stop`, `n`,
/// `seed`, `stream`; and refuses those that would change answers and are not served. Throws
/// ApiError.
void ReadCommonSettings(CallFields* fields, const ServedModel& model, Call* call);

/// Sets tokens_max. `asked` is the call's own number, `fallback` the number for a call that says
/// none; both absent: as many as fit. Throws ApiError if a prompt and its answer do not fit.
void SetTokensMax(const ServedModel& model, std::optional<int64_t> asked,
                  std::optional<int64_t> fallback, const std::string& key, Call* call);

}  // namespace evald::endpoint
