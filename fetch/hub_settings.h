#pragma once

#include <string>

namespace evald::fetch {

/// The URL of the hub: `given`, else $HF_ENDPOINT, else https://huggingface.co, without slashes at
/// its end. Throws Error(kUsage) if it is no http or https URL, or has a query.
std::string HubEndpoint(const std::string& given);

/// The token of the hub's user, looked for as huggingface_hub 1.x does (utils/_auth.py): $HF_TOKEN,
/// $HUGGING_FACE_HUB_TOKEN, the file $HF_TOKEN_PATH, else $HF_HOME/token, else
/// ~/.cache/huggingface/token. "" if there is none. Throws Error(kUsage), which shows nothing of
/// the token, if it has spaces or control characters within.
std::string HubToken();

}  // namespace evald::fetch
