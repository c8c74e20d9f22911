/*
 * Component: publish/subscribe hub. Publishers deliver events to all current
 * subscribers; each subscriber keeps a mailbox with its own mutex and leaves
 * the hub when it has been closed.
 *
 * Bug (deadlock, callback under lock, as in many observer implementations):
 * Hub::publish() holds the hub mutex while it calls Subscriber::on_event(),
 * which locks the subscriber; Subscriber::close() holds the subscriber's mutex
 * while it calls Hub::unsubscribe(), which locks the hub. If a publisher has the
 * hub mutex and a closing subscriber has its own, both wait for ever.
 */
#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

class Subscriber;

class Hub {
public:
    void subscribe(Subscriber *s) {
        std::lock_guard<std::mutex> g(mu_);
        subs_.push_back(s);
    }
    void unsubscribe(Subscriber *s) {
        mu_.lock(); /* guilty */
        subs_.erase(std::remove(subs_.begin(), subs_.end(), s), subs_.end());
        mu_.unlock();
    }
    void publish(int event);
    std::size_t size() {
        std::lock_guard<std::mutex> g(mu_);
        return subs_.size();
    }

private:
    std::mutex mu_;
    std::vector<Subscriber *> subs_;
    long published_ = 0;
};

class Subscriber {
public:
    explicit Subscriber(Hub &hub) : hub_(hub) { hub_.subscribe(this); }

    void on_event(int event) {
        mu_.lock(); /* guilty */
        if (open_)
            mailbox_.push_back(event);
        mu_.unlock();
    }

    int take() {
        std::lock_guard<std::mutex> g(mu_);
        if (mailbox_.empty())
            return 0;
        int e = mailbox_.back();
        mailbox_.pop_back();
        return e;
    }

    void close() {
        mu_.lock(); /* guilty */
        if (open_) {
            open_ = false;
            mailbox_.clear();
            hub_.unsubscribe(this);
        }
        mu_.unlock();
    }

private:
    Hub &hub_;
    std::mutex mu_;
    bool open_ = true;
    std::vector<int> mailbox_;
};

void Hub::publish(int event) {
    mu_.lock(); /* guilty */
    published_++;
    for (Subscriber *s : subs_)
        s->on_event(event);
    mu_.unlock();
}

static std::atomic<long> consumed{0};
static std::atomic<int> polls{0};

static void publisher_main(Hub &hub, int base) {
    for (int i = 1; i <= 4; i++)
        hub.publish(base + i);
}

static void subscriber_main(Subscriber &s) {
    for (int i = 0; i < 4; i++) {
        int e = s.take();
        if (e != 0)
            consumed++;
        polls++;
    }
    s.close();
}

static void monitor_main(Hub &hub) {
    std::size_t last = 2;
    for (int i = 0; i < 3; i++) {
        std::size_t n = hub.size();
        assert(n <= last);
        last = n;
    }
}

int main() {
    Hub hub;
    std::vector<std::unique_ptr<Subscriber>> subs;
    for (int i = 0; i < 2; i++)
        subs.push_back(std::make_unique<Subscriber>(hub));
    std::thread s1(subscriber_main, std::ref(*subs[0]));
    std::thread p(publisher_main, std::ref(hub), 100);
    std::thread m(monitor_main, std::ref(hub));
    std::thread s2(subscriber_main, std::ref(*subs[1]));
    p.join();
    m.join();
    s1.join();
    s2.join();
    assert(hub.size() == 0 && polls == 8);
    std::printf("%ld of 8 events consumed\n", consumed.load());
    return 0;
}
