// Says: *** stack smashing detected ***: terminated
// Flags: -fstack-protector-all
#include <pthread.h>

static volatile int n_bytes = 32;

static void fill(volatile char *text)
{
    for (int i = 0; i < n_bytes; i++)
        text[i] = 'x';
}

static void *smash(void *argument)
{
    volatile char text[16];
    fill(text);
    return argument;
} // died

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, smash, 0);
    pthread_join(thread, 0);
}
