// About: a read of freed memory, which natively goes unnoticed.
// Covers: calloc, free
// Outcome: exit 0 | use after free
// Must: use after free
#include <pthread.h>
#include <stdlib.h>

struct session {
    int refs;
    int user;
};

static struct session *session;
static volatile int last_user;

static void *log_user(void *argument)
{
    last_user = session->user;
    return argument;
}

static void *close_session(void *argument)
{
    free(session);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    session = calloc(1, sizeof *session);
    pthread_create(&threads[0], NULL, log_user, NULL);
    pthread_create(&threads[1], NULL, close_session, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
