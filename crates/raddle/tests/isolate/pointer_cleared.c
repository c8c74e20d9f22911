// What is wrong: as in MySQL, one thread looks whether a session has a `proc_info` and then
// reads it again to use it; the session clears it in between.
// Isolate: rr
// Cause: race
// Executions: 1 1 1 0
// Guilty: 2 lines

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct session {
    int id;
    const char *proc_info;
};

static struct session session = {.id = 7};

static void *show(void *argument)
{
    (void)argument;
    size_t length = 0;
    if (session.proc_info != NULL) { /* guilty */
        usleep(2000);
        length = strlen(session.proc_info);
    }
    printf("%zu\n", length);
    return NULL;
}

int main(void)
{
    pthread_t reader;
    session.proc_info = "sorting result";
    pthread_create(&reader, NULL, show, NULL);
    usleep(1000);
    session.proc_info = NULL; /* guilty */
    pthread_join(reader, NULL);
    return 0;
}
