#include "http_server/own_certificates.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/file.h"
#include "http_server/server.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::http::test {
namespace {

using ::testing::HasSubstr;

class OwnCertificatesTest : public ::testing::Test {
 protected:
  OwnCertificates Keep(const std::vector<std::string>& names) {
    return KeepOwnCertificates(folder_.path(), names);
  }

  // Whether a client that trusts the authority alone accepts the server as `host`.
  static bool Accepts(const OwnCertificates& files, const std::string& host) {
    ServerOptions options;
    options.certificate = files.certificate;
    options.key = files.key;
    options.tokens.Add("worker", Role::kWorker, "0123456789abcdef");
    Server server(options, Router());
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    SSL_CTX* context = ::SSL_CTX_new(::TLS_client_method());
    EXPECT_EQ(::SSL_CTX_load_verify_file(context, files.authority.c_str()), 1);
    ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL* tls = ::SSL_new(context);
    X509_VERIFY_PARAM* rules = ::SSL_get0_param(tls);
    if (host.find_first_not_of("0123456789.") == std::string::npos) {
      ::X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str());
    } else {
      ::X509_VERIFY_PARAM_set1_host(rules, host.c_str(), host.size());
    }
    ::SSL_set_fd(tls, socket.get());
    const bool accepted = ::SSL_connect(tls) == 1;
    ::SSL_free(tls);
    ::SSL_CTX_free(context);
    return accepted;
  }

  TemporaryFolder folder_;
};

TEST_F(OwnCertificatesTest, AClientOfTheAuthorityAcceptsTheNamesAndNoOthers) {
  const OwnCertificates files = Keep({"node1.example", "10.1.2.3"});
  EXPECT_TRUE(Accepts(files, "node1.example"));
  EXPECT_TRUE(Accepts(files, "10.1.2.3"));
  EXPECT_FALSE(Accepts(files, "node2.example"));
  EXPECT_FALSE(Accepts(files, "10.1.2.4"));
}

TEST_F(OwnCertificatesTest, AnotherAuthorityIsNotTrusted) {
  const TemporaryFolder other;
  OwnCertificates files = Keep({"node1.example"});
  files.authority = KeepOwnCertificates(other.path(), {"node1.example"}).authority;
  EXPECT_FALSE(Accepts(files, "node1.example"));
}

// A number with a zero in front is no DER, and no client or server would read it.
TEST_F(OwnCertificatesTest, ASerialNumberIsAsLongAsItsBytes) {
  for (int i = 0; i < 8; ++i) {
    const OwnCertificates files = Keep({"node" + std::to_string(i)});
    FILE* file = ::fopen(files.certificate.c_str(), "r");
    ASSERT_NE(file, nullptr);
    X509* certificate = ::PEM_read_X509(file, nullptr, nullptr, nullptr);
    ::fclose(file);
    ASSERT_NE(certificate, nullptr);
    const ASN1_INTEGER* serial = ::X509_get0_serialNumber(certificate);
    ASSERT_EQ(::ASN1_STRING_length(serial), 16);
    EXPECT_EQ(::ASN1_STRING_get0_data(serial)[0] & 0xc0, 0x40);
    ::X509_free(certificate);
  }
}

TEST_F(OwnCertificatesTest, FilesStayUntilTheNamesChange) {
  const OwnCertificates files = Keep({"node1.example"});
  const std::string authority = ReadFile(files.authority), first = ReadFile(files.certificate);
  Keep({"node1.example"});
  EXPECT_EQ(ReadFile(files.certificate), first);
  Keep({"node1.example", "node1"});
  EXPECT_NE(ReadFile(files.certificate), first);
  EXPECT_EQ(ReadFile(files.authority), authority);
  EXPECT_TRUE(Accepts(files, "node1"));
}

TEST_F(OwnCertificatesTest, ACertificateThatDoesNotFitItsKeyIsMadeAnew) {
  const OwnCertificates files = Keep({"node1"});
  const std::string key = ReadFile(files.key);
  std::filesystem::remove(files.certificate);  // a crash between the two files
  Keep({"node1"});
  WriteFileAtomic(files.key, key);
  Keep({"node1"});
  EXPECT_TRUE(Accepts(files, "node1"));
}

TEST_F(OwnCertificatesTest, OnlyTheUserReadsKeys) {
  Keep({"node1"});
  for (const char* name : {"authority.key", "server.key"}) {
    struct stat info{};
    ASSERT_EQ(::stat((folder_ / name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600) << name;
  }
}

TEST_F(OwnCertificatesTest, ABrokenFileIsNamed) {
  const OwnCertificates files = Keep({"node1"});
  WriteFileAtomic(files.authority, "nothing");
  EXPECT_THAT(CaughtText([&] { Keep({"node1"}); }),
              HasSubstr("authority.pem: expected a certificate"));
}

}  // namespace
}  // namespace evald::http::test
