// What no correct program does, one by one: the argument says which. Expects what glibc does.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPECT(what)                                        \
    do {                                                    \
        if (!(what)) {                                      \
            printf("line %d: not %s\n", __LINE__, #what);   \
            exit(9);                                        \
        }                                                   \
    } while (0)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t semaphore;
static pthread_barrier_t barrier;

static pthread_t start(void *(*routine)(void *)) {
    pthread_t thread;
    EXPECT(!pthread_create(&thread, 0, routine, 0));
    return thread;
}

static void run(void *(*routine)(void *)) {
    EXPECT(!pthread_join(start(routine), 0));
}

static void *unlock(void *unused) {
    EXPECT(!pthread_mutex_unlock(&mutex));
    return unused;
}

static void *use_mutex(void *unused) {
    EXPECT(!pthread_mutex_trylock(&mutex));
    EXPECT(!pthread_mutex_unlock(&mutex));
    return unused;
}

static void *unlock_rwlock(void *unused) {
    EXPECT(!pthread_rwlock_unlock(&rwlock));
    return unused;
}

static void *use_rwlock(void *unused) {
    EXPECT(!pthread_rwlock_wrlock(&rwlock));
    EXPECT(!pthread_rwlock_unlock(&rwlock));
    EXPECT(!pthread_rwlock_rdlock(&rwlock));
    EXPECT(!pthread_rwlock_unlock(&rwlock));
    return unused;
}

static void *leave(void *unused) {
    sleep(1);
    exit(0);
    return unused;
}

// More steps than a thread beside a lock cycle gets before that is a deadlock.
static void *leave_late(void *unused) {
    static volatile int n;
    while (n < 200000)
        n++;
    return leave(unused);
}

static void *arrive(void *unused) {
    int status = pthread_barrier_wait(&barrier);
    EXPECT(status == 0 || status == PTHREAD_BARRIER_SERIAL_THREAD);
    return unused;
}

static void *arrive_late(void *unused) {
    sleep(2);
    return arrive(unused);
}

static void unlock_held(void) {
    pthread_mutex_lock(&mutex);
    run(unlock);
    run(use_mutex);
    EXPECT(!pthread_mutex_lock(&mutex));
    EXPECT(!pthread_mutex_unlock(&mutex));
}

// As glibc's tst-cancel1.
static void unlock_awaited(void) {
    pthread_mutex_lock(&mutex);
    pthread_t thread = start(unlock);
    EXPECT(!pthread_mutex_lock(&mutex));
    pthread_join(thread, 0);
}

static void unlock_free(void) {
    EXPECT(!pthread_mutex_unlock(&mutex));
    run(use_mutex);
}

static void unlock_rwlock_held(void) {
    pthread_rwlock_wrlock(&rwlock);
    run(unlock_rwlock);
    run(use_rwlock);
    EXPECT(!pthread_rwlock_wrlock(&rwlock));
    EXPECT(!pthread_rwlock_unlock(&rwlock));
}

static void unlock_rwlock_free(void) {
    EXPECT(!pthread_rwlock_unlock(&rwlock));
    run(use_rwlock);
}

static void wait_without_lock(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec++;
    EXPECT(pthread_cond_timedwait(&cond, &mutex, &time) == ETIMEDOUT);
    EXPECT(!pthread_mutex_unlock(&mutex));
}

// As glibc's tst-mutex8.
static void destroy_held(void) {
    pthread_mutex_lock(&mutex);
    EXPECT(pthread_mutex_destroy(&mutex) == EBUSY);
    EXPECT(!pthread_mutex_unlock(&mutex));
    EXPECT(!pthread_mutex_destroy(&mutex));
}

static void use_destroyed_mutex(void) {
    pthread_mutex_destroy(&mutex);
    EXPECT(pthread_mutex_lock(&mutex) == EINVAL);
    EXPECT(pthread_mutex_unlock(&mutex) == EINVAL);
    EXPECT(pthread_mutex_trylock(&mutex) == EINVAL);
}

static void use_destroyed_rwlock(void) {
    use_rwlock(0);
    pthread_rwlock_destroy(&rwlock);
    run(use_rwlock);
    run(use_rwlock);
}

static void destroy_rwlock_held(void) {
    pthread_rwlock_wrlock(&rwlock);
    EXPECT(!pthread_rwlock_destroy(&rwlock));
    EXPECT(!pthread_rwlock_unlock(&rwlock));
    run(use_rwlock);
}

static void use_destroyed_spin(void) {
    pthread_spin_init(&spin, 0);
    pthread_spin_destroy(&spin);
    EXPECT(!pthread_spin_lock(&spin));
    EXPECT(pthread_spin_trylock(&spin) == EBUSY);
    EXPECT(!pthread_spin_unlock(&spin));
}

static void destroy_spin_held(void) {
    pthread_spin_init(&spin, 0);
    pthread_spin_lock(&spin);
    EXPECT(!pthread_spin_destroy(&spin));
    EXPECT(!pthread_spin_unlock(&spin));
    EXPECT(!pthread_spin_lock(&spin));
}

static void use_destroyed_semaphore(void) {
    int value;
    sem_init(&semaphore, 0, 2);
    sem_destroy(&semaphore);
    EXPECT(!sem_wait(&semaphore));
    EXPECT(!sem_getvalue(&semaphore, &value) && value == 1);
    EXPECT(!sem_wait(&semaphore));
    EXPECT(sem_trywait(&semaphore) && errno == EAGAIN);
    EXPECT(!sem_post(&semaphore));
}

static void use_destroyed_cond(void) {
    pthread_cond_destroy(&cond);
    EXPECT(!pthread_cond_signal(&cond));
    EXPECT(!pthread_cond_broadcast(&cond));
}

static void use_destroyed_barrier(void) {
    pthread_barrier_init(&barrier, 0, 2);
    pthread_barrier_destroy(&barrier);
    for (int i = 0; i < 2; i++) {
        pthread_t thread = start(arrive);
        arrive(0);
        pthread_join(thread, 0);
    }
}

static void destroy_barrier_awaited(void) {
    pthread_barrier_init(&barrier, 0, 2);
    pthread_t first = start(arrive);
    sleep(1);
    pthread_t second = start(arrive_late);
    EXPECT(!pthread_barrier_destroy(&barrier));
    pthread_join(first, 0);
    pthread_join(second, 0);
}

static pthread_mutex_t *shared_mutex;

static void *lock_until_cancelled(void *unused) {
    pthread_mutex_lock(shared_mutex);
    for (;;) {
        sleep(1);
    }
    return unused;
}

// As glibc's tst-cond7.
static void free_held(void) {
    for (int i = 0; i < 2; i++) {
        shared_mutex = malloc(sizeof *shared_mutex);
        pthread_mutex_init(shared_mutex, 0);
        pthread_t thread = start(lock_until_cancelled);
        sleep(2);
        pthread_cancel(thread);
        pthread_join(thread, 0);
        free(shared_mutex);
    }
}

static void use_freed_mutex(void) {
    pthread_mutex_t *freed = malloc(sizeof *freed);
    pthread_mutex_init(freed, 0);
    pthread_mutex_lock(freed);
    free(freed);
    EXPECT(!pthread_mutex_unlock(freed));
    EXPECT(!pthread_mutex_lock(freed));
}

// As glibc's tst-eintr2, without its signals.
static void relock(void) {
    start(leave_late);
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
}

static void relock_rwlock(void) {
    start(leave_late);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
}

static void relock_spin(void) {
    pthread_spin_init(&spin, 0);
    start(leave_late);
    pthread_spin_lock(&spin);
    pthread_spin_lock(&spin);
}

static void relock_alone(void) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
}

