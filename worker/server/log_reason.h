#pragma once

#include <string>

namespace evald::server {

/// The line of a Python server's log that names the first cause of its end, from the exception's
/// name on: "ValueError: ...", "Value error, ..." (pydantic), "vllm: error: ..." (argparse). "" if
/// there is none. A server whose engine fails in a process of its own names the cause first, and
/// the consequences after it.
std::string PythonReason(const std::string& log);

}  // namespace evald::server
