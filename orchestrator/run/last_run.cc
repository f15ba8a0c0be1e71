#include "orchestrator/run/last_run.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/names.h"
#include "base/random_id.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

void Point(const fs::path& link, const fs::path& target) {
  std::error_code error;
  const fs::file_status now = fs::symlink_status(link, error);
  if (fs::exists(now) && !fs::is_symlink(now)) {
    log::Warn("{}: no link, and therefore not led to the run {}", link.string(), target.string());
    return;
  }
  fs::path made = link;
  made += fmt::format(".{}", RandomId());
  fs::create_symlink(target, made, error);
  if (!error) fs::rename(made, link, error);
  if (!error) return;
  log::Warn("{}: not led to the run {}: {}", link.string(), target.string(), error.message());
  fs::remove(made, error);
}

}  // namespace

void PointLastAt(const fs::path& directory, const std::string& name) {
  const fs::path run = directory.has_filename() ? directory : directory.parent_path();
  for (const std::string& link : {std::string("last"), "last-" + Slug(name)})
    Point(run.parent_path() / link, run.filename());
}

}  // namespace evald
