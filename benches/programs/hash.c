// Counts words: four threads share a hash table whose buckets are guarded by striped locks.
//
// The access pattern: chains of nodes that lie anywhere, strings, and a lock per word.

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, BUCKETS = 4096, STRIPES = 64, WORDS = 700000, VOCABULARY = 20000 };

struct node {
    struct node *next;
    uint64_t hash;
    unsigned count;
    char word[20];
};

static struct node *buckets[BUCKETS];
static pthread_mutex_t locks[STRIPES];

static uint64_t hash_of(const char *word)
{
    uint64_t hash = 14695981039346656037u;
    for (; *word; word++)
        hash = (hash ^ (unsigned char)*word) * 1099511628211u;
    return hash ^ hash >> 32;
}

static void count(const char *word)
{
    uint64_t hash = hash_of(word);
    struct node **bucket = &buckets[hash % BUCKETS];
    pthread_mutex_t *lock = &locks[hash % STRIPES];

    pthread_mutex_lock(lock);
    struct node *node = *bucket;
    while (node && (node->hash != hash || strcmp(node->word, word) != 0))
        node = node->next;
    if (!node) {
        node = malloc(sizeof *node);
        if (!node)
            abort();
        node->next = *bucket;
        node->hash = hash;
        node->count = 0;
        strcpy(node->word, word);
        *bucket = node;
    }
    node->count++;
    pthread_mutex_unlock(lock);
}

// The words of a language are not equally frequent.
static unsigned next_number(uint32_t *random)
{
    *random = *random * 1664525 + 1013904223;
    uint64_t a = *random >> 16;
    *random = *random * 1664525 + 1013904223;
    uint64_t b = *random >> 16;
    return a * b * VOCABULARY >> 32;
}

static void spell(unsigned number, char *word)
{
    static const char *const syllables[] = {
        "ka", "lo", "mi", "ter", "un", "za", "pre", "sti",
    };
    for (number += 8; number > 0; number /= 8) {
        const char *syllable = syllables[number % 8];
        while (*syllable)
            *word++ = *syllable++;
    }
    *word = 0;
}

static void *work(void *argument)
{
    uint32_t random = *(uint32_t *)argument;
    char word[20];
    for (int i = 0; i < WORDS; i++) {
        spell(next_number(&random), word);
        count(word);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    uint32_t seeds[THREADS];
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&locks[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = i + 1;
        if (pthread_create(&threads[i], NULL, work, &seeds[i]) != 0)
            abort();
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    unsigned n_words = 0, n_different = 0, most = 0;
    for (int i = 0; i < BUCKETS; i++) {
        for (struct node *node = buckets[i], *next; node; node = next) {
            next = node->next;
            n_different++;
            n_words += node->count;
            if (node->count > most)
                most = node->count;
            free(node);
        }
    }
    printf("%u words, %u different, the most frequent %u times\n", n_words, n_different, most);
    return n_words != THREADS * WORDS;
}
