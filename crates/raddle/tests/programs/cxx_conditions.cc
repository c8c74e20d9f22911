// About: std::condition_variable, condition_variable_any, wait_for, wait_until, notify_all_at_thread_exit.
// Covers: Acquire, Release, CondWait, CondWake, CondSignal, CondBroadcast, Clock
// Outcome: exit 0
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

using namespace std::chrono_literals;

static std::mutex lock;
static std::condition_variable filled, ended;
static std::shared_mutex any_lock;
static std::condition_variable_any opened;
static std::deque<std::string> queue;
static bool is_open, has_ended;

static void consume(int n)
{
    for (int i = 0; i < n; i++) {
        std::unique_lock guard(lock);
        filled.wait(guard, [] { return !queue.empty(); });
        assert(queue.front().starts_with("item"));
        queue.pop_front();
    }
}

static void pass()
{
    std::shared_lock guard(any_lock);
    opened.wait(guard, [] { return is_open; });
}

int main()
{
    std::thread consumers[2] = { std::thread(consume, 10), std::thread(consume, 10) };
    std::thread passers[2] = { std::thread(pass), std::thread(pass) };
    for (int i = 0; i < 20; i++) {
        {
            std::lock_guard guard(lock);
            queue.push_back("item " + std::to_string(i));
        }
        filled.notify_one();
    }
    {
        std::unique_lock guard(any_lock);
        is_open = true;
    }
    opened.notify_all();
    for (auto &thread : consumers)
        thread.join();
    for (auto &thread : passers)
        thread.join();

    std::unique_lock guard(lock);
    auto start = std::chrono::steady_clock::now();
    assert(!filled.wait_for(guard, 200ms, [] { return !queue.empty(); }));
    assert(!filled.wait_until(guard, std::chrono::system_clock::now() + 200ms, [] { return false; }));
    assert(std::chrono::steady_clock::now() - start >= 390ms);

    std::thread last([] {
        std::unique_lock guard(lock);
        has_ended = true;
        std::notify_all_at_thread_exit(ended, std::move(guard));
    });
    ended.wait(guard, [] { return has_ended; });
    guard.unlock();
    last.join();
}
