// What is kept of a step's output.

#include <stdlib.h>
#include <string.h>

#include "metrics/sandbox/keeper/keeper.h"

namespace evald::keeper {
namespace {

bool Reserve(Kept* kept, uint64_t bytes) {
  if (bytes <= kept->capacity) return true;
  uint64_t wanted = kept->capacity < 4096 ? 4096 : kept->capacity;
  while (wanted < bytes) wanted *= 2;
  char* const grown = static_cast<char*>(realloc(kept->bytes, wanted));
  if (grown == nullptr) return false;
  kept->bytes = grown;
  kept->capacity = wanted;
  return true;
}

}  // namespace

bool Keep(Kept* kept, const char* bytes, uint64_t count, uint64_t most) {
  const uint64_t room = most > kept->count ? most - kept->count : 0;
  const uint64_t taken = count < room ? count : room;
  if (!Reserve(kept, kept->count + taken)) return false;
  memcpy(kept->bytes + kept->count, bytes, taken);
  kept->count += taken;
  return taken == count;
}

void KeepLast(Kept* kept, const char* bytes, uint64_t count, uint64_t most) {
  if (!Reserve(kept, 2 * most)) return;
  if (count > most) {
    bytes += count - most;
    count = most;
  }
  if (kept->count + count > 2 * most) {
    memmove(kept->bytes, kept->bytes + kept->count - most, most);
    kept->count = most;
  }
  if (kept->count + count > 2 * most) kept->count = 2 * most - count;
  memcpy(kept->bytes + kept->count, bytes, count);
  kept->count += count;
}

}  // namespace evald::keeper
