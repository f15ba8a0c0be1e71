#pragma once

#include <string>

namespace evald::server {

/// The line of a Python server's log that names the first cause of its end, from the exception's
/// name on: "ValueError: ...", "Value error, ..." (pydantic), "vllm: error: ..." (argparse). "" if
/// there is none. A server whose engine fails in a process of its own names the cause first, and
/// the consequences after it.
std::string PythonReason(const std::string& log);

/// The first error of llama-server's log: "gguf_init_from_file: failed to open …" of the line
/// "0.00.008.009 E gguf_init_from_file: failed to open …" (levels as in common/log.cpp of
/// llama.cpp), or "invalid argument: --x" of the line "error: invalid argument: --x". "" if there
/// is none.
std::string LlamaReason(const std::string& log);

}  // namespace evald::server
