// What is wrong: a print spooler gives out job numbers with `next_job++` and without a lock.
// Two clients that submit at once get the same number, and the later job overwrites the
// other one in the table.
// Hunt: fails
// Kind: race, atomicity
// Guilty: 1 line
// Shows: exit

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define N_CLIENTS 3
#define N_JOBS_MAX 32

struct job {
    int owner;
    char title[24];
};

static struct job spool[N_JOBS_MAX];
static int next_job;

static int submit(int owner, const char *title)
{
    int number = next_job++; /* guilty */
    spool[number].owner = owner;
    strncpy(spool[number].title, title, sizeof spool[number].title - 1);
    return number;
}

static void *client(void *argument)
{
    int owner = *(const int *)argument;
    submit(owner, "letter");
    submit(owner, "invoice");
    return NULL;
}

int main(void)
{
    pthread_t threads[N_CLIENTS];
    int owners[N_CLIENTS];
    int n_found = 0;

    for (int i = 0; i < N_CLIENTS; i++) {
        owners[i] = i + 1;
        pthread_create(&threads[i], NULL, client, &owners[i]);
    }
    for (int i = 0; i < N_CLIENTS; i++)
        pthread_join(threads[i], NULL);

    for (int i = 0; i < N_JOBS_MAX; i++)
        if (spool[i].owner != 0)
            n_found++;
    if (n_found != 2 * N_CLIENTS) {
        fprintf(stderr, "%d jobs of %d are in the spool\n", n_found, 2 * N_CLIENTS);
        return 3;
    }
    return 0;
}
