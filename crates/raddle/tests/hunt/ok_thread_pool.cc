// Nothing is wrong: a thread pool that stops under its lock, runs every job that was submitted,
// and joins its workers before anything goes away.
// Hunt: clean

#include <cassert>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
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
        {
            std::lock_guard<std::mutex> guard(lock_);
            stop_ = true;
        }
        changed_.notify_all();
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
        for (;;) {
            std::function<void()> job;
            {
                std::unique_lock<std::mutex> guard(lock_);
                changed_.wait(guard, [this] { return stop_ || !jobs_.empty(); });
                if (jobs_.empty())
                    return;
                job = std::move(jobs_.front());
                jobs_.pop_front();
            }
            job();
        }
    }

    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    bool stop_ = false;
    std::vector<std::thread> workers_;
};

int main()
{
    auto results = std::make_shared<std::vector<int>>(5, 0);
    {
        Pool pool(2);
        for (int i = 0; i < 5; i++)
            pool.submit([results, i] { (*results)[i] = i * i; });
    }
    for (int i = 0; i < 5; i++)
        assert((*results)[i] == i * i);
    assert(results.use_count() == 1);
    return 0;
}
