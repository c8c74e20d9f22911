// Nothing is wrong: C++20's waits on atomics, as a gate, as a counter that goes down, and as a
// mutex of three states; a latch and a semaphore with a time limit beside them.
// Hunt: clean

#include <atomic>
#include <cassert>
#include <chrono>
#include <latch>
#include <semaphore>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

class Mutex {
public:
    void lock()
    {
        int state = 0;
        if (state_.compare_exchange_strong(state, 1))
            return;
        while (state_.exchange(2) != 0)
            state_.wait(2);
    }

    void unlock()
    {
        if (state_.exchange(0) == 2)
            state_.notify_one();
    }

private:
    std::atomic<int> state_{0}; // free, taken, taken and waited for
};

int main()
{
    constexpr int workers = 3, rounds = 3;
    std::atomic<bool> gate{false};
    std::atomic<int> n_left{workers};
    std::latch started{workers};
    std::counting_semaphore<workers> seats{2};
    Mutex mutex;
    int total = 0;
    std::vector<std::thread> threads;

    for (int id = 1; id <= workers; id++)
        threads.emplace_back([&, id] {
            started.count_down();
            gate.wait(false);
            while (!seats.try_acquire_for(10s))
                ;
            for (int i = 0; i < rounds; i++) {
                mutex.lock();
                total += id;
                mutex.unlock();
            }
            seats.release();
            if (--n_left == 0)
                n_left.notify_all();
        });
    started.wait();
    gate = true;
    gate.notify_all();
    for (int n; (n = n_left.load()) != 0;)
        n_left.wait(n);
    assert(total == rounds * (1 + 2 + 3));
    for (std::thread &thread : threads)
        thread.join();
}
