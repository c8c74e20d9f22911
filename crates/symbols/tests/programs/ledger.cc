#include "ledger.h"

namespace books {
Ledger::Ledger() : total(0), entries() {}
} // namespace books
