#include "http_server/own_certificates.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald::http {
namespace {

namespace fs = std::filesystem;

constexpr int kDay = 24 * 60 * 60;
constexpr int kAuthorityDays = 3650;
constexpr int kCertificateDays = 365;
constexpr int kRenewDays = 30;

template <auto Free>
struct Freeing {
  template <typename T>
  void operator()(T* value) const {
    Free(value);
  }
};
using Bio = std::unique_ptr<BIO, Freeing<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, Freeing<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freeing<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freeing<X509_EXTENSION_free>>;

// Throws if OpenSSL says that a call failed.
void Check(bool done, const char* what) {
  if (done) return;
  char text[256] = {};
  ERR_error_string_n(ERR_get_error(), text, sizeof text);
  throw Error(ErrorKind::kInternal, fmt::format("{}: {}", what, text));
}

std::string TextOf(const Bio& bio) {
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(bytes)};
}

Bio ReadBio(const fs::path& file) {
  const std::string text = ReadFile(file);
  Bio bio(BIO_new(BIO_s_mem()));
  Check(bio && BIO_write(bio.get(), text.data(), static_cast<int>(text.size())) ==
                   static_cast<int>(text.size()),
        "BIO_write");
  return bio;
}

[[noreturn]] void RefuseBroken(const fs::path& file, const char* expected) {
  ERR_clear_error();
  throw Error(ErrorKind::kUsage, fmt::format("{}: expected {} in PEM", file.string(), expected),
              "remove the file, and a new one is made; clients must then trust the new authority");
}

Key ReadKey(const fs::path& file) {
  Key key(PEM_read_bio_PrivateKey(ReadBio(file).get(), nullptr, nullptr, nullptr));
  if (!key) RefuseBroken(file, "a private key");
  return key;
}

Certificate ReadCertificate(const fs::path& file) {
  Certificate certificate(PEM_read_bio_X509(ReadBio(file).get(), nullptr, nullptr, nullptr));
  if (!certificate) RefuseBroken(file, "a certificate");
  return certificate;
}

Key MakeKey() {
  Key key(EVP_EC_gen("P-256"));
  Check(key != nullptr, "EVP_EC_gen");
  return key;
}

// The umask of this process may let others read a new file. So the key is written to a folder of
// its user only, and its mode is set before it gets its name.
void WriteKey(const fs::path& file, const Key& key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  Check(PEM_write_bio_PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1,
        "PEM_write_bio_PrivateKey");
  PendingFile pending(file);
  if (::chmod((file.string() + ".part").c_str(), 0600) != 0) ThrowErrno(file, "chmod", errno);
  pending.Append(TextOf(bio));
  pending.Commit();
}

void WriteCertificate(const fs::path& file, const Certificate& certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  Check(PEM_write_bio_X509(bio.get(), certificate.get()) == 1, "PEM_write_bio_X509");
  WriteFileAtomic(file, TextOf(bio));
}

void Extend(X509* certificate, X509* issuer, int which, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, which, value.c_str()));
  Check(extension && X509_add_ext(certificate, extension.get(), -1) == 1, value.c_str());
}

// A certificate that is not signed yet.
Certificate Begin(const std::string& name, const Key& key, int days) {
  Certificate made(X509_new());
  Check(made && X509_set_version(made.get(), X509_VERSION_3) == 1, "X509_new");
  unsigned char serial[16];
  Check(RAND_bytes(serial, sizeof serial) == 1, "RAND_bytes");
  // A positive number of sixteen bytes: a zero before other bytes would be no DER
  serial[0] = static_cast<unsigned char>((serial[0] & 0x3f) | 0x40);
  ASN1_STRING_set(X509_get_serialNumber(made.get()), serial, sizeof serial);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -kDay);  // clocks of other hosts may be behind
  X509_gmtime_adj(X509_getm_notAfter(made.get()), long{kDay} * days);
  X509_NAME* subject = X509_get_subject_name(made.get());
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  Check(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1,
        "X509_NAME_add_entry_by_txt");
  Check(X509_set_pubkey(made.get(), key.get()) == 1, "X509_set_pubkey");
  return made;
}

