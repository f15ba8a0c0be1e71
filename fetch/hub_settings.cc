#include "fetch/hub_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/own_folder.h"
#include "base/text.h"
#include "evald/error.h"
#include "http_client/url.h"

namespace evald::fetch {
namespace fs = std::filesystem;
namespace {

constexpr const char* kHub = "https://huggingface.co";

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : std::string(Trim(value));
}

fs::path TokenFile() {
  if (const std::string file = Variable("HF_TOKEN_PATH"); !file.empty()) return ExpandHome(file);
  if (const std::string home = Variable("HF_HOME"); !home.empty())
    return ExpandHome(home) / "token";
  const std::string cache = Variable("XDG_CACHE_HOME");
  const fs::path user = HomeFolder();
  if (cache.empty() && user.empty()) return {};
  return (cache.empty() ? user / ".cache" : fs::path(cache)) / "huggingface" / "token";
}

std::string Checked(const std::string& token, const std::string& where) {
  if (std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; }))
    return token;
  throw Error(ErrorKind::kUsage,
              where + ": the token has a space, a line break or a character beyond ASCII in it",
              "a token of the hub begins with hf_");
}

}  // namespace

std::string HubEndpoint(const std::string& given) {
  const std::string variable = Variable("HF_ENDPOINT");
  std::string endpoint = !given.empty() ? given : !variable.empty() ? variable : kHub;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  try {
    if (!http_client::ParseUrl(endpoint).has_query) return endpoint;
  } catch (Error& error) {
    throw error.AddContext(given.empty() ? "HF_ENDPOINT" : "--endpoint");
  }
  throw Error(ErrorKind::kUsage, fmt::format("{}: '{}' has a query or a fragment",
                                             given.empty() ? "HF_ENDPOINT" : "--endpoint",
                                             http_client::Shown(endpoint)));
}

std::string HubToken() {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (const std::string token = Variable(name); !token.empty()) return Checked(token, name);
  }
  const fs::path file = TokenFile();
  std::error_code missing;
  if (file.empty() || !fs::is_regular_file(file, missing)) return "";
  return Checked(std::string(Trim(ReadFile(file))), file.string());
}

}  // namespace evald::fetch
