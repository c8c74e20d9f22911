// Nothing is wrong: a cache refreshes itself every second, or sooner if somebody asks for it, by a
// wait with a predicate and a time limit; it is stopped by its destructor.
// Hunt: clean

#include <cassert>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

using namespace std::chrono_literals;

class Cache {
public:
    Cache() : refresher_([this] { refresh_forever(); }) {}

    ~Cache()
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            stopped_ = true;
        }
        changed_.notify_all();
        refresher_.join();
    }

    int get(const std::string &key)
    {
        std::lock_guard<std::mutex> guard(lock_);
        return values_[key];
    }

    void refresh_now()
    {
        std::unique_lock<std::mutex> guard(lock_);
        const int wanted = ++requested_;
        changed_.notify_all();
        changed_.wait(guard, [&] { return served_ >= wanted; });
    }

private:
    void refresh_forever()
    {
        std::unique_lock<std::mutex> guard(lock_);
        while (!stopped_) {
            served_ = requested_;
            version_++;
            values_["version"] = version_;
            changed_.notify_all();
            changed_.wait_for(guard, 1s, [&] { return stopped_ || requested_ > served_; });
        }
    }

    std::mutex lock_;
    std::condition_variable changed_;
    std::map<std::string, int> values_;
    int version_ = 0;
    int requested_ = 0;
    int served_ = 0;
    bool stopped_ = false;
    std::thread refresher_;
};

int main()
{
    Cache cache;
    std::thread impatient([&] {
        cache.refresh_now();
        assert(cache.get("version") >= 1);
    });
    std::thread patient([&] {
        while (cache.get("version") < 3)
            std::this_thread::sleep_for(400ms);
    });
    impatient.join();
    patient.join();
    assert(cache.get("version") >= 3);
}
