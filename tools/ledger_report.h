// The ledger of device memory, as text and as JSON.
#ifndef HOLDFAST_TOOLS_LEDGER_REPORT_H_
#define HOLDFAST_TOOLS_LEDGER_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "allocator/ledger.h"

namespace holdfast {

// One row an owner, with its share of the process; a second column for `asleep`, if given, whose
// rows are matched by name.
std::string LedgerText(const LedgerReport& awake, const LedgerReport* asleep);
nlohmann::json LedgerJson(const LedgerReport& ledger);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_LEDGER_REPORT_H_
