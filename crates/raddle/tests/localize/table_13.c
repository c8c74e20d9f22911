// What is wrong: row 13 of Table 1 of the LOCON paper, two variables: one thread writes the text
// and then the version; the other one reads the version and then the text. Inconsistent results
// due to improper reads: the new text with the old version. The reader leaves out the text if
// the office has closed, so that no two pairs always go together.
// Localize: III pc
// Pairs: 2

#include <assert.h>
#include <pthread.h>

static int text;
static volatile int version;
static int closed;
static int main_counts[6];
static int writer_counts[6];
static int reader_counts[6];

static void work(int *counts)
{
    for (int i = 0; i < 6; i++)
        counts[i]++;
}

static void *write_text(void *argument)
{
    work(writer_counts);
    text = 5; /* head 1 */
    work(writer_counts);
    version = 1; /* tail 2 */
    return argument;
}

static void *read_text(void *argument)
{
    (void)argument;
    work(reader_counts);
    int seen_version = version; /* head 2 */
    if (closed)
        return NULL;
    work(reader_counts);
    int seen_text = text; /* tail 1 */
    return (void *)(long)(seen_version == 0 && seen_text == 5);
}

int main(void)
{
    pthread_t threads[2];
    void *wrong;

    pthread_create(&threads[0], NULL, write_text, NULL);
    pthread_create(&threads[1], NULL, read_text, NULL);
    work(main_counts);
    work(main_counts);
    closed = 1;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], &wrong);
    assert(!wrong);
    return 0;
}
