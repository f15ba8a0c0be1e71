#pragma once

#include <string>
#include <string_view>

namespace evald {

/// Names come from task files, configurations, submissions and other processes. They are shown,
/// compared and kept as they are. None is ever a path: files and folders get their names from
/// FolderNameOf.

/// What is wrong with the name of a task, group, tag, run, agent or process, "" when nothing is. A
/// name has 1 to 200 bytes: ASCII letters, digits, `_ - . + : = @ , ( )` and spaces; it begins with
/// a letter, a digit or `_` and does not end with a space. Every name in lm_eval/tasks (0.4.13) is
/// one: these need letters, digits, `_ - . ( )` and spaces, and the harness joins the names of
/// inline groups with "::".
std::string WrongWithName(std::string_view name);

/// What is wrong with a text that only labels something for people (a model's or a user's name), ""
/// when nothing is: 1 to 255 bytes of UTF-8 without control characters, line breaks and marks that
/// change the direction of writing.
std::string WrongWithLabel(std::string_view label);

/// The name of the file or folder for `name`, which may be any bytes: one part of a path, of at
/// most 200 bytes, never
/// "", "." or "..". Letters, digits and `_ - .` stay, so an ordinary name stays as it is; any other
/// byte, and a dot at the beginning, becomes "%" and two hexadecimal digits. A longer one is cut,
/// and a hash of the name follows. Two names never share a folder, as long as the file system tells
/// upper-case letters from lower-case ones.
std::string FolderNameOf(std::string_view name);

}  // namespace evald
