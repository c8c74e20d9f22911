// About: locks and condition variables made anew where others were, on the stack, in place, on the heap.
// Covers: Acquire, Release, CondWait, CondWake, CondBroadcast
// Outcome: exit 0
// Must: exit 0
#include <cassert>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>
#include <thread>

struct Gate {
    std::mutex lock;
    std::condition_variable opened;
    bool open = false;

    void wait()
    {
        std::unique_lock<std::mutex> held(lock);
        opened.wait(held, [this] { return open; });
    }
    void set()
    {
        std::lock_guard<std::mutex> held(lock);
        open = true;
        opened.notify_all();
    }
};

static void pass(Gate &gate)
{
    std::thread thread([&gate] { gate.set(); });
    gate.wait();
    thread.join();
}

static void on_stack()
{
    Gate gate;
    pass(gate);
}

int main()
{
    for (int i = 0; i < 3; i++)
        on_stack();
    alignas(Gate) static unsigned char room[sizeof(Gate)];
    for (int i = 0; i < 3; i++) {
        Gate *gate = new (room) Gate;
        pass(*gate);
        gate->~Gate();
    }
    std::optional<Gate> perhaps;
    for (int i = 0; i < 3; i++)
        pass(perhaps.emplace());
    for (int i = 0; i < 3; i++)
        pass(*std::make_shared<Gate>());
    for (int i = 0; i < 3; i++) {
        auto lock = std::make_unique<std::shared_mutex>();
        std::shared_lock<std::shared_mutex> held(*lock);
        assert(!lock->try_lock());
    }
    return 0;
}
