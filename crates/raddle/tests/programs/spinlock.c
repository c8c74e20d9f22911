// About: pthread_spin_init, pthread_spin_lock, pthread_spin_trylock, pthread_spin_unlock.
// Covers: pthread_spin_init, pthread_spin_lock, pthread_spin_trylock, pthread_spin_unlock
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>

static pthread_spinlock_t lock;
static int count;

static void *work(void *argument)
{
    for (int i = 0; i < 40; i++) {
        assert(pthread_spin_lock(&lock) == 0);
        int before = count;
        count = before + 1;
        assert(pthread_spin_unlock(&lock) == 0);
    }
    return argument;
}

static void *outsider(void *argument)
{
    assert(pthread_spin_trylock(&lock) == EBUSY);
    return argument;
}

int main(void)
{
    assert(pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE) == 0);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(count == 120);

    assert(pthread_spin_trylock(&lock) == 0);
    assert(pthread_create(&threads[0], NULL, outsider, NULL) == 0);
    assert(pthread_join(threads[0], NULL) == 0);
    assert(pthread_spin_unlock(&lock) == 0);
    assert(pthread_spin_destroy(&lock) == 0);
    return 0;
}
