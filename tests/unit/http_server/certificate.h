#pragma once

#include <filesystem>

namespace evald::http::test {

/// Writes certificate.pem and key.pem into `folder`: for the host localhost, signed by itself, good
/// for an hour.
void MakeCertificate(const std::filesystem::path& folder);

}  // namespace evald::http::test
