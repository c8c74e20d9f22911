// What is wrong: a chat server looks a member up in a room under the room's lock, and delivers
// the message after it has let go. A member who leaves is deleted at once, and the message may
// go to one who is no more. Rooms, bans, history and statistics around it are in order.
// Hunt: fails
// Kind: order, atomicity, race
// Guilty: 4 lines
// Shows: use-after-free, assert, signal

#include <atomic>
#include <cassert>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

class Member {
public:
    explicit Member(int id) : id_(id) {}
    ~Member() { alive_ = 0; } /* guilty */

    void deliver(const std::string &text)
    {
        assert(alive_ == 0x600d); /* guilty */
        n_received_++;
        n_letters_ += text.size();
    }

    int id() const { return id_; }

private:
    int id_;
    volatile int alive_ = 0x600d;
    std::atomic<int> n_received_{0};
    std::atomic<size_t> n_letters_{0};
};

/* Who must not speak. */
class Bans {
public:
    void add(int id)
    {
        std::lock_guard<std::mutex> guard(lock_);
        banned_.insert(id);
    }

    bool holds(int id)
    {
        std::lock_guard<std::mutex> guard(lock_);
        return banned_.count(id) != 0;
    }

private:
    std::mutex lock_;
    std::set<int> banned_;
};

/* The latest lines of a room. */
class History {
public:
    void add(const std::string &line)
    {
        std::lock_guard<std::mutex> guard(lock_);
        lines_.push_back(line);
        if (lines_.size() > 4)
            lines_.pop_front();
        n_lines_++;
    }

    int count()
    {
        std::lock_guard<std::mutex> guard(lock_);
        return n_lines_;
    }

private:
    std::mutex lock_;
    std::deque<std::string> lines_;
    int n_lines_ = 0;
};

class Room {
public:
    void join(int id)
    {
        auto *member = new Member(id);
        std::lock_guard<std::mutex> guard(lock_);
        members_[id] = member;
    }

    void leave(int id)
    {
        Member *member = nullptr;
        {
            std::lock_guard<std::mutex> guard(lock_);
            auto found = members_.find(id);
            if (found == members_.end())
                return;
            member = found->second;
            members_.erase(found);
        }
        delete member; /* guilty */
    }

    /* To all: under the lock, and right. */
    void say(const std::string &text)
    {
        std::lock_guard<std::mutex> guard(lock_);
        for (auto &member : members_)
            member.second->deliver(text);
        history_.add(text);
    }

    /* To one. */
    bool whisper(int id, const std::string &text)
    {
        Member *member = find(id);
        if (member == nullptr)
            return false;
        member->deliver(text); /* guilty */
        return true;
    }

    int lines() { return history_.count(); }

private:
    Member *find(int id)
    {
        std::lock_guard<std::mutex> guard(lock_);
        auto found = members_.find(id);
        return found == members_.end() ? nullptr : found->second;
    }

    std::mutex lock_;
    std::map<int, Member *> members_;
    History history_;
};

struct Server {
    Room rooms[2];
    Bans bans;
    std::atomic<int> n_messages{0};

    void speak(int room, int from, const std::string &text)
    {
        if (bans.holds(from))
            return;
        rooms[room].say(text);
        n_messages++;
    }
};

int main()
{
    Server server;
    for (int id = 1; id <= 4; id++) {
        server.rooms[0].join(id);
        server.rooms[1].join(id);
    }
    server.bans.add(4);

    std::thread talker([&] {
        for (int i = 0; i < 12; i++)
            server.speak(i % 2, 1, "line " + std::to_string(i));
        server.rooms[0].whisper(3, "psst");
        for (int i = 0; i < 2; i++)
            server.speak(1, 1, "more " + std::to_string(i));
    });
    std::thread banned([&] {
        for (int i = 0; i < 20; i++)
            server.speak(0, 4, "spam");
    });
    std::thread leaver([&] {
        for (int i = 0; i < 6; i++)
            server.speak(1, 3, "see you");
        server.rooms[1].leave(3);
        server.speak(0, 3, "bye");
        server.rooms[0].leave(3);
    });
    talker.join();
    banned.join();
    leaver.join();
    assert(server.n_messages == 21);
    assert(server.rooms[0].lines() + server.rooms[1].lines() == 21);
    for (auto &room : server.rooms)
        for (int id = 1; id <= 4; id++)
            room.leave(id);
    return 0;
}
