// Says: terminate called without an active exception
// The destructor of std::thread terminates, from the line that ends its scope.
#include <chrono>
#include <thread>

static void forget()
{
    std::thread sleeper([] { std::this_thread::sleep_for(std::chrono::seconds(5)); });
} // died

int main()
{
    forget();
}
