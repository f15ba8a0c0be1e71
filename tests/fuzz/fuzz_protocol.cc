// What an agent and its workers say to one another: any bytes are either a message, which comes back
// from its own encoding unchanged, or an Error(kInput).
#include <cstdlib>
#include <string>

#include "evald/error.h"
#include "protocol/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace evald;
  protocol::LineSplitter splitter;
  splitter.Feed({reinterpret_cast<const char*>(data), size});
  std::string line;
  while (splitter.Next(&line)) {
    try {
      const std::string encoded = protocol::Encode(protocol::Decode(line));
      if (protocol::Encode(protocol::Decode(encoded)) != encoded) std::abort();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInput) std::abort();
    }
  }
  return 0;
}
