// What is wrong: a message goes into the inbox if its lock is free, and otherwise into an
// overflow list, which the author took for so seldom used that it needs no lock. The lock is
// busy only if threads interleave: a run of one thread after the other never comes here.
// Hunt: fails
// Kind: race, atomicity
// Guilty: 1 line
// Shows: assert

#include <assert.h>
#include <pthread.h>

#define N_SENDERS 3
#define N_MESSAGES 4

struct inbox {
    pthread_mutex_t lock;
    int messages[N_SENDERS * N_MESSAGES];
    int n_messages;
};

static struct inbox inbox = {.lock = PTHREAD_MUTEX_INITIALIZER};
static int overflow[N_SENDERS * N_MESSAGES];
static int n_overflow;

static void send(int message)
{
    if (pthread_mutex_trylock(&inbox.lock) == 0) {
        inbox.messages[inbox.n_messages] = message;
        inbox.n_messages++;
        pthread_mutex_unlock(&inbox.lock);
        return;
    }
    overflow[n_overflow++] = message; /* guilty */
}

static void *sender(void *argument)
{
    int base = *(const int *)argument;
    for (int i = 0; i < N_MESSAGES; i++)
        send(base + i);
    return NULL;
}

int main(void)
{
    static const int bases[N_SENDERS] = {10, 20, 30};
    pthread_t senders[N_SENDERS];
    int sum = 0;

    for (int i = 0; i < N_SENDERS; i++)
        pthread_create(&senders[i], NULL, sender, (void *)&bases[i]);
    for (int i = 0; i < N_SENDERS; i++)
        pthread_join(senders[i], NULL);

    for (int i = 0; i < inbox.n_messages; i++)
        sum += inbox.messages[i];
    for (int i = 0; i < n_overflow; i++)
        sum += overflow[i];
    assert(inbox.n_messages + n_overflow == N_SENDERS * N_MESSAGES);
    assert(sum == (10 + 20 + 30) * N_MESSAGES + 3 * 6);
    return 0;
}
