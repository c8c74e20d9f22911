// What is wrong: where the server's log stands is a file number and a position in that file.
// After a rotation, the number is one more and the position is zero again. A replica that asks
// for the number and then for the position may get a pair from before and after. The position
// that it gets is never the zero, which is raised under the same lock: both writes are guilty.
// Hunt: fails
// Kind: multi-variable
// Guilty: 5 lines
// Shows: exit

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_SIZE 40

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int file_number = 1;
static int position = 32;
static int file_ends[4] = {0, FILE_SIZE, 0, 0};
static int n_events;

static void log_event(int size)
{
    pthread_mutex_lock(&lock);
    if (position + size > FILE_SIZE) {
        file_ends[file_number] = position;
        file_number++; /* guilty */
        position = 0; /* guilty */
    }
    position += size; /* guilty */
    file_ends[file_number] = position;
    n_events++;
    pthread_mutex_unlock(&lock);
}

static int current_file(void)
{
    pthread_mutex_lock(&lock);
    int number = file_number; /* guilty */
    pthread_mutex_unlock(&lock);
    return number;
}

static int current_position(void)
{
    pthread_mutex_lock(&lock);
    int where = position; /* guilty */
    pthread_mutex_unlock(&lock);
    return where;
}

static void *replica(void *argument)
{
    int number = current_file();
    int where = current_position();

    /* What comes after this place in this file is still to be fetched. */
    if (where < 32 && number == 1) {
        fprintf(stderr, "asked for %d of file %d again\n", where, number);
        exit(6);
    }
    return argument;
}

static void *server(void *argument)
{
    for (int i = 0; i < 3; i++)
        log_event(4);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, replica, NULL);
    pthread_create(&threads[1], NULL, server, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return n_events == 3 && file_number == 2 && position == 4 && file_ends[1] == 40 ? 0 : 1;
}
