/*
 * Component: request router with a reloadable list of backends. Router threads
 * map a key to a shard and ask the backend of that shard; a reload thread
 * installs new configurations with more or fewer backends.
 *
 * Bug (multi-variable atomicity violation, configuration reload): the number of
 * shards and the vector of backends must change together. reload() replaces the
 * vector under the mutex and updates the atomic shard count afterwards; route()
 * reads the count first and indexes the vector in a later critical section. A
 * router that uses the old, larger count on the new, smaller vector is out of
 * range (std::out_of_range, terminate).
 */
#include <atomic>
#include <cassert>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct Backend {
    std::string host;
    int port;
    int weight;
};

class Router {
public:
    explicit Router(std::vector<Backend> initial)
        : backends_(std::move(initial)), shards_(static_cast<unsigned>(backends_.size())) {}

    void reload(std::vector<Backend> next) {
        unsigned n = static_cast<unsigned>(next.size());
        {
            std::lock_guard<std::mutex> g(mu_);
            backends_.swap(next); /* guilty */
            generation_++;
        }
        shards_.store(n); /* guilty */
    }

    int route(unsigned key) {
        unsigned n = shards_.load(); /* guilty */
        unsigned shard = key % n;
        std::lock_guard<std::mutex> g(mu_);
        const Backend &b = backends_.at(shard); /* guilty */
        routed_++;
        return b.port;
    }

    int generation() {
        std::lock_guard<std::mutex> g(mu_);
        return generation_;
    }

    long routed() {
        std::lock_guard<std::mutex> g(mu_);
        return routed_;
    }

private:
    std::mutex mu_;
    std::vector<Backend> backends_;
    std::atomic<unsigned> shards_;
    int generation_ = 0;
    long routed_ = 0;
};

static std::vector<Backend> make_config(int n, int base_port) {
    std::vector<Backend> v;
    for (int i = 0; i < n; i++)
        v.push_back(Backend{"node" + std::to_string(i), base_port + i, 1 + i % 3});
    return v;
}

static unsigned hash_key(unsigned id) {
    unsigned h = id * 2654435761u;
    h ^= h >> 15;
    return h;
}

static std::atomic<long> port_sum{0};
static std::atomic<int> health_checks{0};

static void router_main(Router &r, unsigned first) {
    for (unsigned i = 0; i < 10; i++) {
        int port = r.route(hash_key(first + i));
        assert(port >= 7000 && port < 7400);
        port_sum += port;
    }
}

static void reload_main(Router &r) {
    static const int sizes[] = {5, 8, 3};
    int base = 7100;
    for (int n : sizes) {
        r.reload(make_config(n, base));
        base += 100;
    }
}

static void health_main(Router &r) {
    int last = 0;
    for (int i = 0; i < 4; i++) {
        int g = r.generation();
        assert(g >= last && g <= 3);
        last = g;
        health_checks++;
    }
}

int main() {
    Router router(make_config(8, 7000));
    std::thread reloader(reload_main, std::ref(router));
    std::thread r1(router_main, std::ref(router), 1u);
    std::thread r2(router_main, std::ref(router), 100u);
    std::thread health(health_main, std::ref(router));
    reloader.join();
    r1.join();
    r2.join();
    health.join();
    assert(router.routed() == 20);
    std::printf("%ld requests routed, generation %d\n", router.routed(), router.generation());
    return 0;
}
