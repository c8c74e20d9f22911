/*
 * Component: lazily created registry of codecs. Decoder threads fetch the
 * registry through a double-checked accessor and look up the codec of their
 * stream; plug-ins may add codecs later.
 *
 * Bug (order violation, broken double-checked initialisation): instance()
 * stores the pointer before register_builtins() has run. A decoder that takes
 * the fast path in between gets a registry in which the built-in codecs are
 * missing. (No data race: the pointer is atomic, the table has a mutex.)
 */
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct Codec {
    std::string name;
    int fourcc;
    int bits;
};

class CodecRegistry {
public:
    static CodecRegistry &instance();

    void add(const std::string &name, int fourcc, int bits) {
        std::lock_guard<std::mutex> g(mu_);
        table_[count_] = Codec{name, fourcc, bits};
        count_++; /* guilty */
    }

    int find(int fourcc) {
        std::lock_guard<std::mutex> g(mu_);
        int n = count_; /* guilty */
        for (int i = 0; i < n; i++) {
            if (table_[i].fourcc == fourcc)
                return table_[i].bits;
        }
        return -1;
    }

    int count() {
        std::lock_guard<std::mutex> g(mu_);
        return count_;
    }

private:
    void register_builtins() {
        add("pcm", 1, 16);
        add("flac", 2, 24);
        add("opus", 3, 12);
    }

    std::mutex mu_;
    std::array<Codec, 8> table_;
    int count_ = 0;
};

static std::atomic<CodecRegistry *> the_registry{nullptr};
static std::mutex create_mu;
static std::atomic<int> created{0};

CodecRegistry &CodecRegistry::instance() {
    CodecRegistry *r = the_registry.load(); /* guilty */
    if (r == nullptr) {
        std::lock_guard<std::mutex> g(create_mu);
        r = the_registry.load();
        if (r == nullptr) {
            r = new CodecRegistry;
            the_registry.store(r); /* guilty */
            r->register_builtins();
            created++;
        }
    }
    return *r;
}

static std::atomic<long> bits_decoded{0};
static std::atomic<int> missing{0};

static int parse_header(unsigned stream) {
    unsigned h = stream + 1;
    for (int i = 0; i < 300; i++)
        h = h * 1103515245u + 12345u;
    return h == 0 ? 0 : static_cast<int>(1 + stream % 3);
}

static void decoder_main(unsigned stream) {
    int fourcc = parse_header(stream);
    for (int packet = 0; packet < 4; packet++) {
        int bits = CodecRegistry::instance().find(fourcc);
        if (bits < 0) {
            missing++;
            return;
        }
        bits_decoded += bits;
    }
}

static void plugin_main() {
    parse_header(9);
    CodecRegistry::instance().add("speex", 17, 8);
}

int main() {
    std::vector<std::thread> threads;
    for (unsigned s = 0; s < 3; s++)
        threads.emplace_back(decoder_main, s);
    threads.emplace_back(plugin_main);
    for (auto &t : threads)
        t.join();

    CodecRegistry &r = CodecRegistry::instance();
    std::printf("%d registry, %d codecs, %ld bits, %d streams without codec\n", created.load(), r.count(),
                bits_decoded.load(), missing.load());
    bool ok = missing == 0 && created == 1 && r.count() == 4 && bits_decoded == 4 * (16 + 24 + 12);
    delete the_registry.exchange(nullptr);
    if (!ok)
        std::abort();
    return 0;
}
