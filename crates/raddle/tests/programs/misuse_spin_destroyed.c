// About: a spin lock that is taken after it was destroyed.
// Covers: pthread_spin_destroy, pthread_spin_init, pthread_spin_lock, pthread_spin_unlock
// Outcome: exit 0 | misuse
// Must: misuse
#include <pthread.h>

static pthread_spinlock_t lock;
static int n;

static void *first(void *argument)
{
    pthread_spin_lock(&lock);
    n++;
    pthread_spin_unlock(&lock);
    return argument;
}

static void *second(void *argument)
{
    pthread_spin_destroy(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_spin_init(&lock, 0);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
