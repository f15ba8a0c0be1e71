#pragma once

#include "evald/json.h"
#include "worker/endpoint/served_model.h"

namespace evald::endpoint {

/// /tokenize in vLLM's form: {"model"?, "prompt", "add_special_tokens"?} or {"model"?, "messages",
/// ...} gives {"count", "max_model_len", "tokens"}. Throws ApiError.
Json Tokenize(const Json& body, const ServedModel& model);

/// /detokenize in vLLM's form: {"model"?, "tokens"} gives {"prompt"}. Throws ApiError.
Json Detokenize(const Json& body, const ServedModel& model);

/// /tokenizer_info, as lm-evaluation-harness's tokenizer backend `remote` reads it: the special
/// tokens (null for none) and the chat template.
Json TokenizerInfo(const ServedModel& model);

}  // namespace evald::endpoint
