// What is wrong: a pipeline reads, splits and indexes documents. The splitter closes its output
// queue and only then notes how many documents there were; the indexer, which ends when the
// queue is closed, may be at its average before that, and divides by zero.
// Hunt: fails
// Kind: order, multi-variable
// Guilty: 2 lines
// Shows: signal

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A queue of texts with an end. */

#define CAPACITY 4
#define TEXT_SIZE 32

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char texts[CAPACITY][TEXT_SIZE];
    int head;
    int count;
    int closed;
};

static struct queue documents = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static struct queue words = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void put(struct queue *queue, const char *text)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == CAPACITY)
        pthread_cond_wait(&queue->changed, &queue->lock);
    char *to = queue->texts[(queue->head + queue->count) % CAPACITY];
    for (int i = 0; (to[i] = text[i]) != 0; i++)
        ;
    queue->count++;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

static int take(struct queue *queue, char *text)
{
    int got = 0;

    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0 && !queue->closed)
        pthread_cond_wait(&queue->changed, &queue->lock);
    if (queue->count > 0) {
        memcpy(text, queue->texts[queue->head], TEXT_SIZE);
        queue->head = (queue->head + 1) % CAPACITY;
        queue->count--;
        got = 1;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return got;
}

static void close_queue(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = 1;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

/* What is known about the whole. */

static struct {
    pthread_mutex_t lock;
    int n_documents;
    int n_words;
    int n_letters;
    int average;
} statistics = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The index: words and how often they occur. */

#define N_ENTRIES 32

static struct {
    pthread_mutex_t lock;
    struct {
        char word[TEXT_SIZE];
        int count;
    } entries[N_ENTRIES];
    int n_entries;
} index_ = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void index_add(const char *word)
{
    unsigned hash = 0;

    for (const char *letter = word; *letter != 0; letter++)
        hash = hash * 31 + *letter;
    pthread_mutex_lock(&index_.lock);
    for (unsigned i = hash % N_ENTRIES;; i = (i + 1) % N_ENTRIES) {
        if (index_.entries[i].count == 0) {
            strcpy(index_.entries[i].word, word);
            index_.n_entries++;
        } else if (strcmp(index_.entries[i].word, word) != 0) {
            continue;
        }
        index_.entries[i].count++;
        break;
    }
    pthread_mutex_unlock(&index_.lock);
}

/* The stages. */

static void *read_documents(void *argument)
{
    static const char *const texts[] = {
        "the warp and the weft", "a raddle keeps order", "the comb spreads the warp",
        "threads in order",      "the weft goes across", "a thread breaks",
    };
    for (int round = 0; round < 3; round++)
        for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
            put(&documents, texts[i]);
    close_queue(&documents);
    return argument;
}

static void *split(void *argument)
{
    char text[TEXT_SIZE];
    int n_documents = 0;

    while (take(&documents, text)) {
        n_documents++;
        char *rest = text;
        for (char *word; (word = strsep(&rest, " ")) != NULL;) {
            put(&words, word);
            pthread_mutex_lock(&statistics.lock);
            statistics.n_letters += strlen(word);
            pthread_mutex_unlock(&statistics.lock);
        }
    }
    close_queue(&words);
    pthread_mutex_lock(&statistics.lock);
    statistics.n_documents = n_documents; /* guilty */
    pthread_mutex_unlock(&statistics.lock);
    return argument;
}

static void *index_words(void *argument)
{
    char word[TEXT_SIZE];

    while (take(&words, word)) {
        index_add(word);
        pthread_mutex_lock(&statistics.lock);
        statistics.n_words++;
        pthread_mutex_unlock(&statistics.lock);
    }
    pthread_mutex_lock(&statistics.lock);
    statistics.average = statistics.n_words / statistics.n_documents; /* guilty */
    pthread_mutex_unlock(&statistics.lock);
    return argument;
}

int main(void)
{
    void *(*const stages[3])(void *) = {read_documents, split, index_words};
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, stages[i], NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%d words in %d documents, %d different ones\n", statistics.n_words,
           statistics.n_documents, index_.n_entries);
    assert(statistics.n_documents == 18);
    assert(statistics.n_words == 72 && statistics.average == 4);
    return 0;
}
