#pragma once

#include <string>

namespace evald::http_client {

/// The file of certificates (PEM) to trust where a call names none: that of SSL_CERT_FILE, or else
/// the place in which other systems than Debian keep theirs. "" leaves the choice to libcurl, which
/// looks where the system keeps them that libcurl was built on. evald's tarball brings Debian's
/// libcurl to other systems.
std::string SystemCertificates();

}  // namespace evald::http_client
