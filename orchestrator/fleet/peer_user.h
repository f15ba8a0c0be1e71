#pragma once

namespace evald {

/// Whether the process that connected to the Unix `socket` belongs to this process's user
/// (SO_PEERCRED, unix(7)).
bool IsOwnUser(int socket);

}  // namespace evald
