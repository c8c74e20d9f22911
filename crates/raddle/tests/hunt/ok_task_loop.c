// Nothing is wrong: a thread runs tasks, and waits for events while there are none. Whoever adds a task
// wakes it through an event counter, but only if it waits. An order that lets it wait for an event
// before the thread that has to send it runs is impossible, and not a hang.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { PRODUCERS = 2, TASKS = 4 };

enum { AWAKE, WAITS, NOTIFIED };

static atomic_int state = AWAKE;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_tasks;
static int epoll;
static int event;

static int take(void)
{
    pthread_mutex_lock(&lock);
    int n = n_tasks;
    n_tasks = 0;
    pthread_mutex_unlock(&lock);
    return n;
}

static void wait_for_event(void)
{
    int awake = AWAKE;
    struct epoll_event seen;

    if (atomic_compare_exchange_strong(&state, &awake, WAITS))
        assert(epoll_wait(epoll, &seen, 1, -1) == 1);
    atomic_store(&state, AWAKE);
}

static void *run(void *unused)
{
    for (int n = 0; n < PRODUCERS * TASKS; n += take())
        wait_for_event();
    return unused;
}

static void *produce(void *unused)
{
    for (int i = 0; i < TASKS; i++) {
        pthread_mutex_lock(&lock);
        n_tasks++;
        pthread_mutex_unlock(&lock);
        if (atomic_exchange(&state, NOTIFIED) == WAITS)
            assert(write(event, &(uint64_t){ 1 }, 8) == 8);
    }
    return unused;
}

int main(void)
{
    pthread_t loop;
    pthread_t producers[PRODUCERS];
    struct epoll_event interest = { .events = EPOLLIN | EPOLLET };

    epoll = epoll_create1(0);
    event = eventfd(0, EFD_NONBLOCK);
    assert(epoll_ctl(epoll, EPOLL_CTL_ADD, event, &interest) == 0);
    pthread_create(&loop, NULL, run, NULL);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_create(&producers[i], NULL, produce, NULL);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i], NULL);
    pthread_join(loop, NULL);
    return 0;
}
