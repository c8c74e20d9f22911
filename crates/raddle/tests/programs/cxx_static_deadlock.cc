// About: two function-local statics, each of which the other's first user needs, from two threads.
// Covers: AtomicLoad, OnceBegin, OnceEnd, OncePass, Free
// Outcome: exit 0 | deadlock
// Must: deadlock
#include <cassert>
#include <thread>

struct Part {
    int value;
    explicit Part(Part &(*other)(bool)) : value(other ? other(false).value + 1 : 1) {}
};

static Part &right(bool needs_other);

static Part &left(bool needs_other)
{
    static Part instance(needs_other ? right : nullptr);
    return instance;
}

static Part &right(bool needs_other)
{
    static Part instance(needs_other ? left : nullptr);
    return instance;
}

int main()
{
    std::thread a([] { left(true); }), b([] { right(true); });
    a.join();
    b.join();
    assert(left(false).value + right(false).value == 3);
}
