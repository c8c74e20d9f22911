// A class that clang describes only where its constructor is.
namespace books {
class Ledger {
public:
    Ledger();
    long total;
    int entries[4];
};
} // namespace books
