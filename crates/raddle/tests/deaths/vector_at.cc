// Says: uncaught std::out_of_range: vector::_M_range_check
// The exception is thrown by a template of libstdc++, with stale addresses of others on the stack.
#include <thread>
#include <vector>

static std::vector<int> numbers;

static void fill(int n)
{
    for (int i = 0; i < n; i++)
        numbers.push_back(i);
}

static int look_up(unsigned at)
{
    return numbers.at(at); // died
}

int main()
{
    fill(5);
    int found = 0;
    std::thread reader([&found] {
        std::vector<std::vector<int>> copies(3, numbers);
        found = look_up(7 + unsigned(copies.size()));
    });
    std::thread other([] { std::vector<int>(100).shrink_to_fit(); });
    reader.join();
    other.join();
    return found;
}
