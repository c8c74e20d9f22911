// What is wrong: as in Apache's buffered log writer, a message is copied behind what the
// buffer holds, and then the count is raised, without a lock. Two requests copy to the same
// place, and the count is raised by one of them only.
// Isolate: rr
// Cause: race, atomicity
// Guilty: 2 lines

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct log {
    char buffer[256];
    unsigned count;
};

static struct log log;
static unsigned n_requests;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void log_write(const char *message, useconds_t pause)
{
    unsigned length = strlen(message);
    unsigned count = log.count; /* guilty */
    memcpy(log.buffer + count, message, length);
    usleep(pause);
    log.count = count + length; /* guilty */
}

static void *serve(void *argument)
{
    long number = (long)argument;
    log_write("GET /index.html 200\n", number == 1 ? 2000 : 1000);
    pthread_mutex_lock(&lock);
    n_requests++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, serve, (void *)(i + 1));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(log.count == 40);
    return 0;
}
