// What is wrong: a thread pool is stopped by an atomic flag and `notify_all`, without taking
// the lock. A worker that has just found the flag unset, but does not wait yet, misses the
// notification and waits for ever.
// Hunt: fails
// Kind: atomicity, order, deadlock, failure
// Guilty: 4 lines
// Shows: lost-wakeup, deadlock

#include <atomic>
#include <cassert>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

class Pool {
public:
    explicit Pool(int n_workers)
    {
        for (int i = 0; i < n_workers; i++)
            workers_.emplace_back([this] { work(); });
    }

    ~Pool()
    {
        stop_ = true; /* guilty */
        changed_.notify_all(); /* guilty */
        for (auto &worker : workers_)
            worker.join();
    }

    void submit(std::function<void()> job)
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            jobs_.push_back(std::move(job));
        }
        changed_.notify_one();
    }

private:
    void work()
    {
        std::unique_lock<std::mutex> guard(lock_);
        for (;;) {
            while (jobs_.empty()) {
                if (stop_) /* guilty */
                    return;
                changed_.wait(guard); /* guilty */
            }
            auto job = std::move(jobs_.front());
            jobs_.pop_front();
            guard.unlock();
            job();
            guard.lock();
        }
    }

    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    std::atomic<bool> stop_{false};
    std::vector<std::thread> workers_;
};

int main()
{
    std::atomic<int> sum{0};
    {
        Pool pool(2);
        for (int i = 1; i <= 4; i++)
            pool.submit([&sum, i] { sum += i; });
    }
    assert(sum == 10);
    return 0;
}
