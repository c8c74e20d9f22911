// About: thread_local objects with destructors that lock and allocate; order; those of the main thread and
// of statics run at exit.
// Covers: _Exit, Acquire, Release
// Outcome: exit 0
#include <cassert>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

static std::mutex lock;
static std::vector<std::string> *journal = new std::vector<std::string>;

struct Entry {
    std::string name;
    explicit Entry(std::string text) : name(std::move(text)) {}
    ~Entry()
    {
        std::lock_guard guard(lock);
        journal->push_back(name + " of " + std::to_string(name.size()));
    }
};

struct AtExit {
    ~AtExit()
    {
        std::lock_guard guard(lock);
        if (journal->size() != 7 || journal->back() != "main of 4")
            _Exit(1);
    }
};

static AtExit at_exit;
static thread_local std::unique_ptr<Entry> outer;
static thread_local int counter = 5;

static void work(int n)
{
    static thread_local Entry inner("inner");
    outer = std::make_unique<Entry>("outer" + std::to_string(n));
    counter += n;
    assert(counter == 5 + n);
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back(work, i);
    for (auto &thread : threads)
        thread.join();
    {
        std::lock_guard guard(lock);
        assert(journal->size() == 6);
    }
    assert(counter == 5);
    outer = std::make_unique<Entry>("main");
}
