// About: an exception that leaves a thread: std::terminate, SIGABRT.
// Covers: Signal
// Outcome: signal SIGABRT
#include <stdexcept>
#include <thread>

int main()
{
    std::thread([] { throw std::runtime_error("nobody catches this"); }).join();
}
