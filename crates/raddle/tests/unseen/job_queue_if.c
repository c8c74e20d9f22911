/*
 * Component: a bounded job queue between one feeder and several converter
 * threads, with a mutex and two condition variables.
 *
 * Bug (atomicity violation, condition re-check missing; the classic
 * if-instead-of-while around pthread_cond_wait): a converter that finds the
 * queue empty waits once and then takes a job without looking again. Converter
 * A waits; the feeder adds one job and signals A; before A gets the mutex back,
 * converter B enters and takes the job; A then takes a job from an empty queue.
 * (The feeder's own wait uses a proper loop.)
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define CAP 10
#define CONVERTERS 3
#define PER_CONVERTER 4
#define JOBS (CONVERTERS * PER_CONVERTER)
#define BACKLOG 6

struct job {
    int id;
    int frames;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t not_empty;
    pthread_cond_t not_full;
    struct job slot[CAP];
    int head;
    int tail;
    int count;
} queue = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .not_empty = PTHREAD_COND_INITIALIZER,
    .not_full = PTHREAD_COND_INITIALIZER,
};

static atomic_int frames_done;
static atomic_int converted[JOBS + 1];

static void queue_put(struct job j)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == CAP)
        pthread_cond_wait(&queue.not_full, &queue.lock);
    queue.slot[queue.tail] = j;
    queue.tail = (queue.tail + 1) % CAP;
    queue.count++;
    pthread_cond_signal(&queue.not_empty);
    pthread_mutex_unlock(&queue.lock);
}

static struct job queue_get(void)
{
    struct job j;

    pthread_mutex_lock(&queue.lock);
    if (queue.count == 0) /* guilty */
        pthread_cond_wait(&queue.not_empty, &queue.lock); /* guilty */
    j = queue.slot[queue.head]; /* guilty */
    queue.slot[queue.head].id = 0; /* guilty */
    queue.head = (queue.head + 1) % CAP; /* guilty */
    queue.count--; /* guilty */
    pthread_cond_signal(&queue.not_full);
    pthread_mutex_unlock(&queue.lock);
    return j;
}

static int convert(struct job j)
{
    unsigned acc = (unsigned)j.id;
    for (int f = 0; f < j.frames; f++) {
        for (int px = 0; px < 300; px++)
            acc = acc * 1664525u + 1013904223u + (unsigned)px;
    }
    return acc != 0 ? j.frames : 0;
}

static void *converter_main(void *arg)
{
    (void)arg;
    for (int i = 0; i < PER_CONVERTER; i++) {
        struct job j = queue_get();
        assert(j.id >= 1 && j.id <= JOBS);
        int n = convert(j);
        atomic_fetch_add(&frames_done, n);
        atomic_fetch_add(&converted[j.id], 1);
    }
    return NULL;
}

static void feed(int first, int last)
{
    for (int i = first; i <= last; i++) {
        struct job j = { .id = i, .frames = 1 + i % 3 };
        queue_put(j);
    }
}

static void *feeder_main(void *arg)
{
    (void)arg;
    feed(BACKLOG + 1, JOBS);
    return NULL;
}

int main(void)
{
    pthread_t feeder;
    pthread_t conv[CONVERTERS];

    feed(1, BACKLOG); /* jobs left over from the last session */
    pthread_create(&feeder, NULL, feeder_main, NULL);
    for (int i = 0; i < CONVERTERS; i++)
        pthread_create(&conv[i], NULL, converter_main, NULL);
    pthread_join(feeder, NULL);
    for (int i = 0; i < CONVERTERS; i++)
        pthread_join(conv[i], NULL);
    for (int i = 1; i <= JOBS; i++)
        assert(atomic_load(&converted[i]) == 1);
    printf("%d frames\n", atomic_load(&frames_done));
    return 0;
}
