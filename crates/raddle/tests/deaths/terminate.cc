// Says: terminate called without an active exception
#include <exception>
#include <thread>

static void give_up()
{
    std::terminate(); // died
}

int main()
{
    std::thread(give_up).join();
}
