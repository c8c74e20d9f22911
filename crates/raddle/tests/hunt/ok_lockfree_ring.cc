// Nothing is wrong: bounded queues for many producers and consumers after Vyukov, each cell with a
// sequence number; who finds the queue full or empty spins.
// Hunt: clean

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

template <typename T, std::size_t N> class Ring {
    static_assert((N & (N - 1)) == 0);

public:
    Ring()
    {
        for (std::size_t i = 0; i < N; i++)
            cells_[i].sequence.store(i, std::memory_order_relaxed);
    }

    bool push(T value)
    {
        std::size_t at = tail_.load(std::memory_order_relaxed);
        for (;;) {
            Cell &cell = cells_[at & (N - 1)];
            const auto lag = static_cast<std::intptr_t>(
                cell.sequence.load(std::memory_order_acquire) - at);
            if (lag < 0)
                return false;
            if (lag > 0)
                at = tail_.load(std::memory_order_relaxed);
            else if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
                cell.value = value;
                cell.sequence.store(at + 1, std::memory_order_release);
                return true;
            }
        }
    }

    bool pop(T &value)
    {
        std::size_t at = head_.load(std::memory_order_relaxed);
        for (;;) {
            Cell &cell = cells_[at & (N - 1)];
            const auto lag = static_cast<std::intptr_t>(
                cell.sequence.load(std::memory_order_acquire) - (at + 1));
            if (lag < 0)
                return false;
            if (lag > 0)
                at = head_.load(std::memory_order_relaxed);
            else if (head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
                value = cell.value;
                cell.sequence.store(at + N, std::memory_order_release);
                return true;
            }
        }
    }

private:
    struct Cell {
        std::atomic<std::size_t> sequence;
        T value;
    };
    std::array<Cell, N> cells_;
    alignas(64) std::atomic<std::size_t> tail_{0};
    alignas(64) std::atomic<std::size_t> head_{0};
};

int main()
{
    constexpr int producers = 2, consumers = 2, items = 5;
    Ring<int, 2> ring;
    std::atomic<int> n_taken{0};
    std::atomic<int> sum{0};
    std::vector<std::thread> threads;

    for (int p = 0; p < producers; p++)
        threads.emplace_back([&, p] {
            for (int i = 1; i <= items; i++)
                while (!ring.push(10 * p + i))
                    ;
        });
    for (int c = 0; c < consumers; c++)
        threads.emplace_back([&] {
            while (n_taken.load() < producers * items) {
                int value;
                if (ring.pop(value)) {
                    sum += value;
                    n_taken++;
                }
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    assert(n_taken == producers * items);
    assert(sum == 2 * (1 + 2 + 3 + 4 + 5) + 10 * items);
}
