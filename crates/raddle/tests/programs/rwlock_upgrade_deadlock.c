// About: two readers that both want to become the writer.
// Covers: pthread_rwlock_rdlock, pthread_rwlock_unlock, pthread_rwlock_wrlock
// Outcome: deadlock
#include <pthread.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int cached;

static void *look_up(void *argument)
{
    pthread_rwlock_rdlock(&lock);
    if (!cached) {
        pthread_rwlock_wrlock(&lock);
        cached = 1;
        pthread_rwlock_unlock(&lock);
    }
    pthread_rwlock_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, look_up, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
