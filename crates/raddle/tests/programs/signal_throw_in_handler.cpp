// About: an exception thrown by a signal handler leaves the interrupted function, which is in pause, in
// read, or in a fault of its own. Destructors run.
// Covers: pause, pthread_kill, read, sigaction
// Flags: -std=c++20 -fnon-call-exceptions -lstdc++
// Outcome: exit 0
#include <cassert>
#include <csignal>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static sem_t up;
static int *volatile nowhere;
static int ends[2], n_destroyed;

struct Counted {
    ~Counted() { n_destroyed++; }
};

static void fail(int signal)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    // The handler does not return, so the signal would remain blocked.
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    throw signal;
}

static void receive()
{
    char byte;
    assert(read(ends[0], &byte, 1) == 1);
}

static void stop()
{
    pause();
}

static void fault()
{
    *nowhere = 1;
}

static void *run(void *place)
{
    for (int i = 0; i < 2; i++) {
        try {
            Counted counted;
            assert(sem_post(&up) == 0);
            reinterpret_cast<void (*)()>(place)();
            assert(false);
        } catch (int signal) {
            assert(signal == SIGUSR1 || signal == SIGSEGV);
        }
    }
    return nullptr;
}

int main()
{
    struct sigaction action = {};
    action.sa_handler = fail;
    assert(sigaction(SIGUSR1, &action, nullptr) == 0 && sigaction(SIGSEGV, &action, nullptr) == 0);
    assert(sem_init(&up, 0, 0) == 0 && pipe(ends) == 0);
    void (*const places[])() = { receive, stop, fault };
    for (auto place : places) {
        pthread_t thread;
        assert(pthread_create(&thread, nullptr, run, reinterpret_cast<void *>(place)) == 0);
        for (int i = 0; i < 2; i++) {
            assert(sem_wait(&up) == 0);
            // It is in the call by then.
            usleep(100000);
            if (place != fault)
                assert(pthread_kill(thread, SIGUSR1) == 0);
        }
        assert(pthread_join(thread, nullptr) == 0);
    }
    assert(n_destroyed == 6);
    return 0;
}
