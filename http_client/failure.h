#pragma once

#include "evald/error.h"
#include "http_client/request.h"

namespace evald::http_client {

/// The error for a call that brought no whole answer: what was asked of whom, what happened, and
/// the remedy. Its kind is kInfrastructure.
Error FailureOf(const Request& request, const Response& response);

/// Sets outcome, error and remedy of `response` from libcurl's result and its own words for it.
/// Internal to this room.
void SetFailure(int curl_code, const char* words, Response* response);

}  // namespace evald::http_client
