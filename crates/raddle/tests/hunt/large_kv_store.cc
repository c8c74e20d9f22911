// What is wrong: a key-value store writes to its log and then, still holding the log, to its
// table. The compaction holds the table and then truncates the log, but only once the table
// has grown enough: late in the run, the two meet in opposite order. Snapshots, the cache
// and the counters around it are in order.
// Hunt: fails
// Kind: deadlock
// Guilty: 4 lines
// Shows: deadlock

#include <atomic>
#include <cassert>
#include <list>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

struct Record {
    unsigned long sequence;
    std::string key;
    int value;
};

/* The log of what was written since the last compaction. */
class Log {
public:
    std::mutex lock;

    unsigned long append(const std::string &key, int value)
    {
        records_.push_back({++sequence_, key, value});
        return sequence_;
    }

    size_t truncate()
    {
        size_t n = records_.size();
        records_.clear();
        return n;
    }

    unsigned long sequence() const { return sequence_; }

private:
    std::vector<Record> records_;
    unsigned long sequence_ = 0;
};

/* The table in memory. */
class Table {
public:
    std::shared_mutex lock;

    void set(const std::string &key, int value) { values_[key] = value; }

    bool find(const std::string &key, int &value) const
    {
        auto found = values_.find(key);
        if (found == values_.end())
            return false;
        value = found->second;
        return true;
    }

    size_t size() const { return values_.size(); }
    const std::map<std::string, int> &values() const { return values_; }

private:
    std::map<std::string, int> values_;
};

/* What was read lately, the latest first. */
class Cache {
public:
    explicit Cache(size_t capacity) : capacity_(capacity) {}

    bool get(const std::string &key, int &value)
    {
        std::lock_guard<std::mutex> guard(lock_);
        auto found = places_.find(key);
        if (found == places_.end())
            return false;
        order_.splice(order_.begin(), order_, found->second);
        value = found->second->second;
        return true;
    }

    void put(const std::string &key, int value)
    {
        std::lock_guard<std::mutex> guard(lock_);
        auto found = places_.find(key);
        if (found != places_.end()) {
            found->second->second = value;
            return;
        }
        order_.emplace_front(key, value);
        places_[key] = order_.begin();
        if (order_.size() > capacity_) {
            places_.erase(order_.back().first);
            order_.pop_back();
        }
    }

    void drop(const std::string &key)
    {
        std::lock_guard<std::mutex> guard(lock_);
        auto found = places_.find(key);
        if (found == places_.end())
            return;
        order_.erase(found->second);
        places_.erase(found);
    }

private:
    std::mutex lock_;
    size_t capacity_;
    std::list<std::pair<std::string, int>> order_;
    std::unordered_map<std::string, std::list<std::pair<std::string, int>>::iterator> places_;
};

class Store {
public:
    void put(const std::string &key, int value)
    {
        std::lock_guard<std::mutex> log_guard(log_.lock); /* guilty */
        log_.append(key, value);
        {
            std::unique_lock<std::shared_mutex> table_guard(table_.lock); /* guilty */
            table_.set(key, value);
        }
        cache_.drop(key);
        n_puts_++;
    }

    bool get(const std::string &key, int &value)
    {
        n_gets_++;
        if (cache_.get(key, value))
            return true;
        std::shared_lock<std::shared_mutex> guard(table_.lock);
        if (!table_.find(key, value))
            return false;
        cache_.put(key, value);
        return true;
    }

    void snapshot()
    {
        std::map<std::string, int> copy;
        {
            std::shared_lock<std::shared_mutex> guard(table_.lock);
            copy = table_.values();
        }
        std::lock_guard<std::mutex> guard(snapshots_lock_);
        snapshots_.push_back(copy.size());
    }

    bool compact()
    {
        std::unique_lock<std::shared_mutex> table_guard(table_.lock); /* guilty */
        if (table_.size() < 10)
            return false;
        std::lock_guard<std::mutex> log_guard(log_.lock); /* guilty */
        n_truncated_ += log_.truncate();
        return true;
    }

    int puts() const { return n_puts_; }
    int gets() const { return n_gets_; }

private:
    Log log_;
    Table table_;
    Cache cache_{3};
    std::mutex snapshots_lock_;
    std::vector<size_t> snapshots_;
    std::atomic<int> n_puts_{0};
    std::atomic<int> n_gets_{0};
    size_t n_truncated_ = 0;
};

int main()
{
    Store store;

    std::thread writer([&store] {
        for (int i = 0; i < 12; i++)
            store.put("key" + std::to_string(i), i);
    });
    std::thread reader([&store] {
        int value;
        for (int i = 0; i < 12; i++)
            if (store.get("key" + std::to_string(i % 5), value))
                assert(value == i % 5);
        store.snapshot();
    });
    std::thread compactor([&store] {
        for (int i = 0; i < 4 && !store.compact(); i++)
            store.snapshot();
    });
    writer.join();
    reader.join();
    compactor.join();
    assert(store.puts() == 12 && store.gets() == 12);
    return 0;
}
