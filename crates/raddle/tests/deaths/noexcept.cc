// Says: uncaught std::runtime_error: too much
// The exception reaches a function that must not throw; nobody on the way needs cleaning up.
#include <stdexcept>
#include <thread>

static volatile int limit = 3;

static void check(int n)
{
    if (n > limit)
        throw std::runtime_error("too much"); // died
}

static void count() noexcept
{
    for (int n = 0;; n++)
        check(n);
}

int main()
{
    std::thread(count).join();
}