static void use_uninitialized(void) {
    memset(&mutex, 0x5c, sizeof mutex);
    EXPECT(pthread_mutex_lock(&mutex) == EINVAL);
}

static void use_null(void) {
    pthread_mutex_t *volatile none = 0;
    pthread_mutex_lock(none);
}

static void free_again(void) {
    char *volatile block = malloc(100);
    strcpy(block, "hello");
    free(block);
    free(block);
    char *copy = realloc(block, 200);
    EXPECT(copy != block && !strcmp(copy, "hello"));
    free(copy);
    EXPECT(malloc(100) != block);
}

static void use_freed_large(void) {
    volatile char *block = malloc(1 << 20);
    block[5] = 3;
    block[1 << 19] = 4;
    free((void *)block);
    EXPECT(block[5] == 3);
    EXPECT(block[1 << 19] == 4);
}

static void use_moved_large(void) {
    volatile char *volatile block = malloc(3 << 20);
    block[5] = 3;
    volatile char *moved = realloc((void *)block, 9 << 20);
    EXPECT(moved[5] == 3);
    EXPECT(block[5] == 3);
}

// A lock of the program's own, which does nothing but tell raddle.
void __tsan_mutex_create(void *, unsigned);
void __tsan_mutex_destroy(void *, unsigned);
void __tsan_mutex_pre_lock(void *, unsigned);
void __tsan_mutex_post_lock(void *, unsigned, int);
int __tsan_mutex_pre_unlock(void *, unsigned);

