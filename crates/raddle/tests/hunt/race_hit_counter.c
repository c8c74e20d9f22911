// What is wrong: the workers of a web server count hits per page without a lock. Two workers
// that serve the same page at once read the same count, and one of the two hits is lost.
// Hunt: fails
// Kind: race, atomicity
// Guilty: 1 line
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define N_PAGES 8
#define N_WORKERS 2
#define N_REQUESTS 6

struct page {
    const char *path;
    unsigned n_hits;
};

static struct page pages[N_PAGES] = {
    {"/", 0},         {"/about", 0}, {"/news", 0},   {"/login", 0},
    {"/search", 0},   {"/cart", 0},  {"/images", 0}, {"/contact", 0},
};

static pthread_mutex_t bytes_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long n_bytes_sent;

/* Who asks for what, per worker: only the news are asked for by both. */
static const int requests[N_WORKERS][N_REQUESTS] = {
    {0, 0, 1, 2, 3, 1},
    {4, 2, 5, 6, 7, 7},
};

static void serve(struct page *page)
{
    page->n_hits++; /* guilty */

    pthread_mutex_lock(&bytes_lock);
    n_bytes_sent += 512;
    pthread_mutex_unlock(&bytes_lock);
}

static void *work(void *argument)
{
    const int *todo = argument;
    for (int i = 0; i < N_REQUESTS; i++)
        serve(&pages[todo[i]]);
    return NULL;
}

int main(void)
{
    pthread_t workers[N_WORKERS];
    unsigned n_hits = 0;

    for (int i = 0; i < N_WORKERS; i++)
        pthread_create(&workers[i], NULL, work, (void *)requests[i]);
    for (int i = 0; i < N_WORKERS; i++)
        pthread_join(workers[i], NULL);

    for (int i = 0; i < N_PAGES; i++)
        n_hits += pages[i].n_hits;
    printf("%u hits, %lu bytes\n", n_hits, n_bytes_sent);
    assert(n_bytes_sent == 512ul * N_WORKERS * N_REQUESTS);
    assert(n_hits == N_WORKERS * N_REQUESTS);
    return 0;
}
