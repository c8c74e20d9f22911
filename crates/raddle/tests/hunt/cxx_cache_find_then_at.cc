// What is wrong: a cache of rendered pages asks under the lock whether it holds a page, and
// fetches it under the lock in a second step. The page may have been dropped in between, and
// `at` throws what nobody catches.
// Hunt: fails
// Kind: atomicity, multi-variable
// Guilty: 3 lines
// Shows: signal

#include <cassert>
#include <map>
#include <mutex>
#include <string>
#include <thread>

class PageCache {
public:
    bool holds(int page)
    {
        std::lock_guard<std::mutex> guard(lock_);
        n_lookups_++;
        return pages_.count(page) != 0; /* guilty */
    }

    std::string get(int page)
    {
        std::lock_guard<std::mutex> guard(lock_);
        return pages_.at(page); /* guilty */
    }

    void put(int page, std::string text)
    {
        std::lock_guard<std::mutex> guard(lock_);
        pages_[page] = std::move(text);
    }

    void drop(int page)
    {
        std::lock_guard<std::mutex> guard(lock_);
        pages_.erase(page); /* guilty */
    }

    int lookups()
    {
        std::lock_guard<std::mutex> guard(lock_);
        return n_lookups_;
    }

private:
    std::mutex lock_;
    std::map<int, std::string> pages_;
    int n_lookups_ = 0;
};

static PageCache cache;

static std::string render(int page)
{
    if (cache.holds(page))
        return cache.get(page);
    std::string text = "page " + std::to_string(page);
    cache.put(page, text);
    return text;
}

int main()
{
    for (int page = 0; page < 3; page++)
        render(page);
    std::thread reader([] {
        for (int page = 0; page < 3; page++)
            assert(render(page) == "page " + std::to_string(page));
    });
    std::thread editor([] { cache.drop(1); });
    reader.join();
    editor.join();
    assert(cache.lookups() == 6);
    return 0;
}
