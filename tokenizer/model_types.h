#pragma once

#include <string>
#include <string_view>

namespace evald::tok {

/// What transformers 5.23 knows of a config.json's model_type when it looks for the class of a
/// tokenizer (transformers/models/auto/tokenization_auto.py).

/// The class of a model type, without "Fast", or "" for a type that has none
/// (TOKENIZER_MAPPING_NAMES, as it is without the package mistral-common).
std::string RegisteredClass(std::string_view model_type);

/// Whether that class is used whatever tokenizer_config.json names
/// (MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS).
bool OverridesNamedClass(std::string_view model_type);

/// Whether transformers has a class of this name, which comes without "Fast"
/// (tokenizer_class_from_name).
bool IsKnownClass(std::string_view tokenizer_class);

}  // namespace evald::tok
