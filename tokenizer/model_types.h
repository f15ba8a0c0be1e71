#pragma once

#include <string>
#include <string_view>

namespace evald::tok {

/// The tables by which transformers 5.23 finds the class of a tokenizer for a config.json's
/// model_type (transformers/models/auto/tokenization_auto.py).

/// The class of a model type, without "Fast", or "" if the type has none (TOKENIZER_MAPPING_NAMES
/// if the package mistral-common is absent).
std::string RegisteredClass(std::string_view model_type);

/// Whether that class is used even if tokenizer_config.json names another
/// (MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS).
bool OverridesNamedClass(std::string_view model_type);

/// Whether transformers has a class of this name. The name has no "Fast"
/// (tokenizer_class_from_name).
bool IsKnownClass(std::string_view tokenizer_class);

}  // namespace evald::tok
