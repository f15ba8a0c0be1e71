// Requests from clients: any bytes, cut anywhere, are requests that end or a problem; and any body
// is a submission, an announcement or a priority, or a problem document. What is cut elsewhere is
// read the same.
#include <cstdlib>
#include <string>
#include <vector>

#include "base/jsonl.h"
#include "http_server/problem.h"
#include "http_server/request_parser.h"
#include "orchestrator/api/input.h"

namespace {

using namespace evald;

// What the bytes come to, fed `step` at a time: each request's line and body, then the refusal.
// Beast objects to a line of a head that has not ended at once or when it ends, by how it was cut;
// so the end of a head comes last.
std::vector<std::string> Read(std::string bytes, size_t step) {
  bytes += "\r\n\r\n";
  std::vector<std::string> read;
  http::RequestParser parser({1024, 4096});
  try {
    for (size_t at = 0; at < bytes.size(); at += step) {
      parser.Feed(std::string_view(bytes).substr(at, step));
      while (parser.ReadHead()) {
        parser.LimitBody(2048);
        if (!parser.ReadBody()) break;
        http::Request request = parser.Take();
        for (const std::string& segment : request.path) {
          if (segment == ".." || segment.find('\0') != std::string::npos) std::abort();
        }
        read.push_back(request.method + " " + request.target + " " + request.body);
      }
    }
  } catch (const http::ProblemError& error) {
    if (!parser.broken() || error.problem().status < 400 || error.problem().status > 505)
      std::abort();
    read.push_back("refused");
  }
  return read;
}

void ReadBody(std::string_view bytes) {
  try {
    api::BodyReader body(bytes);
    body.Object("config");
    body.String("yaml", 100);
    body.Integer("priority", -100, 100);
    body.Strings("set", 3, 10);
    body.Finish();
  } catch (const http::ProblemError& error) {
    if (error.problem().status != 400) std::abort();
    ParseJson(http::ProblemResponse(error.problem()).body, "a problem document");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size > 1 << 16) return 0;
  ReadBody(bytes);
  const std::vector<std::string> whole = Read(std::string(bytes), size + 4);
  const std::vector<std::string> cut = Read(std::string(bytes), 7);
  if (whole != cut) std::abort();
  return 0;
}
