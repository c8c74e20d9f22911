/*
 * Component: event-loop threads with a wrapper object. nsthread_init() enters
 * the wrapper in the thread table, creates the native thread and remembers its
 * handle in the wrapper; the new thread runs the events dispatched to it. Events
 * come from main and from a ticker that serves all threads in the table.
 *
 * Bug (order violation, cf. Mozilla nsThread::Init / nsThread::Main): the event
 * loop uses thr->handle, which the creator stores only after the native create
 * call has returned. If the ticker sends an event to the new wrapper and the new
 * thread runs it before the creator has stored the handle, it finds NULL.
 */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 2
#define EVENTS 4
#define TICKS 2
#define QCAP 16
#define QUIT (-1)

struct native_thread {
    pthread_t tid;
    atomic_int events;
    void (*entry)(void *);
    void *arg;
};

struct nsthread {
    struct native_thread *handle;
    const char *name;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int queue[QCAP];
    int head;
    int tail;
    long result;
};

static struct nsthread threads[THREADS] = { { .name = "io" }, { .name = "dns" } };
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nsthread *table[THREADS];
static sem_t ticker_ready;
static atomic_int ticks_sent;
static atomic_int total_events;

static void *native_start(void *arg)
{
    struct native_thread *nt = arg;
    nt->entry(nt->arg);
    return NULL;
}

static struct native_thread *native_create(void (*entry)(void *), void *arg)
{
    struct native_thread *nt = malloc(sizeof *nt);
    atomic_init(&nt->events, 0);
    nt->entry = entry;
    nt->arg = arg;
    pthread_create(&nt->tid, NULL, native_start, nt);
    return nt;
}

static void dispatch(struct nsthread *thr, int event)
{
    pthread_mutex_lock(&thr->lock);
    thr->queue[thr->tail] = event;
    thr->tail++;
    pthread_cond_signal(&thr->wake);
    pthread_mutex_unlock(&thr->lock);
}

static int next_event(struct nsthread *thr)
{
    pthread_mutex_lock(&thr->lock);
    while (thr->head == thr->tail)
        pthread_cond_wait(&thr->wake, &thr->lock);
    int event = thr->queue[thr->head];
    thr->head++;
    pthread_mutex_unlock(&thr->lock);
    return event;
}

static void nsthread_main(void *arg)
{
    struct nsthread *thr = arg;

    for (int event = next_event(thr); event != QUIT; event = next_event(thr)) {
        struct native_thread *self = thr->handle; /* guilty */
        assert(self != NULL);
        atomic_fetch_add(&self->events, 1);
        thr->result += event;
    }
}

static void nsthread_init(struct nsthread *thr, int slot)
{
    struct native_thread *nt;

    pthread_mutex_init(&thr->lock, NULL);
    pthread_cond_init(&thr->wake, NULL);
    pthread_mutex_lock(&table_lock);
    table[slot] = thr;
    pthread_mutex_unlock(&table_lock);
    nt = native_create(nsthread_main, thr);
    thr->handle = nt; /* guilty */
}

static void nsthread_shutdown(struct nsthread *thr, int slot)
{
    struct native_thread *nt = thr->handle;

    pthread_mutex_lock(&table_lock);
    table[slot] = NULL;
    pthread_mutex_unlock(&table_lock);
    dispatch(thr, QUIT);
    pthread_join(nt->tid, NULL);
    atomic_fetch_add(&total_events, atomic_load(&nt->events));
    free(nt);
}

static void *ticker_main(void *arg)
{
    (void)arg;
    for (int t = 0; t < TICKS; t++) {
        pthread_mutex_lock(&table_lock);
        for (int i = 0; i < THREADS; i++) {
            if (table[i] != NULL) {
                dispatch(table[i], 1);
                atomic_fetch_add(&ticks_sent, 1);
            }
        }
        pthread_mutex_unlock(&table_lock);
        if (t == 0)
            sem_post(&ticker_ready);
    }
    return NULL;
}

int main(void)
{
    pthread_t ticker;
    long sum = 0;

    sem_init(&ticker_ready, 0, 0);
    pthread_create(&ticker, NULL, ticker_main, NULL);
    sem_wait(&ticker_ready);
    for (int i = 0; i < THREADS; i++)
        nsthread_init(&threads[i], i);
    for (int e = 0; e < EVENTS; e++)
        for (int i = 0; i < THREADS; i++)
            dispatch(&threads[i], 100);
    for (int i = 0; i < THREADS; i++) {
        nsthread_shutdown(&threads[i], i);
        sum += threads[i].result;
    }
    pthread_join(ticker, NULL);
    int ticks = atomic_load(&ticks_sent);
    assert(atomic_load(&total_events) == THREADS * EVENTS + ticks);
    assert(sum == THREADS * EVENTS * 100 + ticks);
    printf("%d events, %d of them ticks\n", atomic_load(&total_events), ticks);
    return 0;
}
