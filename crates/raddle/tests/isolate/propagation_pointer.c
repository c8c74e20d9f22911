// What is wrong: a pointer is cleared by one thread between another one's test and its copy. The
// copy is handed on through three more variables, under a lock, until somebody uses it.
// Isolate: rr
// Cause: race
// Guilty: 3 lines

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct page {
    int number;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct page page = {.number = 12};
static struct page *current = &page;
static struct page *wanted, *queued, *shown;

static void hand_on(struct page **from, struct page **to)
{
    pthread_mutex_lock(&lock);
    *to = *from;
    pthread_mutex_unlock(&lock);
}

static void *choose(void *argument)
{
    (void)argument;
    if (current == NULL) /* guilty */
        return NULL;
    usleep(2000);
    struct page *chosen = current; /* guilty */
    pthread_mutex_lock(&lock);
    wanted = chosen;
    pthread_mutex_unlock(&lock);
    hand_on(&wanted, &queued);
    return NULL;
}

static void *show(void *argument)
{
    (void)argument;
    usleep(4000);
    hand_on(&queued, &shown);
    pthread_mutex_lock(&lock);
    printf("%d\n", shown->number);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, choose, NULL);
    pthread_create(&threads[1], NULL, show, NULL);
    usleep(1000);
    current = NULL; /* guilty */
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
