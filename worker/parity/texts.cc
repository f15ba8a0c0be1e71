#include "worker/parity/texts.h"

namespace evald::parity {

const std::vector<std::string>& Texts() {
  static const std::vector<std::string> kTexts = {
      "The tide comes in twice a day because the moon",
      "17 + 25 = 42, 8 * 7 = 56 and 1,024 / 32 = 32. So 90 - 33 =",
      "def area(width, height):\n    \"\"\"Area of a rectangle.\"\"\"\n    return width *",
      "User: Which planet is the largest?\nAssistant: Jupiter.\nUser: And the second largest?\n"
      "Assistant:",
      "Der Zug nach Köln fährt um 7:45 Uhr ab. Le café d'à côté n'ouvre qu'à neuf heures.  ¿Y el "
      "señor Núñez?",
      "春天来了，花园里的花都开了。Москва — столица России. ありがとう！ 🙂 x² ≤ 3½\t\tend of line",
  };
  return kTexts;
}

}  // namespace evald::parity
