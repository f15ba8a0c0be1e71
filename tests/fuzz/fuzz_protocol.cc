// What an agent says to its workers and to an orchestrator: any bytes are either a message, which
// comes back from its own encoding unchanged, or an Error(kInput).
#include <cstdlib>
#include <string>

#include "evald/error.h"
#include "protocol/agent_messages.h"
#include "protocol/messages.h"

namespace {

using namespace evald;

void AsMessage(const std::string& line) {
  try {
    const std::string encoded = protocol::Encode(protocol::Decode(line));
    if (protocol::Encode(protocol::Decode(encoded)) != encoded) std::abort();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInput) std::abort();
  }
}

std::string EncodeAgain(const protocol::Frame& frame) {
  return protocol::EncodeFrame(frame.number, frame.ack, protocol::EncodeBody(frame.message));
}

void AsFrame(const std::string& line) {
  try {
    const std::string encoded = EncodeAgain(protocol::DecodeFrame(line));
    if (EncodeAgain(protocol::DecodeFrame(encoded)) != encoded) std::abort();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInput) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  protocol::LineSplitter splitter;
  splitter.Feed({reinterpret_cast<const char*>(data), size});
  std::string line;
  while (splitter.Next(&line)) {
    AsMessage(line);
    AsFrame(line);
  }
  return 0;
}
