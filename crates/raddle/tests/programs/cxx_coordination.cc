// About: std::counting_semaphore, binary_semaphore, latch, barrier with completion function.
// Covers: _ZdaPvSt11align_val_t, _ZnamSt11align_val_t, AtomicSwap, AtomicMiss, FutexWait,
// Covers: FutexWoken, FutexWake, Yield, Clock
// Outcome: exit 0
#include <atomic>
#include <barrier>
#include <cassert>
#include <chrono>
#include <latch>
#include <semaphore>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

enum { THREADS = 3, ROUNDS = 4 };

static std::counting_semaphore<2> slots(2);
static std::binary_semaphore signal_main(0);
static std::latch ready(THREADS);
static std::atomic<int> n_inside;
static int cells[THREADS], sums[ROUNDS];

int main()
{
    int round = 0;
    std::barrier rounds(THREADS, [&round]() noexcept {
        for (int cell : cells)
            sums[round] += cell;
        round++;
    });
    auto work = [&rounds](int me) {
        ready.arrive_and_wait();
        for (int i = 0; i < ROUNDS; i++) {
            slots.acquire();
            assert(++n_inside <= 2);
            n_inside--;
            slots.release();
            cells[me] = me + 10 * i;
            rounds.arrive_and_wait();
        }
        if (me == 0)
            signal_main.release();
    };
    std::vector<std::jthread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back(work, i);
    ready.wait();
    assert(ready.try_wait());
    signal_main.acquire();
    threads.clear();
    for (int i = 0; i < ROUNDS; i++)
        assert(sums[i] == 3 + 30 * i);
    assert(slots.try_acquire() && slots.try_acquire() && !slots.try_acquire());
    assert(!slots.try_acquire_for(200ms));
}
