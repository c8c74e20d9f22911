// What is wrong: as in Mozilla, a script's prototype is set, and then the script is compiled
// with it. Each is done under the lock, but another thread may clear it in between.
// Isolate: rr
// Cause: atomicity
// Executions: 1 1 0 2
// Guilty: 3 lines

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct prototype {
    int n_slots;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct prototype object = {.n_slots = 5};
static struct prototype *current;

static void *load(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&lock);
    current = &object; /* guilty */
    pthread_mutex_unlock(&lock);
    usleep(2000);
    pthread_mutex_lock(&lock);
    int n = current->n_slots; /* guilty */
    pthread_mutex_unlock(&lock);
    printf("%d\n", n);
    return NULL;
}

static void *unload(void *argument)
{
    (void)argument;
    usleep(1000);
    pthread_mutex_lock(&lock);
    current = NULL; /* guilty */
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, load, NULL);
    pthread_create(&threads[1], NULL, unload, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
