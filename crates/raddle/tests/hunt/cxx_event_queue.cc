// What is wrong: after Jigsaw 2.2.6 (figure 7 of the PECAN paper): `next_event` looks at the
// queue's size, then takes the first event, then removes it. The queue locks each call, but
// with two threads in `next_event` one may find nothing left, or both take the same event. The
// removal looks at the size before it erases: both are guilty.
// Hunt: fails
// Kind: atomicity, multi-variable
// Guilty: 4 lines
// Shows: signal, assert

#include <atomic>
#include <cassert>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

struct Event {
    int time;
    int data;
};

class EventQueue {
public:
    size_t size()
    {
        std::lock_guard<std::mutex> guard(lock_);
        return events_.size(); /* guilty */
    }

    Event element_at(size_t index)
    {
        std::lock_guard<std::mutex> guard(lock_);
        return events_.at(index); /* guilty */
    }

    void remove_at(size_t index)
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (index >= events_.size()) /* guilty */
            throw std::out_of_range("remove_at");
        events_.erase(events_.begin() + index); /* guilty */
    }

    void add(Event event)
    {
        std::lock_guard<std::mutex> guard(lock_);
        events_.push_back(event);
    }

private:
    std::mutex lock_;
    std::vector<Event> events_;
};

static EventQueue queue;
static std::atomic<int> handled{0};

static bool next_event(Event &event)
{
    if (queue.size() == 0)
        return false;
    event = queue.element_at(0);
    queue.remove_at(0);
    return true;
}

static void manage()
{
    Event event;
    while (next_event(event))
        handled += event.data;
}

int main()
{
    for (int i = 0; i < 5; i++)
        queue.add({i, 1 << i});
    std::thread first(manage), second(manage);
    first.join();
    second.join();
    assert(handled == 31);
    return 0;
}
