// What is wrong: `insert` leaves the new row's number in a variable that all connections of
// the database share, and its caller reads the number back from there. Another insert in
// between leaves its own (W-W-R), and the comment is filed under the wrong article.
// Hunt: fails
// Kind: atomicity
// Guilty: 2 lines
// Shows: exit

#include <pthread.h>
#include <stdio.h>

#define N_ROWS_MAX 32

struct row {
    int author;
    int parent;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct row rows[N_ROWS_MAX];
static int n_rows = 1;
static int last_insert_id;

static void insert(int author, int parent)
{
    pthread_mutex_lock(&lock);
    rows[n_rows].author = author;
    rows[n_rows].parent = parent;
    last_insert_id = n_rows++; /* guilty */
    pthread_mutex_unlock(&lock);
}

static int last_id(void)
{
    pthread_mutex_lock(&lock);
    int id = last_insert_id; /* guilty */
    pthread_mutex_unlock(&lock);
    return id;
}

static void *publish(void *argument)
{
    int author = *(const int *)argument;
    insert(author, 0);
    int article = last_id();
    insert(author, article);
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    static const int authors[3] = {101, 102, 103};
    int status = 0;

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, publish, (void *)&authors[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);

    for (int i = 1; i < n_rows; i++) {
        int parent = rows[i].parent;
        if (parent != 0 && rows[parent].author != rows[i].author) {
            fprintf(stderr, "%d comments on what %d wrote\n", rows[i].author,
                    rows[parent].author);
            status = 1;
        }
    }
    return status;
}
