/*
 * Component: text layout. A document's text is divided into frames, each with
 * a start offset and a length. A reflow thread re-breaks the lines while paint
 * threads draw the frames and a spell checker counts words.
 *
 * Bug (multi-variable atomicity violation, cf. Mozilla nsTextFrame
 * mContentOffset/mContentLength): reflow stores the new offset and the new
 * length of a frame one after the other, and the painter reads them one after
 * the other. A painter between the two stores (or a reflow between the two
 * loads) combines the offset of one layout with the length of another and
 * draws beyond the end of the text.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define FRAMES 3
#define PAINTERS 2
#define PAINTS 4
#define REFLOWS 3

struct text_frame {
    int offset;
    int length;
    atomic_int dirty;
};

struct document {
    pthread_rwlock_t text_lock;
    char text[64];
    int text_len;
    struct text_frame frame[FRAMES];
    atomic_int painted;
    atomic_int words;
};

static struct document doc = {
    .text_lock = PTHREAD_RWLOCK_INITIALIZER,
    .text = "the quick brown fox jumps over a lazy dog",
};

/* line break positions of the available layouts */
static const int layout[2][FRAMES + 1] = {
    { 0, 4, 16, 41 },
    { 0, 20, 32, 41 },
};

static void frame_set_range(struct text_frame *f, int offset, int length)
{
    f->offset = offset; /* guilty */
    f->length = length; /* guilty */
    atomic_store(&f->dirty, 1);
}

static void reflow(struct document *d, const int *breaks)
{
    for (int i = 0; i < FRAMES; i++)
        frame_set_range(&d->frame[i], breaks[i], breaks[i + 1] - breaks[i]);
}

static void draw(struct document *d, int from, int n)
{
    int glyphs = 0;

    pthread_rwlock_rdlock(&d->text_lock);
    assert(from + n <= d->text_len);
    for (int i = from; i < from + n; i++)
        if (d->text[i] != ' ')
            glyphs++;
    pthread_rwlock_unlock(&d->text_lock);
    atomic_fetch_add(&d->painted, glyphs);
}

static void paint_frame(struct document *d, struct text_frame *f)
{
    int from = f->offset; /* guilty */
    int n = f->length; /* guilty */
    draw(d, from, n);
    atomic_store(&f->dirty, 0);
}

static void *paint_main(void *arg)
{
    (void)arg;
    for (int i = 0; i < PAINTS; i++) {
        for (int k = 0; k < FRAMES; k++)
            paint_frame(&doc, &doc.frame[k]);
    }
    return NULL;
}

static void *reflow_main(void *arg)
{
    (void)arg;
    for (int i = 1; i <= REFLOWS; i++)
        reflow(&doc, layout[i % 2]);
    return NULL;
}

static void *spell_main(void *arg)
{
    (void)arg;
    pthread_rwlock_wrlock(&doc.text_lock);
    for (int i = 0; i < doc.text_len; i++) {
        if (doc.text[i] == ' ' || i + 1 == doc.text_len)
            atomic_fetch_add(&doc.words, 1);
    }
    doc.text[0] = 'T';
    pthread_rwlock_unlock(&doc.text_lock);
    return NULL;
}

int main(void)
{
    pthread_t tid[PAINTERS + 2];

    doc.text_len = (int)strlen(doc.text);
    reflow(&doc, layout[0]);
    pthread_create(&tid[PAINTERS], NULL, reflow_main, NULL);
    pthread_create(&tid[PAINTERS + 1], NULL, spell_main, NULL);
    for (int i = 0; i < PAINTERS; i++)
        pthread_create(&tid[i], NULL, paint_main, NULL);
    for (int i = 0; i < PAINTERS + 2; i++)
        pthread_join(tid[i], NULL);
    assert(atomic_load(&doc.words) == 9);
    printf("painted %d glyphs, %d words\n", atomic_load(&doc.painted), atomic_load(&doc.words));
    return 0;
}
