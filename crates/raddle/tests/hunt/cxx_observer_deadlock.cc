// What is wrong: a subject tells its observers of a change while it holds its lock, and each
// observer locks itself to take it in. An observer that unsubscribes holds its own lock and
// takes the subject's: the other way round.
// Hunt: fails
// Kind: deadlock
// Guilty: 4 lines
// Shows: deadlock

#include <algorithm>
#include <cassert>
#include <mutex>
#include <thread>
#include <vector>

class Observer;

class Subject {
public:
    void subscribe(Observer *observer)
    {
        std::lock_guard<std::mutex> guard(lock_);
        observers_.push_back(observer);
    }

    void unsubscribe(Observer *observer)
    {
        std::lock_guard<std::mutex> guard(lock_); /* guilty */
        observers_.erase(std::remove(observers_.begin(), observers_.end(), observer),
                         observers_.end());
    }

    void set(int value);

private:
    std::mutex lock_;
    std::vector<Observer *> observers_;
    int value_ = 0;
};

class Observer {
public:
    explicit Observer(Subject &subject) : subject_(subject) { subject_.subscribe(this); }

    void changed(int value)
    {
        std::lock_guard<std::mutex> guard(lock_); /* guilty */
        last_ = value;
        n_changes_++;
    }

    int close()
    {
        std::lock_guard<std::mutex> guard(lock_); /* guilty */
        subject_.unsubscribe(this);
        return n_changes_;
    }

    int last()
    {
        std::lock_guard<std::mutex> guard(lock_);
        return last_;
    }

private:
    std::mutex lock_;
    Subject &subject_;
    int last_ = 0;
    int n_changes_ = 0;
};

void Subject::set(int value)
{
    std::lock_guard<std::mutex> guard(lock_); /* guilty */
    value_ = value;
    for (Observer *observer : observers_)
        observer->changed(value);
}

int main()
{
    Subject subject;
    Observer stays(subject), leaves(subject);
    int n_seen = 0;

    std::thread writer([&] {
        for (int i = 1; i <= 3; i++)
            subject.set(i);
    });
    std::thread leaver([&] { n_seen = leaves.close(); });
    writer.join();
    leaver.join();
    assert(stays.last() == 3 && n_seen <= 3);
    return 0;
}
