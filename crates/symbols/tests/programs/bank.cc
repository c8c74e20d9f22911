// Variables and functions of C++, for the lookups of tests/cpp.rs.
#include <atomic>
#include <mutex>
#include <new>

namespace bank {

struct Named {
    int id;
    const char *label;
};

class Shape {
public:
    virtual ~Shape() = default;
    int sides;
};

class Account : public Named, public Shape {
public:
    static int opened;
    static inline long closed = 0;
    void deposit(long amount);
    template <typename T> void add(T amount);

    std::mutex m;
    std::atomic<long> balance;
    long history[4];
};

int Account::opened = 0;
Account account;

namespace {
int hidden;
}

void Account::deposit(long amount) {
    static int deposits;
    deposits++;
    balance += amount; // line: balance
    history[1] = amount;
    opened++; // line: opened++
    closed++;
    hidden++;
}

template <typename T> void Account::add(T amount) {
    history[2] = amount;
}

template <typename T> struct Pool {
    T *first;
    T items[2];
};

Pool<Named> pool;

} // namespace bank

std::atomic<bool> done;
std::atomic<int *> pointer;

static long sum(long a, long b) {
    static std::atomic<int> sums;
    sums++;
    return a + b;
}

int main(int argc, char **) {
    bank::account.deposit(sum(argc, 2));
    bank::account.add<int>(argc);
    bank::pool.items[1].id = argc;
    int *number = new int(argc);
    pointer = number;
    done = true;
    return 0;
}
