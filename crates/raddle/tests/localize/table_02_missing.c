// What is wrong: row 2 of Table 1 of the LOCON paper, second case: as table_02.c, but the
// client notices at once and stops the program, so that the port is never written in a failing
// run: it has no pair at all of what is to blame.
// Localize: II
// Pairs: 1

#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int port;
static int n_clients;
static int n_options;

static void *configure(void *argument)
{
    n_options++;
    pthread_mutex_lock(&lock);
    port = 8080; /* tail */
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *client(void *argument)
{
    n_clients++;
    pthread_mutex_lock(&lock);
    int connected_to = port; /* head */
    assert(connected_to == 8080);
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, configure, NULL);
    pthread_create(&threads[1], NULL, client, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);

    return 0;
}
