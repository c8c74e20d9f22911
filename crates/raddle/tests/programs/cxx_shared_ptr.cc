// About: std::shared_ptr, weak_ptr whose last owners let go in different threads; exactly one destruction.
// Covers: AtomicSwap, AtomicMiss
// Outcome: exit 0
#include <atomic>
#include <cassert>
#include <memory>
#include <thread>
#include <vector>

static std::atomic<int> n_made, n_destroyed, n_expired;

struct Node : std::enable_shared_from_this<Node> {
    std::vector<int> values;
    std::weak_ptr<Node> parent;
    Node() : values(10, 7) { n_made++; }
    ~Node()
    {
        values.clear();
        n_destroyed++;
    }
};

int main()
{
    for (int round = 0; round < 5; round++) {
        auto node = std::make_shared<Node>();
        std::weak_ptr<Node> weak = node;
        auto child = std::shared_ptr<Node>(new Node);
        child->parent = node;
        std::vector<std::thread> threads;
        for (int i = 0; i < 2; i++)
            threads.emplace_back([mine = node] {
                auto other = mine->shared_from_this();
                assert(other->values.size() == 10);
            });
        threads.emplace_back([weak, child = std::move(child)] {
            if (auto parent = child->parent.lock())
                assert(parent->values[9] == 7);
            else
                n_expired++;
            auto again = weak.lock();
            assert(!again || again->values[0] == 7);
        });
        node.reset();
        for (auto &thread : threads)
            thread.join();
        threads.clear();
        assert(weak.expired());
    }
    assert(n_made == 10 && n_destroyed == 10 && n_expired <= 5);
}
