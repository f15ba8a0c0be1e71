#include "orchestrator/run/worker_profile.h"

#include "base/jsonl.h"

namespace evald {

std::string WorkerProfile::Tag() const { return ToLine(Json({engine, settings, threads, seed})); }

EngineFacts FactsOf(const Json& engine) {
  return {engine.value("name", ""), engine.value("version", ""), engine.value("device", ""),
          engine.contains("device_id")};
}

}  // namespace evald
