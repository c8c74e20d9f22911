// Nothing is wrong: jthreads that end by stop tokens, one that sleeps on a condition variable, one
// that polls the token, and a callback that runs when they are stopped.
// Hunt: clean

#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <thread>

using namespace std::chrono_literals;

class Mailbox {
public:
    void put(int letter)
    {
        {
            std::lock_guard guard(lock_);
            letters_.push_back(letter);
        }
        filled_.notify_one();
    }

    // The next letter, or none once a stop was requested and no letter is left.
    bool take(std::stop_token token, int &letter)
    {
        std::unique_lock guard(lock_);
        if (!filled_.wait(guard, token, [&] { return !letters_.empty(); }))
            return false;
        letter = letters_.front();
        letters_.pop_front();
        return true;
    }

private:
    std::mutex lock_;
    std::condition_variable_any filled_;
    std::deque<int> letters_;
};

int main()
{
    Mailbox mailbox;
    std::atomic<int> sum{0};
    std::atomic<int> n_polls{0};
    std::atomic<bool> told{false};
    {
        std::jthread reader([&](std::stop_token token) {
            for (int letter; mailbox.take(token, letter);)
                sum += letter;
        });
        std::jthread poller([&](std::stop_token token) {
            while (!token.stop_requested()) {
                n_polls++;
                std::this_thread::sleep_for(10ms);
            }
        });
        std::stop_callback callback(poller.get_stop_token(), [&] { told = true; });
        for (int i = 1; i <= 4; i++)
            mailbox.put(i);
        while (sum != 1 + 2 + 3 + 4)
            std::this_thread::sleep_for(5ms);
        poller.request_stop();
        assert(told);
    }
    assert(sum == 1 + 2 + 3 + 4);
}
