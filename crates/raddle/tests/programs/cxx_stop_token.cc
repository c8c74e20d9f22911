// About: std::jthread, stop_token, stop_callback, condition_variable_any with a stop token.
// Covers: AtomicSwap, Acquire, Release, CondWait, CondWake, CondBroadcast, FutexWake, Sleep,
// Covers: Yield, Clock
// Outcome: exit 0
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

using namespace std::chrono_literals;

static std::mutex lock;
static std::condition_variable_any never;
static std::atomic<int> n_callbacks, n_stopped, n_steps;

static void wait_for_stop(std::stop_token token)
{
    std::unique_lock guard(lock);
    assert(!never.wait(guard, token, [] { return false; }));
    assert(token.stop_requested());
    n_stopped++;
}

static void work_until_stop(std::stop_token token)
{
    std::stop_callback callback(token, [] { n_callbacks++; });
    while (!token.stop_requested()) {
        n_steps++;
        std::this_thread::sleep_for(1ms);
    }
    n_stopped++;
}

int main()
{
    {
        std::jthread waiter(wait_for_stop), worker(work_until_stop);
        while (n_steps < 3)
            std::this_thread::yield();
        std::jthread canceller([source = worker.get_stop_source()]() mutable {
            std::this_thread::sleep_for(50ms);
            source.request_stop();
        });
        worker.join();
        // `waiter` is stopped and joined by its destructor.
    }
    assert(n_stopped == 2 && n_callbacks == 1);
    std::stop_source source;
    assert(source.request_stop() && !source.request_stop());
    bool at_once = false;
    std::stop_callback late(source.get_token(), [&at_once] { at_once = true; });
    assert(at_once);
}
