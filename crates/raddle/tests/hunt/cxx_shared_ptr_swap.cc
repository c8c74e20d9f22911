// What is wrong: a `shared_ptr` counts its owners atomically, but is itself an ordinary
// variable. One thread replaces the current settings while another copies the pointer: the
// copy may get hold of settings that are being freed.
// Hunt: fails
// Kind: race, atomicity, multi-variable
// Guilty: 2 lines
// Shows: use-after-free, double-free, signal, assert

#include <atomic>
#include <cassert>
#include <memory>
#include <mutex>
#include <thread>

static std::atomic<int> n_alive{0};

struct Settings {
    int width;
    int height;
    Settings(int w, int h) : width(w), height(h) { n_alive++; }
    ~Settings()
    {
        width = height = -1;
        n_alive--;
    }
};

static std::shared_ptr<Settings> current;
static std::mutex area_lock;
static int largest;

static void draw()
{
    for (int i = 0; i < 2; i++) {
        std::shared_ptr<Settings> settings = current; /* guilty */
        int area = settings->width * settings->height;
        assert(settings->height == 2 * settings->width);
        std::lock_guard<std::mutex> guard(area_lock);
        if (area > largest)
            largest = area;
    }
}

static void resize()
{
    for (int width = 2; width < 4; width++)
        current = std::make_shared<Settings>(width, 2 * width); /* guilty */
}

int main()
{
    current = std::make_shared<Settings>(1, 2);
    std::thread painter(draw), user(resize);
    painter.join();
    user.join();
    assert(n_alive == 1);
    current.reset();
    assert(n_alive == 0 && largest > 0);
    return 0;
}