static int word;

static void *lock_word(void *unused) {
    __tsan_mutex_pre_lock(&word, 0);
    __tsan_mutex_post_lock(&word, 0, 0);
    return unused;
}

static void *unlock_word(void *unused) {
    EXPECT(__tsan_mutex_pre_unlock(&word, 0) == 1);
    return unused;
}

static void unlock_own_held(void) {
    lock_word(0);
    run(unlock_word);
    lock_word(0);
    unlock_word(0);
}

static void unlock_own_free(void) {
    __tsan_mutex_create(&word, 0);
    unlock_word(0);
    lock_word(0);
    unlock_word(0);
}

static void destroy_own_held(void) {
    __tsan_mutex_create(&word, 0);
    lock_word(0);
    __tsan_mutex_destroy(&word, 0);
    lock_word(0);
    unlock_word(0);
}

static void lock_own_held(void) {
    lock_word(0);
    run(lock_word);
}

static void relock_own(void) {
    __tsan_mutex_create(&word, 0);
    lock_word(0);
    lock_word(0);
    unlock_word(0);
    unlock_word(0);
}

static const struct {
    const char *name;
    void (*act)(void);
} acts[] = {
    {"unlock_held", unlock_held},
    {"unlock_awaited", unlock_awaited},
    {"unlock_free", unlock_free},
    {"unlock_rwlock_held", unlock_rwlock_held},
    {"unlock_rwlock_free", unlock_rwlock_free},
    {"wait_without_lock", wait_without_lock},
    {"destroy_held", destroy_held},
    {"use_destroyed_mutex", use_destroyed_mutex},
    {"use_destroyed_rwlock", use_destroyed_rwlock},
    {"destroy_rwlock_held", destroy_rwlock_held},
    {"use_destroyed_spin", use_destroyed_spin},
    {"destroy_spin_held", destroy_spin_held},
    {"use_destroyed_semaphore", use_destroyed_semaphore},
    {"use_destroyed_cond", use_destroyed_cond},
    {"use_destroyed_barrier", use_destroyed_barrier},
    {"destroy_barrier_awaited", destroy_barrier_awaited},
    {"free_held", free_held},
    {"use_freed_mutex", use_freed_mutex},
    {"relock", relock},
    {"relock_rwlock", relock_rwlock},
    {"relock_spin", relock_spin},
    {"relock_alone", relock_alone},
    {"use_uninitialized", use_uninitialized},
    {"use_null", use_null},
    {"unlock_own_held", unlock_own_held},
    {"unlock_own_free", unlock_own_free},
    {"destroy_own_held", destroy_own_held},
    {"lock_own_held", lock_own_held},
    {"relock_own", relock_own},
    {"free_again", free_again},
    {"use_freed_large", use_freed_large},
    {"use_moved_large", use_moved_large},
};

int main(int argc, char **argv) {
    for (unsigned i = 0; i < sizeof acts / sizeof *acts; i++) {
        if (argc > 1 && !strcmp(argv[1], acts[i].name)) {
            acts[i].act();
            return 0;
        }
    }
    return 2;
}
