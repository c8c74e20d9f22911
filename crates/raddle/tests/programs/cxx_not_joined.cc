// About: a std::thread that is destroyed before it is joined, if an exception comes in between.
// Covers: Signal
// Outcome: exit 0 | signal SIGABRT
// Must: signal SIGABRT
#include <atomic>
#include <stdexcept>
#include <thread>

static std::atomic<bool> has_failed;

int main()
{
    try {
        std::thread worker([] { has_failed = true; });
        if (has_failed)
            throw std::runtime_error("failed while the worker runs");
        worker.join();
    } catch (const std::exception &) {
        return 2;
    }
    return 0;
}
