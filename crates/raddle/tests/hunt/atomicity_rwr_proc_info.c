// What is wrong: as in MySQL's InnoDB (bug 3596), `show_processlist` looks whether a session
// has a `proc_info`, and then reads the pointer once more to print it. The session may have
// set it to NULL in between (R-W-R).
// Hunt: fails
// Kind: atomicity, race
// Guilty: 3 lines
// Shows: signal

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define N_SESSIONS 3

struct session {
    int id;
    const char *volatile proc_info;
    pthread_mutex_t lock;
    unsigned n_queries;
};

static struct session sessions[N_SESSIONS];
static char list[512];

static void run_query(struct session *session, const char *what)
{
    session->proc_info = what;
    pthread_mutex_lock(&session->lock);
    session->n_queries++;
    pthread_mutex_unlock(&session->lock);
    session->proc_info = NULL; /* guilty */
}

static void *serve(void *argument)
{
    struct session *session = argument;
    run_query(session, "sorting result");
    run_query(session, "sending data");
    return NULL;
}

static void *show_processlist(void *argument)
{
    size_t used = 0;
    for (int i = 0; i < N_SESSIONS; i++) {
        struct session *session = &sessions[i];
        pthread_mutex_lock(&session->lock);
        used += snprintf(list + used, sizeof list - used, "%d %u ", session->id,
                         session->n_queries);
        pthread_mutex_unlock(&session->lock);
        if (session->proc_info != NULL) { /* guilty */
            const char *info = session->proc_info; /* guilty */
            size_t length = strlen(info);
            memcpy(list + used, info, length + 1);
            used += length;
        }
    }
    return argument;
}

int main(void)
{
    pthread_t servers[N_SESSIONS], monitor;

    for (int i = 0; i < N_SESSIONS; i++) {
        sessions[i].id = i + 1;
        pthread_mutex_init(&sessions[i].lock, NULL);
    }
    for (int i = 0; i < N_SESSIONS; i++)
        pthread_create(&servers[i], NULL, serve, &sessions[i]);
    pthread_create(&monitor, NULL, show_processlist, NULL);

    for (int i = 0; i < N_SESSIONS; i++)
        pthread_join(servers[i], NULL);
    pthread_join(monitor, NULL);
    puts(list);
    return 0;
}
