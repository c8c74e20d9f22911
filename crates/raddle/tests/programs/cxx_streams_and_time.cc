// About: iostream from threads, osyncstream, chrono clocks, sleep_for, sleep_until, random_device, hardware_concurrency.
// Covers: _ZNSt13random_device9_M_getvalEv, Acquire, Release, Sleep, Clock
// Outcome: exit 0
#include <cassert>
#include <chrono>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <syncstream>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static void talk(int me)
{
    for (int i = 0; i < 5; i++) {
        std::osyncstream(std::cout) << "thread " << me << " says " << i << '\n';
        std::cout << "bare words of " << me << std::endl;
        std::clog << "";
    }
    std::cerr << std::flush;
}

static void rest()
{
    auto steady = std::chrono::steady_clock::now();
    auto system = std::chrono::system_clock::now();
    std::this_thread::sleep_for(300ms);
    std::this_thread::sleep_until(steady + 600ms);
    std::this_thread::sleep_until(system + 900ms);
    assert(std::chrono::steady_clock::now() - steady >= 890ms);
    assert(std::chrono::system_clock::now() - system >= 900ms);
    assert(std::chrono::high_resolution_clock::now().time_since_epoch() > 0ns);
}

int main()
{
    assert(std::thread::hardware_concurrency() >= 1);
    std::random_device device;
    std::mt19937 generator(device());
    std::set<unsigned> seen;
    for (int i = 0; i < 8; i++)
        seen.insert(device());
    assert(seen.size() >= 6);
    std::uniform_int_distribution<int> dice(1, 6);
    assert(dice(generator) >= 1);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back(talk, i);
    threads.emplace_back(rest);
    std::set<std::thread::id> ids;
    for (auto &thread : threads)
        ids.insert(thread.get_id());
    assert(ids.size() == threads.size());
    for (auto &thread : threads)
        thread.join();
}
