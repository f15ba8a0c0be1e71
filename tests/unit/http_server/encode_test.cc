#include "http_server/encode.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace evald::http {
namespace {

std::string Gunzip(const std::string& packed) {
  z_stream stream{};
  ::inflateInit2(&stream, 15 + 16);
  std::string text(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  ::inflateEnd(&stream);
  return text;
}

TEST(Response, StatusesOfRangesHaveTheirPhrase) {
  EXPECT_EQ(ReasonPhrase(200), "OK");
  EXPECT_EQ(ReasonPhrase(206), "Partial Content");
  EXPECT_EQ(ReasonPhrase(416), "Range Not Satisfiable");
}

TEST(Encode, CompressesWhereItIsAcceptedAndPays) {
  const std::string body(10'000, 'x');
  Request request;
  request.method = "GET";
  Response plain = JsonResponse(200, body);
  Encode(request, &plain);
  EXPECT_EQ(plain.body, body);
  EXPECT_EQ(plain.headers.Get("Vary"), "Accept-Encoding");

  request.headers.Add("Accept-Encoding", "br, gzip;q=0.5");
  Response packed = JsonResponse(200, body);
  Encode(request, &packed);
  EXPECT_EQ(packed.headers.Get("Content-Encoding"), "gzip");
  EXPECT_EQ(Gunzip(packed.body), body);
  EXPECT_EQ(packed.headers.Get("ETag"), plain.headers.Get("ETag"));

  Response small = JsonResponse(200, "{}");
  Encode(request, &small);
  EXPECT_EQ(small.body, "{}");
}

TEST(Encode, AnswersNotModified) {
  Request request;
  request.method = "GET";
  Response first = JsonResponse(200, "{\"a\":1}");
  Encode(request, &first);
  request.headers.Add("If-None-Match", "\"other\", " + first.headers.Get("ETag"));
  Response second = JsonResponse(200, "{\"a\":1}");
  Encode(request, &second);
  EXPECT_EQ(second.status, 304);
  EXPECT_TRUE(second.body.empty());
  Response changed = JsonResponse(200, "{\"a\":2}");
  Encode(request, &changed);
  EXPECT_EQ(changed.status, 200);
}

TEST(Encode, ReadsAcceptEncoding) {
  for (const char* yes : {"gzip", "GZIP", "*", "deflate, gzip; q=1"})
    EXPECT_TRUE(AcceptsGzip(yes)) << yes;
  for (const char* no : {"", "br", "gzip;q=0", "gzip; q=0.0", "xgzip"})
    EXPECT_FALSE(AcceptsGzip(no)) << no;
}

}  // namespace
}  // namespace evald::http
