// About: a virtual function that is called while its object is destroyed: vptr reads and updates.
// Covers: Yield
// Outcome: exit 0 | exit 1
// Must: exit 1
//
// The base class stops the thread, when the derived part is gone already. Exit status 1 says
// that the base's function was called.
#include <atomic>
#include <memory>
#include <thread>

static std::atomic<int> answer;

struct Service {
    std::atomic<bool> is_started{ false };
    std::thread thread;
    Service() : thread([this] {
        while (!is_started)
            std::this_thread::yield();
        answer = handle();
    }) {}
    virtual ~Service() { thread.join(); }
    virtual int handle() { return 1; }
};

struct Derived : Service {
    Derived() { is_started = true; }
    int handle() override { return 2; }
};

int main()
{
    auto service = std::make_unique<Derived>();
    service.reset();
    return answer == 2 ? 0 : 1;
}
