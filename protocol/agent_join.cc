#include "protocol/agent_join.h"

#include "base/jsonl.h"
#include "evald/error.h"
#include "protocol/agent_messages.h"

namespace evald::protocol {

std::string EncodeJoin(const AgentJoin& join) {
  return ToLine({{"server", join.server},
                 {"token", join.token},
                 {"authority", join.authority},
                 {"name", join.name},
                 {"linger_s", join.linger_s}});
}

AgentJoin DecodeJoin(const std::string& text) {
  const std::string where = std::string("the variable ") + kJoinVariable;
  try {
    const Json json = ParseJson(text, where, 100);
    AgentJoin join;
    join.server = Field<std::string>(json, "server", where);
    join.token = Field<std::string>(json, "token", where);
    join.authority = Field<std::string>(json, "authority", where);
    join.name = Field<std::string>(json, "name", where);
    join.linger_s = Field<double>(json, "linger_s", where);
    if (!IsHostName(join.name))
      throw Error(ErrorKind::kInput, where + ": key 'name': expected the name of a host");
    if (!(join.linger_s >= 0))
      throw Error(ErrorKind::kInput, where + ": key 'linger_s': expected a number of at least 0");
    return join;
  } catch (const Error& e) {
    throw Error(
        ErrorKind::kUsage, e.what(),
        "the service or run that launches this agent sets the variable; by hand, use --server");
  }
}

}  // namespace evald::protocol
