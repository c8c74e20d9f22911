// About: two threads that step back for each other, which under some schedules never ends.
// Covers: sched_yield
// Outcome: exit 0 | livelock
// Steps: 300000
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static atomic_int wants[2];
static int n_meals;

static void *eat(void *argument)
{
    int me = *(int *)argument;
    for (int meal = 0; meal < 3; meal++) {
        for (;;) {
            wants[me] = 1;
            if (!wants[!me])
                break;
            wants[me] = 0; // After you.
            sched_yield();
        }
        n_meals++;
        wants[me] = 0;
    }
    return NULL;
}

int main(void)
{
    int names[2] = { 0, 1 };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, eat, &names[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(n_meals == 6);
    return 0;
}
