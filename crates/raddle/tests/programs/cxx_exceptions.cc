// About: exceptions inside of threads, across threads by exception_ptr, through locks and destructors.
// Covers: Acquire, Release
// Outcome: exit 0
#include <cassert>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::mutex lock;
static int n_alive, n_caught;

struct Guarded {
    Guarded()
    {
        std::lock_guard guard(lock);
        n_alive++;
    }
    ~Guarded()
    {
        std::lock_guard guard(lock);
        n_alive--;
    }
};

static void descend(int depth)
{
    Guarded guarded;
    if (depth == 0) {
        std::lock_guard guard(lock); // Released on the way out.
        throw std::runtime_error("at the bottom");
    }
    descend(depth - 1);
}

static void work(std::exception_ptr &error, int n)
{
    for (int i = 0; i < 5; i++) {
        try {
            descend(n + i);
        } catch (const std::logic_error &) {
            assert(!"the wrong handler");
        } catch (const std::runtime_error &) {
            std::lock_guard guard(lock);
            n_caught++;
            error = std::current_exception();
        }
    }
}

int main()
{
    std::vector<std::exception_ptr> errors(3);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back(work, std::ref(errors[i]), i);
    for (auto &thread : threads)
        thread.join();
    assert(n_alive == 0 && n_caught == 15);
    for (auto &error : errors)
        try {
            std::rethrow_exception(error);
        } catch (const std::exception &caught) {
            assert(caught.what() == std::string("at the bottom"));
        }
}
