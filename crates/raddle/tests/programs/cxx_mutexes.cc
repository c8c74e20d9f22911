// About: std::thread, mutex, recursive_mutex, timed_mutex, recursive_timed_mutex, lock_guard,
// unique_lock, scoped_lock, std::lock.
// Covers: Acquire, Release, Clock
// Outcome: exit 0
#include <cassert>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::mutex first, second;
static std::recursive_mutex recursive;
static std::timed_mutex timed;
static int left, right, depth_sum;

static int nested(int depth)
{
    std::lock_guard guard(recursive);
    return depth == 0 ? ++depth_sum : nested(depth - 1);
}

static void work(bool swapped)
{
    for (int i = 0; i < 10; i++) {
        {
            // Deadlock-free whatever the order.
            std::scoped_lock both(swapped ? second : first, swapped ? first : second);
            left++;
            right++;
        }
        std::unique_lock a(first, std::defer_lock), b(second, std::defer_lock);
        std::lock(b, a);
        assert(left == right);
        a.unlock();
        assert(!a.owns_lock() && b.owns_lock());
        nested(3);
    }
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(work, i % 2 == 1);
    for (auto &thread : threads)
        thread.join();
    assert(left == 40 && right == 40 && depth_sum == 40);

    timed.lock();
    std::thread([] {
        auto start = std::chrono::steady_clock::now();
        assert(!timed.try_lock());
        assert(!timed.try_lock_for(200ms));
        assert(!timed.try_lock_until(std::chrono::system_clock::now() + 200ms));
        assert(std::chrono::steady_clock::now() - start >= 390ms);
    }).join();
    timed.unlock();

    std::unique_lock lock(first);
    try {
        lock.lock();
        assert(!"locked twice");
    } catch (const std::system_error &error) {
        assert(error.code() == std::errc::resource_deadlock_would_occur);
    }
}
