#include "worker/open_trial.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr size_t kPreparedTasksMax = 256;

void CheckSlice(const protocol::Slice& slice, const PreparedTask& task) {
  if (task.name() != slice.task) {
    throw Error(ErrorKind::kInput, fmt::format("{}: holds the task '{}', the lease says '{}'",
                                               slice.prepared, task.name(), slice.task));
  }
  if (slice.first < 0 || slice.first >= slice.end || slice.end > task.document_count()) {
    throw Error(ErrorKind::kInput,
                fmt::format("task '{}': a slice of documents [{}, {}), the prepared task has {}",
                            slice.task, slice.first, slice.end, task.document_count()));
  }
  if (slice.file.empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("task '{}': a slice without a file to write", slice.task));
  }
}

}  // namespace

std::shared_ptr<const PreparedTask> PreparedCache::Open(const std::string& folder,
                                                        const std::string& tokenizer_key) {
  const std::string key = folder + '\n' + tokenizer_key;
  const auto found = open_.find(key);
  if (found != open_.end()) return found->second;
  auto task = std::make_shared<PreparedTask>(folder);
  if (!tokenizer_key.empty() && !task->AttachTokens(tokenizer_key)) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: has no tokens of tokenizer {}", folder, tokenizer_key),
                "remove the folder, so that the task is prepared again");
  }
  if (open_.size() >= kPreparedTasksMax) open_.clear();
  open_[key] = task;
  return task;
}

OpenTrial::OpenTrial(const protocol::Lease& lease, const EngineInfo& engine,
                     PreparedCache* prepared)
    : state_(std::make_shared<TrialState>()), engine_(engine) {
  state_->trial = progress_.trial = lease.trial;
  state_->attempt = progress_.attempt = lease.attempt;
  if (lease.slices.empty()) throw Error(ErrorKind::kInput, "a lease without slices");
  for (const protocol::Slice& spec : lease.slices) {
    OpenSlice slice;
    slice.spec = spec;
    slice.task = prepared->Open(spec.prepared, engine.wants_tokens ? spec.tokenizer_key : "");
    CheckSlice(spec, *slice.task);
    const Json& definition = slice.task->task();
    if (definition.contains("command")) {
      slice.command = CommandFromJson(definition.at("command"),
                                      slice.task->directory().string() + "/task.json");
    }
    slice.next_document = spec.first;
    slices_.push_back(std::move(slice));
  }
}

void OpenTrial::Begin(OpenSlice* slice) {
  slice->file = std::make_unique<GenerationsFile>(slice->spec.file, slice->spec.first,
                                                  slice->spec.end, slice->spec.salvage);
  slice->opened = true;
}

void OpenTrial::LoadMore(OpenSlice* slice) {
  while (slice->todo.empty() && slice->next_document < slice->spec.end) {
    const int64_t document = slice->next_document++;
    for (Request& request : slice->task->Requests(document, document + 1)) {
      if (std::find(engine_.kinds.begin(), engine_.kinds.end(), request.kind) ==
          engine_.kinds.end()) {
        throw Error(
            ErrorKind::kInput,
            fmt::format("the task '{}' needs {} requests, which the engine '{}' cannot serve",
                        slice->spec.task, ToString(request.kind), engine_.name));
      }
      request.task = slice->spec.task;
      for (request.repeat = 0; request.repeat < slice->task->repeats(); ++request.repeat) {
        const RequestKey key{request.doc_id, request.idx, request.repeat};
        if (slice->file->Expect(key, request.kind)) {
          ++slice->done;
          ++slice->salvaged;
          ++progress_.requests_done;
          ++progress_.salvaged;
        } else {
          slice->todo.push_back(request);
        }
      }
    }
  }
}

const CommandSpec* OpenTrial::next_command() const {
  for (size_t s = feeding_; s < slices_.size(); ++s) {
    if (!slices_[s].taken && !slices_[s].fed()) return command_of(s);
  }
  return nullptr;
}

