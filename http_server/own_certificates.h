#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace evald::http {

/// A server's certificate, and the authority that signed it: files in PEM.
struct OwnCertificates {
  std::filesystem::path authority;    ///< for clients to trust in place of the system's
  std::filesystem::path certificate;  ///< of the server
  std::filesystem::path key;          ///< of the certificate; mode 0600
};

/// Keeps an authority of the server's own in `folder`, and a certificate from this authority for
/// `names` (host names and IP addresses). The authority is made once: clients that trust it go on
/// trusting it. A certificate is made anew if it is not there, is for other names, or ends within
/// thirty days. All keys are on the curve P-256, and have mode 0600. `folder` must be private
/// (MakePrivateFolder). Throws Error(kInfrastructure) if a file cannot be written, and
/// Error(kUsage) naming a file that is there and broken.
OwnCertificates KeepOwnCertificates(const std::filesystem::path& folder,
                                    const std::vector<std::string>& names);

}  // namespace evald::http
