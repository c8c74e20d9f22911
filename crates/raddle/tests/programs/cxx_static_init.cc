// About: function-local statics that threads race to initialize; a constructor that throws first;
// std::call_once whose function throws first.
// Covers: _ZdlPvm, _Znwm, __cxa_guard_abort, __cxa_guard_acquire, __cxa_guard_release,
// Covers: __tsan_vptr_update, __tsan_write_range, Yield
// Outcome: exit 0
#include <atomic>
#include <cassert>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

static std::atomic<int> n_tries, n_made, n_thrown, n_calls;

struct Config {
    int value;
    Config()
    {
        if (n_tries++ < 2)
            throw std::runtime_error("not yet");
        std::this_thread::yield();
        value = 42;
        n_made++;
    }
};

static Config &config()
{
    static Config instance;
    return instance;
}

static const std::vector<int> &squares()
{
    static const std::vector<int> table = [] {
        std::vector<int> numbers;
        for (int i = 0; i < 20; i++)
            numbers.push_back(i * i);
        return numbers;
    }();
    return table;
}

static std::once_flag flag;

static void work()
{
    for (;;)
        try {
            assert(config().value == 42);
            break;
        } catch (const std::runtime_error &) {
            n_thrown++;
        }
    assert(squares()[19] == 361);
    try {
        std::call_once(flag, [] {
            if (n_calls++ == 0)
                throw 5;
        });
    } catch (int number) {
        assert(number == 5);
    }
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(work);
    for (auto &thread : threads)
        thread.join();
    assert(n_made == 1 && n_thrown == 2 && n_tries == 3 && n_calls == 2);
}
