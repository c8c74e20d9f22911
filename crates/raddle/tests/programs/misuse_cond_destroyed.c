// About: a condition variable that is signalled after it was destroyed.
// Covers: pthread_cond_destroy, pthread_cond_signal, Destroy
// Outcome: exit 0 | misuse
// Must: misuse
#include <pthread.h>

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *first(void *argument)
{
    pthread_cond_signal(&changed);
    return argument;
}

static void *second(void *argument)
{
    pthread_cond_destroy(&changed);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    (void)changed;
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
