#pragma once

#include <string>
#include <string_view>

namespace evald {

/// Names come from task files, configurations, submissions and other processes. They are shown,
/// compared and stored unchanged. None is ever a path: files and folders get their names from
/// FolderNameOf.

/// The fault in the name of a task, group, tag, run, agent or process; "" if it has none. A name
/// has 1 to 200 bytes: ASCII letters, digits, `_ - . + : = @ , ( )` and spaces. It begins with a
/// letter, a digit or `_` and does not end with a space. Every name in lm_eval/tasks (0.4.13) is
/// valid: they need letters, digits, `_ - . ( )` and spaces, and the harness joins the names of
/// inline groups with "::".
std::string WrongWithName(std::string_view name);

/// The fault in a text that only labels something for people (a model's or a user's name); "" if it
/// has none. A label has 1 to 255 bytes of UTF-8 without control characters, line breaks and marks
/// that change the direction of writing.
std::string WrongWithLabel(std::string_view label);

/// The name of the file or folder for `name`, which may be any bytes: one part of a path, of at
/// most 200 bytes, never "", "." or "..". Letters, digits and `_ - .` stay, so an ordinary name is
/// unchanged. Any other byte, and a dot at the beginning, becomes "%" and two hexadecimal digits. A
/// longer name is cut and a hash of it follows. Two names never share a folder, if the file system
/// tells upper-case letters from lower-case ones.
std::string FolderNameOf(std::string_view name);

/// A folder name that people recognise, from a model's name: characters that are awkward in paths
/// become '_'. At most 80 bytes. Several names may share one, unlike FolderNameOf.
std::string Slug(std::string_view name);

}  // namespace evald
