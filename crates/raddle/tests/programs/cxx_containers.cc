// About: std::string, vector, map, list, unordered_map, ostringstream under a lock; growth and moves.
// Covers: Acquire, Release
// Outcome: exit 0
#include <algorithm>
#include <cassert>
#include <list>
#include <map>
#include <mutex>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

class Inventory {
    std::mutex lock;
    std::map<std::string, std::vector<int>> by_name;
    std::unordered_map<int, std::string> by_number;
    std::list<std::string> log;
    std::string text;

public:
    void add(int number)
    {
        std::ostringstream name;
        name << "item " << number % 5 << ", which has a name too long for a small string";
        std::lock_guard guard(lock);
        by_name[name.str()].push_back(number);
        by_number.emplace(number, name.str());
        log.push_front(std::move(name).str());
        text += std::to_string(number) + ',';
        if (log.size() > 8)
            log.pop_back();
    }

    void check(int n)
    {
        std::lock_guard guard(lock);
        long sum = 0;
        for (auto &[name, numbers] : by_name)
            sum = std::accumulate(numbers.begin(), numbers.end(), sum);
        assert(sum == long(n) * (n - 1) / 2);
        assert(by_name.size() == 5 && by_number.size() == size_t(n) && log.size() == 8);
        assert(std::count(text.begin(), text.end(), ',') == n);
    }
};

int main()
{
    Inventory inventory;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&inventory, i] {
            for (int n = 0; n < 20; n++)
                inventory.add(20 * i + n);
        });
    for (auto &thread : threads)
        thread.join();
    inventory.check(60);
}
