// What is wrong: the bounds of a text selection are two atomics, each well-behaved by itself.
// Moving the selection stores one and then the other: in between, a reader sees the new begin
// with the old end.
// Hunt: fails
// Kind: multi-variable
// Guilty: 4 lines
// Shows: assert

#include <atomic>
#include <cassert>
#include <mutex>
#include <string>
#include <thread>

class Selection {
public:
    void move(int begin, int end)
    {
        begin_.store(begin); /* guilty */
        end_.store(end); /* guilty */
    }

    std::string of(const std::string &text) const
    {
        int begin = begin_.load(); /* guilty */
        int end = end_.load(); /* guilty */
        assert(begin <= end);
        return text.substr(begin, end - begin);
    }

private:
    std::atomic<int> begin_{0};
    std::atomic<int> end_{3};
};

static const std::string text = "the raddle keeps the warp";
static Selection selection;
static std::mutex clipboard_lock;
static std::string clipboard;

static void copy()
{
    for (int i = 0; i < 2; i++) {
        std::string part = selection.of(text);
        std::lock_guard<std::mutex> guard(clipboard_lock);
        clipboard = part;
    }
}

static void select_words()
{
    selection.move(4, 10);
    selection.move(11, 16);
}

int main()
{
    std::thread copier(copy), user(select_words);
    copier.join();
    user.join();
    assert(clipboard.size() <= 16);
    return 0;
}
