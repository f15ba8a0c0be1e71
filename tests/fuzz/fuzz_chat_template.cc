#include <cstddef>
#include <cstdint>
#include <string>

#include "base/text.h"
#include "chat/chat_template.h"
#include "evald/error.h"

// Any text as a chat template, rendered over chats of several shapes, to be answered and to be gone
// on with. The text behind a zero byte is the last message's content.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using evald::Json;
  const std::string input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  std::string content = end == std::string::npos ? "Hi é\n" : input.substr(end + 1);
  if (!evald::IsUtf8(content)) content = "not UTF-8";
  const Json system = {{"role", "system"}, {"content", "Be nice."}};
  const Json user = {{"role", "user"}, {"content", "Hi <there>"}};
  const Json answer = {{"role", "assistant"}, {"content", "<think>x</think>\n\nHello"}};
  const Json last = {{"role", "assistant"}, {"content", content}};
  const Json tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  try {
    const evald::ChatTemplate chat(input.substr(0, end), tokens, evald::ChatDate{1769817600},
                                   "fuzz");
    for (const Json& messages : {Json::array({user}), Json::array({system, user, answer, user}),
                                 Json::array({system, user, last})}) {
      for (const bool prompt : {true, false}) {
        try {
          chat.RenderForHarness(messages, prompt);
        } catch (const evald::Error&) {
        }
      }
    }
  } catch (const evald::Error&) {
  }
  return 0;
}
