// What is wrong: a session is checked for being open in its thread's first steps, and used in
// the next ones. The janitor closes it after thousands of steps of other work: it has to do
// all of that within the two lines of the other thread. Choosing at random never gets there.
// Hunt: fails
// Kind: atomicity
// Guilty: 3 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>

#define N_FILES 64
#define N_ROUNDS 12

struct session {
    pthread_mutex_t lock;
    int open;
    int n_requests;
};

static struct session session = {PTHREAD_MUTEX_INITIALIZER, 1, 0};
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;
static int file_ages[N_FILES];
static int n_looks;

static int is_open(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    int open = session->open; /* guilty */
    pthread_mutex_unlock(&session->lock);
    return open;
}

static void request(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    assert(session->open); /* guilty */
    session->n_requests++;
    pthread_mutex_unlock(&session->lock);
}

static void *serve(void *argument)
{
    if (is_open(&session))
        request(&session);
    for (int i = 0; i < N_FILES; i++) {
        pthread_mutex_lock(&files_lock);
        n_looks += file_ages[i] > 3;
        pthread_mutex_unlock(&files_lock);
    }
    return argument;
}

static void *janitor(void *argument)
{
    for (int round = 0; round < N_ROUNDS; round++)
        for (int i = 0; i < N_FILES; i++) {
            pthread_mutex_lock(&files_lock);
            file_ages[i]++;
            pthread_mutex_unlock(&files_lock);
        }
    pthread_mutex_lock(&session.lock);
    session.open = 0; /* guilty */
    pthread_mutex_unlock(&session.lock);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, serve, NULL);
    pthread_create(&threads[1], NULL, janitor, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(session.n_requests <= 1 && !session.open);
    return 0;
}
