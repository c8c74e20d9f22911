// What is wrong: a registry is filled on first use, guarded by a flag that is set before the
// filling and not after it. A second thread finds the flag set, and looks up a name that is
// not there yet.
// Hunt: fails
// Kind: order, multi-variable, atomicity
// Guilty: 4 lines
// Shows: exit

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

class Registry {
public:
    int find(const std::string &name)
    {
        fill_once();
        std::lock_guard<std::mutex> guard(lock_);
        auto found = codes_.find(name); /* guilty */
        return found == codes_.end() ? -1 : found->second;
    }

private:
    void fill_once()
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            if (filled_) /* guilty */
                return;
            filled_ = true; /* guilty */
        }
        add("get", 1);
        add("put", 2);
        add("delete", 3);
    }

    void add(const std::string &name, int code)
    {
        std::lock_guard<std::mutex> guard(lock_);
        codes_.emplace(name, code); /* guilty */
    }

    std::mutex lock_;
    bool filled_ = false;
    std::unordered_map<std::string, int> codes_;
};

static Registry registry;

static void handle(const char *method)
{
    if (registry.find(method) < 0) {
        std::fprintf(stderr, "405 %s not allowed\n", method);
        std::_Exit(5);
    }
}

int main()
{
    std::thread first(handle, "put"), second(handle, "delete");
    first.join();
    second.join();
    return 0;
}
