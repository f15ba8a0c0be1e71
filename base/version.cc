#include "base/version.h"

namespace evald {

const char* const kEvaldVersion = EVALD_VERSION;

}  // namespace evald
