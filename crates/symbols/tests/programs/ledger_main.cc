#include "ledger.h"

books::Ledger ledger;

int main() {
    ledger.entries[2] = 1;
    return 0;
}
