// Calls to a server on loopback that answers well, badly, slowly or not at all.
#include "http_client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "evald/error.h"
#include "http_client/failure.h"
#include "http_client/problem.h"
#include "scripted_server.h"

namespace evald::http_client::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

Request Get(const std::string& url) {
  Request request;
  request.url = url;
  request.limits.total = kPatience;
  return request;
}

std::string Gzip(const std::string& text) {
  z_stream stream{};
  ::deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

TEST(Client, SendsWhatItIsToldAndNothingElse) {
  ScriptedServer server([](const std::string&) { return Answer(200, "fine"); });
  Request request = Get(server.url("/a?b=c"));
  request.method = "PUT";
  request.body = std::string("x\0y", 3);
  request.headers = {{"Evald-Test", "yes"}};
  request.bearer_token = "secret";
  Client client;
  const Response response = client.Perform(request);
  EXPECT_TRUE(response.ok()) << response.error;
  EXPECT_EQ(response.body, "fine");
  const std::string sent = server.requests().at(0);
  EXPECT_TRUE(sent.starts_with("PUT /a?b=c HTTP/1.1\r\n")) << sent;
  EXPECT_THAT(sent, HasSubstr("\r\nEvald-Test: yes\r\n"));
  EXPECT_THAT(sent, HasSubstr("\r\nAuthorization: Bearer secret\r\n"));
  EXPECT_THAT(sent, HasSubstr("\r\nUser-Agent: evald\r\n"));
  for (const char* field : {"Expect", "Content-Type", "Accept-Encoding", "Cookie"})
    EXPECT_THAT(sent, Not(HasSubstr(field)));
  EXPECT_TRUE(sent.ends_with(std::string("\r\n\r\nx\0y", 7)));
}

TEST(Client, AnAnswerOfAnyStatusIsAnAnswer) {
  ScriptedServer server([](const std::string& request) {
    const int status = std::stoi(request.substr(5, 3));
    return Answer(status, R"({"detail": "odd", "remedy": "even it out"})");
  });
  Client client;
  for (const int status : {200, 404, 503}) {
    const Response response = client.Perform(Get(server.url("/" + std::to_string(status))));
    EXPECT_TRUE(response.answered());
    EXPECT_EQ(response.ok(), status == 200);
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(ProblemOf(response).detail, "odd");
    EXPECT_EQ(ProblemOf(response).remedy, "even it out");
  }
  EXPECT_EQ(server.connections(), 1) << "the connection is kept";
}

TEST(Client, ARedirectIsNotFollowed) {
  ScriptedServer other([](const std::string&) { return Answer(200, "taken"); });
  ScriptedServer server([&](const std::string&) {
    return Answer(307, "", "Location: " + other.url("/there?token=1") + "\r\n");
  });
  Request request = Get(server.url());
  request.bearer_token = "secret";
  const Response response = Client().Perform(request);
  EXPECT_EQ(response.status, 307);
  EXPECT_FALSE(response.ok());
  EXPECT_TRUE(other.requests().empty());
  EXPECT_EQ(ProblemOf(response).detail,
            "status 307: a redirect to " + other.url("/there") + ", which is not followed");
}

TEST(Client, ABodyOverItsLimitEndsTheCall) {
  ScriptedServer server([](const std::string&) { return Answer(200, std::string(5000, 'x')); });
  Request request = Get(server.url());
  request.limits.body_bytes_max = 5000;
  Client client;
  EXPECT_TRUE(client.Perform(request).ok());
  request.limits.body_bytes_max = 4999;
  const Response response = client.Perform(request);
  EXPECT_EQ(response.outcome, Outcome::kTooLong);
  EXPECT_EQ(response.status, 200);
  EXPECT_LE(response.body.size(), 4999u);
  EXPECT_THAT(response.error, HasSubstr("too long"));
}

TEST(Client, TheLimitHoldsForTheUnpackedBody) {
  const std::string packed = Gzip(std::string(10 << 20, 'x'));
  ScriptedServer server(
      [&](const std::string&) { return Answer(200, packed, "Content-Encoding: gzip\r\n"); });
  Request request = Get(server.url());
  request.gzip = true;
  request.limits.body_bytes_max = 10 << 20;
  Client client;
  EXPECT_EQ(client.Perform(request).body, std::string(10 << 20, 'x'));
  EXPECT_THAT(server.requests().at(0), HasSubstr("Accept-Encoding: gzip"));
  request.limits.body_bytes_max = 1 << 20;
  EXPECT_EQ(client.Perform(request).outcome, Outcome::kTooLong);
}

TEST(Client, AHeaderOverItsLimitEndsTheCall) {
  std::string fields;
  for (int i = 0; i < 100; ++i) fields += "Field: " + std::string(1000, 'x') + "\r\n";
  ScriptedServer server([&](const std::string&) { return Answer(200, "", fields); });
  const Response response = Client().Perform(Get(server.url()));
  EXPECT_EQ(response.outcome, Outcome::kTooLong);
  EXPECT_THAT(response.error, HasSubstr("header is too long"));
}

TEST(Client, ASlowAnswerEndsAtTheLimitOfTheWholeCall) {
  ScriptedServer server([](const std::string&) { return Script{"HTTP/1.1 200", kPatience}; });
  Request request = Get(server.url());
  request.limits.total = milliseconds(200);
  const Response response = Client().Perform(request);
  EXPECT_EQ(response.outcome, Outcome::kTimedOut);
  EXPECT_FALSE(response.error.empty());
  EXPECT_THAT(FailureOf(request, response).what(), HasSubstr("GET " + server.url() + ": "));
}

TEST(Client, SilenceInTheMiddleOfAnAnswerEndsTheCall) {
  ScriptedServer server([](const std::string&) {
    return Script{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", kPatience};
  });
  Request request = Get(server.url());
  request.limits.silence = std::chrono::seconds(1);
  const Response response = Client().Perform(request);
  EXPECT_EQ(response.outcome, Outcome::kTimedOut);
  EXPECT_EQ(response.status, 200) << "it came, though the rest did not";
  EXPECT_FALSE(response.ok());
}

TEST(Client, HalfAnAnswerIsNone) {
  const std::string half = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345";
  for (const std::string& bytes : {half, std::string("HTTP/1.1 200 OK\r\nConte"),
                                   std::string("SSH-2.0-OpenSSH_9\r\n\r\n"), std::string()}) {
    ScriptedServer server([&](const std::string&) { return Script{bytes, {}, "", true}; });
    const Response response = Client().Perform(Get(server.url()));
    EXPECT_EQ(response.outcome, Outcome::kBroken) << bytes;
    EXPECT_FALSE(response.ok());
    EXPECT_FALSE(response.error.empty());
  }
}

TEST(Client, WhereNobodyListensIsSaid) {
  std::string url;
  {
    ScriptedServer server([](const std::string&) { return Answer(200, ""); });
    url = server.url("/p?key=secret");
  }
  const Request request = Get(url);
  const Response response = Client().Perform(request);
  EXPECT_EQ(response.outcome, Outcome::kUnreachable);
  EXPECT_EQ(response.status, 0);
  const Error failure = FailureOf(request, response);
  EXPECT_EQ(failure.kind(), ErrorKind::kInfrastructure);
  EXPECT_TRUE(std::string(failure.what()).starts_with("GET http://127.0.0.1:")) << failure.what();
  EXPECT_THAT(failure.what(), HasSubstr("check that the server runs there"));
  EXPECT_THAT(failure.what(), Not(HasSubstr("secret")));
}

TEST(Client, ASinkTakesTheBodyOfASuccessOnly) {
  ScriptedServer server([](const std::string& request) {
    return Answer(request.starts_with("GET /404 ") ? 404 : 200, std::string(300'000, 'x'));
  });
  std::string taken;
  Request request = Get(server.url());
  request.limits.body_bytes_max = 300'000;
  request.sink = [&](std::string_view bytes) {
    taken += bytes;
    return true;
  };
  Client client;
  const Response response = client.Perform(request);
  EXPECT_TRUE(response.ok());
  EXPECT_EQ(response.body, "");
  EXPECT_EQ(response.sink_bytes, 300'000u);
  EXPECT_EQ(taken.size(), 300'000u);
  request.url = server.url("/404");
  EXPECT_EQ(client.Perform(request).body.size(), 300'000u);
  EXPECT_EQ(taken.size(), 300'000u);
}

TEST(Client, ASinkEndsTheCallOrThrows) {
  ScriptedServer server([](const std::string&) {
    return Script{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", kPatience};
  });
  Request request = Get(server.url());
  request.sink = [](std::string_view) { return false; };
  Client client;
  EXPECT_EQ(client.Perform(request).outcome, Outcome::kStopped);
  request.sink = [](std::string_view) -> bool { throw Error(ErrorKind::kInput, "odd"); };
  EXPECT_THROW(client.Perform(request), Error);
  request = Get(server.url());
  request.limits.total = milliseconds(200);
  EXPECT_EQ(client.Perform(request).outcome, Outcome::kTimedOut) << "the client is still of use";
}

TEST(Client, AnAnswersHeaderComesBeforeItsBody) {
  ScriptedServer server([](const std::string& request) {
    return Answer(request.starts_with("GET /302 ") ? 302 : 206, "body",
                  "ETag:  \"a\" \r\nX-One: 1\r\nx-one: 2\r\nLocation: /x\r\n");
  });
  Request request = Get(server.url());
  std::string seen;
  request.begin = [&](int status, const Fields& fields) {
    seen += std::to_string(status) + (fields.empty() ? "" : fields.at("etag") + fields.at("x-one"));
    return true;
  };
  request.sink = [&](std::string_view bytes) {
    seen += bytes;
    return true;
  };
  Client client;
  EXPECT_TRUE(client.Perform(request).fields.empty()) << "they are kept only if asked for";
  EXPECT_EQ(seen, "206body");
  seen.clear();
  request.keep_fields = true;
  EXPECT_EQ(client.Perform(request).fields.at("content-length"), "4");
  EXPECT_EQ(seen, "206\"a\"2body");
  request.url = server.url("/302");
  seen.clear();
  EXPECT_EQ(client.Perform(request).fields.at("etag"), "\"a\"");
  EXPECT_EQ(seen, "");
  request.url = server.url();
  request.begin = [](int, const Fields&) { return false; };
  EXPECT_EQ(client.Perform(request).outcome, Outcome::kStopped);
  request.begin = [](int, const Fields&) -> bool { throw Error(ErrorKind::kInput, "odd"); };
  EXPECT_THROW(client.Perform(request), Error);
  EXPECT_EQ(seen, "") << "the sink gets nothing of an answer that is not wanted";
}

TEST(Client, ACancelledCallEndsSoon) {
  ScriptedServer server([](const std::string&) { return Script{"HTTP/1.1 200", kPatience}; });
  std::atomic<bool> cancel{false};
  std::thread other([&] {
    while (server.requests().empty()) std::this_thread::sleep_for(milliseconds(1));
    cancel = true;
  });
  Client client;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(client.Perform(Get(server.url()), &cancel).outcome, Outcome::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience / 2);
  other.join();
  EXPECT_EQ(client.Perform(Get(server.url()), &cancel).outcome, Outcome::kCancelled);
  EXPECT_EQ(server.requests().size(), 1u)
      << "a call that is cancelled before it begins is not made";
}

}  // namespace
}  // namespace evald::http_client::test
