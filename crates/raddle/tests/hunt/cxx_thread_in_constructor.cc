// What is wrong: the base class starts its thread in its constructor, before the derived class
// is constructed. A thread that is quick calls `step` while it is still pure virtual, or finds
// the derived members not yet set.
// Hunt: fails
// Kind: order, race
// Guilty: 3 lines
// Shows: signal, assert

#include <cassert>
#include <mutex>
#include <thread>

static std::mutex log_lock;
static int n_log_lines;

static void log_line()
{
    std::lock_guard<std::mutex> guard(log_lock);
    n_log_lines++;
}

class Service {
public:
    Service() : thread_([this] { run(); }) {}
    virtual ~Service() = default;
    void join() { thread_.join(); }

protected:
    virtual void step() = 0;

private:
    void run()
    {
        for (int i = 0; i < 3; i++) {
            log_line();
            step(); /* guilty */
        }
    }

    std::thread thread_;
};

class Ticker : public Service {
public:
    explicit Ticker(int by) : by_(by) {} /* guilty */
    int ticks() const { return ticks_; }

protected:
    void step() override
    {
        assert(by_ != 0); /* guilty */
        ticks_ += by_;
    }

private:
    int by_ = 0;
    int ticks_ = 0;
};

int main()
{
    auto *ticker = new Ticker(2);
    log_line();
    ticker->join();
    assert(ticker->ticks() == 6);
    assert(n_log_lines == 4);
    delete ticker;
    return 0;
}
