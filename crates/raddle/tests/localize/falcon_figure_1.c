// What is wrong: figure 1 of the Falcon paper: three threads, and it fails where the second one
// comes between the first one's write and its last read, for x and for y: two patterns W-W-R, and
// both are needed. The numbers of the paper's statements are in the comments.
// Pattern: W1-W2-R1

#include <assert.h>
#include <pthread.h>

static int x;
static int y;
static int counts[3][4];

static void work(int thread)
{
    for (int i = 0; i < 4; i++)
        counts[thread][i]++;
}

static void *first(void *argument)
{
    if (x == 0) x = 1; /* falcon */             /* 1 */
    if (y == 0) y = 1; /* falcon */             /* 2 */
    for (int i = 0; i < 3; i++)
        work(0);
    assert(!(x == 2 && y == 2)); /* falcon */   /* 3 */
    return argument;
}

static void *second(void *argument)
{
    if (x == 1) x = 2; /* falcon */             /* 4 */
    work(1);
    if (y == 1) y = 2; /* falcon */             /* 5 */
    return argument;
}

static void *third(void *argument)
{
    if (x == 1) x = 3;                          /* 6 */
    work(2);
    if (y == 1) y = 3;                          /* 7 */
    return argument;
}

int main(void)
{
    pthread_t threads[3];

    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_create(&threads[2], NULL, third, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
