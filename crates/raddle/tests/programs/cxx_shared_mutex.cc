// About: std::shared_mutex, shared_timed_mutex, shared_lock; readers share, writers do not.
// Covers: Acquire, Release, Clock
// Outcome: exit 0
#include <atomic>
#include <cassert>
#include <chrono>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::shared_mutex lock;
static std::map<std::string, int> table;
static std::atomic<int> n_readers, n_writers;

static void write_all(int n)
{
    for (int i = 0; i < 10; i++) {
        std::unique_lock guard(lock);
        assert(++n_writers == 1 && n_readers == 0);
        table["key " + std::to_string(n * 100 + i)] = i;
        n_writers--;
    }
}

static void read_all()
{
    for (int i = 0; i < 10; i++) {
        std::shared_lock guard(lock);
        n_readers++;
        assert(n_writers == 0);
        for (auto &[key, value] : table)
            assert(key.size() >= 5 && value < 10);
        n_readers--;
    }
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++) {
        threads.emplace_back(write_all, i);
        threads.emplace_back(read_all);
    }
    for (auto &thread : threads)
        thread.join();
    assert(table.size() == 20);

    std::shared_timed_mutex timed;
    timed.lock_shared();
    std::thread([&timed] {
        assert(timed.try_lock_shared());
        timed.unlock_shared();
        assert(!timed.try_lock() && !timed.try_lock_for(200ms));
    }).join();
    timed.unlock_shared();
    assert(timed.try_lock_until(std::chrono::system_clock::now() + 10s));
    timed.unlock();
}