void Sign(const Certificate& certificate, const Key& key) {
  Check(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0, "X509_sign");
}

Certificate MakeAuthority(const Key& key) {
  Certificate made = Begin("evald authority", key, kAuthorityDays);
  X509_set_issuer_name(made.get(), X509_get_subject_name(made.get()));
  Extend(made.get(), made.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  Extend(made.get(), made.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  Extend(made.get(), made.get(), NID_subject_key_identifier, "hash");
  Sign(made, key);
  return made;
}

bool IsAddress(const std::string& name) {
  in6_addr six{};
  in_addr four{};
  return ::inet_pton(AF_INET, name.c_str(), &four) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), &six) == 1;
}

// The names as an extension says them (RFC 5280, 4.2.1.6).
std::string AlternativeNames(const std::vector<std::string>& names) {
  std::vector<std::string> entries;
  for (const std::string& name : names)
    entries.push_back((IsAddress(name) ? "IP:" : "DNS:") + name);
  return Join(entries, ",");
}

Certificate MakeCertificate(const std::vector<std::string>& names, const Key& key,
                            const Certificate& authority, const Key& authority_key) {
  Certificate made = Begin("evald", key, kCertificateDays);
  X509_set_issuer_name(made.get(), X509_get_subject_name(authority.get()));
  X509* issuer = authority.get();
  Extend(made.get(), issuer, NID_basic_constraints, "critical,CA:FALSE");
  Extend(made.get(), issuer, NID_key_usage, "critical,digitalSignature");
  Extend(made.get(), issuer, NID_ext_key_usage, "serverAuth");
  Extend(made.get(), issuer, NID_subject_alt_name, AlternativeNames(names));
  Extend(made.get(), issuer, NID_authority_key_identifier, "keyid");
  Sign(made, authority_key);
  return made;
}

bool IsFor(const Certificate& certificate, const std::string& name) {
  if (IsAddress(name)) return X509_check_ip_asc(certificate.get(), name.c_str(), 0) == 1;
  return X509_check_host(certificate.get(), name.c_str(), name.size(), 0, nullptr) == 1;
}

// Whether the certificate that is there goes on serving.
bool IsGood(const OwnCertificates& files, const std::vector<std::string>& names,
            const Certificate& authority) {
  if (!fs::exists(files.certificate) || !fs::exists(files.key)) return false;
  const Certificate certificate = ReadCertificate(files.certificate);
  const Key key = ReadKey(files.key), authority_key(X509_get_pubkey(authority.get()));
  if (X509_check_private_key(certificate.get(), key.get()) != 1 ||
      X509_verify(certificate.get(), authority_key.get()) != 1) {
    ERR_clear_error();
    return false;
  }
  time_t soon = ::time(nullptr) + time_t{kRenewDays} * kDay;
  if (X509_cmp_time(X509_get0_notAfter(certificate.get()), &soon) < 0) return false;
  for (const std::string& name : names) {
    if (!IsFor(certificate, name)) return false;
  }
  return true;
}

}  // namespace

OwnCertificates KeepOwnCertificates(const fs::path& folder, const std::vector<std::string>& names) {
  const OwnCertificates files{folder / "authority.pem", folder / "server.pem",
                              folder / "server.key"};
  const fs::path authority_key_file = folder / "authority.key";
  if (!fs::exists(files.authority) || !fs::exists(authority_key_file)) {
    const Key key = MakeKey();
    WriteKey(authority_key_file, key);
    WriteCertificate(files.authority, MakeAuthority(key));
  }
  const Certificate authority = ReadCertificate(files.authority);
  if (IsGood(files, names, authority)) return files;
  const Key key = MakeKey();
  const Certificate made = MakeCertificate(names, key, authority, ReadKey(authority_key_file));
  WriteKey(files.key, key);
  WriteCertificate(files.certificate, made);
  return files;
}

}  // namespace evald::http