const CommandSpec* OpenTrial::command_of(size_t slice) const {
  const auto& command = slices_[slice].command;
  return command ? &*command : nullptr;
}

const std::string& OpenTrial::feeding_task() const {
  return slices_[std::min(feeding_, slices_.size() - 1)].spec.task;
}

std::vector<size_t> OpenTrial::slices_in_flight() const {
  std::vector<size_t> found;
  for (size_t s = 0; s < slices_.size(); ++s) {
    if (slices_[s].in_flight > 0) found.push_back(s);
  }
  return found;
}

bool OpenTrial::Next(Feed* feed, bool one_slice) {
  for (; feeding_ < slices_.size(); ++feeding_) {
    OpenSlice& slice = slices_[feeding_];
    if (slice.taken) continue;
    if (!slice.opened) Begin(&slice);
    LoadMore(&slice);
    if (slice.todo.empty()) continue;
    if (one_slice && in_flight_ > slice.in_flight) return false;
    feed->slice = feeding_;
    feed->request = std::move(slice.todo.front());
    slice.todo.pop_front();
    ++slice.in_flight;
    ++in_flight_;
    return true;
  }
  return false;
}

void OpenTrial::Finish(size_t index, Generation generation, double seconds) {
  OpenSlice& slice = slices_[index];
  slice.longest_seconds = std::max(slice.longest_seconds, seconds);
  --slice.in_flight;
  --in_flight_;
  if (!IsUtf8(generation.text)) generation.text = ReplaceInvalidUtf8(generation.text);
  slice.file->Add(generation);
  ++slice.done;
  ++progress_.requests_done;
  progress_.tokens_in += generation.tokens_in;
  progress_.tokens_out += generation.tokens_out;
}

void OpenTrial::Flush() {
  for (OpenSlice& slice : slices_) {
    if (slice.file) slice.file->Flush();
  }
}

void OpenTrial::Rewind() {
  feeding_ = 0;
  in_flight_ = 0;
  for (OpenSlice& slice : slices_) {
    if (slice.taken) continue;
    progress_.requests_done -= slice.done;
    progress_.salvaged -= slice.salvaged;
    slice.done = 0;
    slice.salvaged = 0;
    slice.in_flight = 0;
    slice.todo.clear();
    slice.next_document = slice.spec.first;
  }
}

void OpenTrial::Charge(double seconds, int64_t of_all) {
  for (OpenSlice& slice : slices_) {
    const double share = static_cast<double>(slice.in_flight) / static_cast<double>(of_all);
    slice.device_seconds += share * seconds;
    device_seconds_ += share * seconds;
  }
}

std::optional<int64_t> OpenTrial::Shorten(const std::string& task, int64_t first, int64_t end) {
  for (OpenSlice& slice : slices_) {
    if (slice.taken || slice.spec.task != task || slice.spec.first != first) continue;
    slice.spec.end = std::clamp(std::max(end, slice.next_document),
                                std::min(first + 1, slice.spec.end), slice.spec.end);
    return slice.spec.end;
  }
  return std::nullopt;
}

std::optional<OpenTrial::Complete> OpenTrial::TakeComplete() {
  for (OpenSlice& slice : slices_) {
    if (slice.taken || !slice.fed() || slice.in_flight > 0) continue;
    slice.taken = true;
    progress_.salvaged -= slice.salvaged;
    ++taken_;
    return Complete{slice.spec, std::move(slice.file), slice.device_seconds, slice.longest_seconds};
  }
  return std::nullopt;
}

int64_t OpenTrial::Remaining() const {
  int64_t remaining = 0;
  for (const OpenSlice& slice : slices_) {
    if (slice.taken) continue;
    const int64_t documents = std::max<int64_t>(slice.task->document_count(), 1);
    const int64_t per_document = (slice.task->request_count() + documents - 1) / documents;
    remaining += static_cast<int64_t>(slice.todo.size()) +
                 (slice.spec.end - slice.next_document) * per_document * slice.task->repeats();
  }
  return remaining;
}

}  // namespace evald
