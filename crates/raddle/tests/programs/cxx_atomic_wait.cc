// About: std::atomic wait, notify_one, notify_all; atomic_flag, atomic_ref, atomic<double>, atomic<shared_ptr>.
// Covers: AtomicSwap, AtomicMiss, FutexWake, Yield
// Outcome: exit 0
#include <atomic>
#include <cassert>
#include <memory>
#include <thread>
#include <vector>

constexpr int ROUNDS = 10;

static std::atomic<int> turn;
static std::atomic_flag gate;
static std::atomic<double> total;
static std::atomic<std::shared_ptr<int>> latest{ std::make_shared<int>(0) };
static int plain;

static void play(int me)
{
    gate.wait(false);
    for (int i = 0; i < ROUNDS; i++) {
        for (int seen = turn.load(); seen % 2 != me; seen = turn.load())
            turn.wait(seen);
        plain++;
        turn.fetch_add(1, std::memory_order_acq_rel);
        turn.notify_all();
        total.fetch_add(0.5);
    }
}

static void publish(int n)
{
    for (int i = 0; i < ROUNDS; i++) {
        latest.store(std::make_shared<int>(n + i));
        auto seen = latest.load();
        assert(seen && *seen >= 0);
        std::atomic_ref(plain).fetch_add(0);
    }
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++)
        threads.emplace_back(play, i);
    assert(!gate.test_and_set());
    gate.notify_all();
    for (auto &thread : threads)
        thread.join();
    assert(plain == 2 * ROUNDS && turn == 2 * ROUNDS && total == ROUNDS);

    std::thread a(publish, 100), b(publish, 200);
    a.join();
    b.join();
    assert(*latest.load() == 109 || *latest.load() == 209);
}
