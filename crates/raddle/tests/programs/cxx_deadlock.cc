// About: std::mutex in opposite orders through lock_guard, inside of member functions.
// Covers: Acquire, Release
// Outcome: exit 0 | deadlock
// Must: deadlock
#include <mutex>
#include <thread>

class Account {
    mutable std::mutex lock;
    int balance = 100;

public:
    int get() const
    {
        std::lock_guard guard(lock);
        return balance;
    }

    void level(Account &other)
    {
        std::lock_guard guard(lock);
        int mean = (balance + other.get()) / 2;
        balance = mean;
    }
};

int main()
{
    Account a, b;
    std::thread first([&] { a.level(b); }), second([&] { b.level(a); });
    first.join();
    second.join();
    return a.get() == 100 ? 0 : 1;
}
