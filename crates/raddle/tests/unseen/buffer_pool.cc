/*
 * Component: page buffer pool of a storage engine. Readers pin pages, scan them
 * and unpin them; on a miss an unpinned frame is evicted (after writing the old
 * page back if it is dirty). Misses are serialised by an I/O mutex.
 *
 * Bug (atomicity violation on the pin count, as in several database buffer
 * managers): the miss path finds a victim with pins == 0, releases the pool
 * mutex during the write-back and afterwards evicts the victim without checking
 * the pin count again. A reader that pins the victim during the write-back (a
 * cache hit) finds another page in its frame.
 */
#include <array>
#include <atomic>
#include <cassert>
#include <cstdio>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

constexpr int kFrames = 4;
constexpr int kPages = 8;
using PageData = std::array<int, 4>;

class Disk {
public:
    Disk() {
        for (int p = 0; p < kPages; p++)
            pages_[p].fill(p * 1000);
    }
    PageData read(int page) {
        std::lock_guard<std::mutex> g(mu_);
        return pages_[page];
    }
    void write(int page, const PageData &d) {
        std::lock_guard<std::mutex> g(mu_);
        pages_[page] = d;
        writes_++;
    }
    int writes() const { return writes_; }

private:
    std::mutex mu_;
    std::array<PageData, kPages> pages_;
    int writes_ = 0;
};

struct Frame {
    int page = -1;
    int pins = 0;
    int last_use = 0;
    bool dirty = false;
    PageData data{};
};

class BufferPool {
public:
    explicit BufferPool(Disk &disk) : disk_(disk), frames_(kFrames) {
        for (int f = 0; f < kFrames; f++) {
            frames_[f].page = f;
            frames_[f].data = disk_.read(f);
            frames_[f].dirty = true; // touched by crash recovery
            where_[f] = f;
        }
    }

    int pin(int page) {
        {
            std::lock_guard<std::mutex> g(mu_);
            auto it = where_.find(page);
            if (it != where_.end()) {
                hits_++;
                frames_[it->second].last_use = ++clock_;
                frames_[it->second].pins++; /* guilty */
                return it->second;
            }
        }
        return pin_miss(page);
    }

    int read(int f, int page, int i) {
        std::lock_guard<std::mutex> g(mu_);
        assert(frames_[f].page == page);
        return frames_[f].data[i];
    }

    void unpin(int f) {
        std::lock_guard<std::mutex> g(mu_);
        frames_[f].pins--;
    }

    int hits() const { return hits_; }

private:
    int pick_victim() {
        int best = -1;
        for (int f = 0; f < kFrames; f++) {
            if (frames_[f].pins != 0) /* guilty */
                continue;
            if (best < 0 || frames_[f].last_use < frames_[best].last_use)
                best = f;
        }
        return best;
    }

    int pin_miss(int page) {
        std::lock_guard<std::mutex> io(io_mu_);
        std::unique_lock<std::mutex> g(mu_);
        auto it = where_.find(page);
        if (it != where_.end()) {
            frames_[it->second].pins++;
            return it->second;
        }
        int f = pick_victim();
        Frame &fr = frames_[f];
        if (fr.dirty) {
            PageData copy = fr.data;
            fr.dirty = false;
            g.unlock();
            disk_.write(fr.page, copy);
            g.lock();
        }
        where_.erase(fr.page); /* guilty */
        fr.page = page; /* guilty */
        fr.pins = 1; /* guilty */
        fr.last_use = ++clock_;
        fr.data = disk_.read(page);
        where_[page] = f;
        return f;
    }

    Disk &disk_;
    std::mutex io_mu_;
    std::mutex mu_;
    std::vector<Frame> frames_;
    std::unordered_map<int, int> where_;
    int clock_ = 0;
    int hits_ = 0;
};

static std::atomic<long> total{0};

static void scan(BufferPool &pool, std::vector<int> pages) {
    for (int page : pages) {
        int f = pool.pin(page);
        int sum = 0;
        for (int i = 0; i < 4; i++)
            sum += pool.read(f, page, i);
        pool.unpin(f);
        total += sum;
    }
}

int main() {
    Disk disk;
    BufferPool pool(disk);
    std::thread a(scan, std::ref(pool), std::vector<int>{0, 1, 2, 3, 0, 1});
    std::thread b(scan, std::ref(pool), std::vector<int>{3, 4, 2, 5, 3});
    std::thread c(scan, std::ref(pool), std::vector<int>{2, 1, 0, 6, 7});
    a.join();
    b.join();
    c.join();
    std::printf("total %ld, %d write-backs, %d hits\n", total.load(), disk.writes(), pool.hits());
    return total == 4000L * (0 + 1 + 2 + 3 + 0 + 1 + 3 + 4 + 2 + 5 + 3 + 2 + 1 + 0 + 6 + 7) ? 0 : 1;
}
