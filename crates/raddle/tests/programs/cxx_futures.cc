// About: std::promise, future, shared_future, async, packaged_task, wait_for, broken promises.
// Covers: FutexWait, FutexWoken, FutexWake, Clock
// Outcome: exit 0
#include <cassert>
#include <chrono>
#include <future>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static long sum(const std::vector<int> &numbers, size_t from, size_t to)
{
    if (to - from <= 16)
        return std::accumulate(numbers.begin() + from, numbers.begin() + to, 0L);
    size_t middle = (from + to) / 2;
    auto half = std::async(std::launch::async, sum, std::cref(numbers), from, middle);
    long rest = sum(numbers, middle, to);
    return half.get() + rest;
}

int main()
{
    std::vector<int> numbers(64);
    std::iota(numbers.begin(), numbers.end(), 1);
    assert(sum(numbers, 0, numbers.size()) == 64 * 65 / 2);

    std::promise<std::string> promise;
    auto answer = promise.get_future().share();
    assert(answer.wait_for(100ms) == std::future_status::timeout);
    std::thread readers[2];
    for (auto &reader : readers)
        reader = std::thread([answer] { assert(answer.get() == "a thread's answer"); });
    std::thread([&promise] { promise.set_value("a thread's answer"); }).join();
    for (auto &reader : readers)
        reader.join();

    std::packaged_task<int(int)> task([](int n) -> int {
        if (n < 0)
            throw std::out_of_range("negative");
        return n;
    });
    auto result = task.get_future();
    std::thread(std::move(task), -1).join();
    try {
        result.get();
        assert(!"no exception came");
    } catch (const std::out_of_range &error) {
        assert(std::string(error.what()) == "negative");
    }

    std::future<void> never;
    {
        std::promise<void> broken;
        never = broken.get_future();
    }
    try {
        never.get();
        assert(!"a broken promise was kept");
    } catch (const std::future_error &error) {
        assert(error.code() == std::future_errc::broken_promise);
    }
    auto lazy = std::async(std::launch::deferred, [] { return std::this_thread::get_id(); });
    assert(lazy.wait_for(0s) == std::future_status::deferred && lazy.get() == std::this_thread::get_id());
}
