// About: memory that threads hand over by semaphores, so that there is only one order: accesses
// of all sizes, aligned and not, ranges, atomics, blocks that another thread frees.
// Covers: sem_init, sem_post, sem_wait
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, ROUNDS = 5, NUMBERS = 100 };

struct __attribute__((packed)) packed {
    uint8_t byte;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
};

static sem_t turns[THREADS];
static uint8_t bytes[NUMBERS];
static uint16_t twos[NUMBERS];
static uint32_t fours[NUMBERS], copied[NUMBERS];
static uint64_t eights[NUMBERS];
static long double sixteens[NUMBERS];
static struct packed packed;
static atomic_int n_rounds;
static uint32_t *block;

static void play(void)
{
    for (int i = 0; i < NUMBERS; i++) {
        bytes[i]++;
        twos[i] += bytes[i];
        fours[i] += twos[i];
        eights[i] += fours[i];
        sixteens[i] = sixteens[i] + 1;
        packed.byte++;
        packed.two++;
        packed.four++;
        packed.eight++;
    }
    memcpy(copied, fours, sizeof copied / 2);
    if (block) {
        assert(block[NUMBERS - 1] == copied[0]);
        free(block);
        block = NULL;
    } else {
        block = malloc(NUMBERS * sizeof *block);
        assert(block);
        for (int i = 0; i < NUMBERS; i++)
            block[i] = copied[0] + twos[0] + bytes[0] + 1;
    }
    n_rounds++;
}

static void *take_turns(void *argument)
{
    sem_t *mine = argument;
    sem_t *next = mine + 1 < turns + THREADS ? mine + 1 : turns;
    for (int i = 0; i < ROUNDS; i++) {
        assert(sem_wait(mine) == 0);
        play();
        assert(sem_post(next) == 0);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(sem_init(&turns[i], 0, 0) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, take_turns, &turns[i]) == 0);
    assert(sem_post(&turns[0]) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_rounds == THREADS * ROUNDS && bytes[NUMBERS - 1] == THREADS * ROUNDS);
    free(block);
    return 0;
}
