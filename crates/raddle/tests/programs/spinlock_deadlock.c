// About: spin locks taken in opposite orders.
// Covers: pthread_spin_init, pthread_spin_lock, pthread_spin_unlock
// Outcome: exit 0 | deadlock
// Must: deadlock
#include <pthread.h>

static pthread_spinlock_t a, b;
static int count;

static void both(pthread_spinlock_t *first, pthread_spinlock_t *second)
{
    for (int i = 0; i < 5; i++) {
        pthread_spin_lock(first);
        pthread_spin_lock(second);
        count++;
        pthread_spin_unlock(second);
        pthread_spin_unlock(first);
    }
}

static void *forth(void *argument)
{
    both(&a, &b);
    return argument;
}

static void *back(void *argument)
{
    both(&b, &a);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_spin_init(&a, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_init(&b, PTHREAD_PROCESS_PRIVATE);
    pthread_create(&threads[0], NULL, forth, NULL);
    pthread_create(&threads[1], NULL, back, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return count != 10;
}
