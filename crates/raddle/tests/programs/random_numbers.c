// About: getrandom, getentropy, arc4random, rand, random, rand_r, drand48, and /dev/urandom by
// descriptor and by file.
// Covers: arc4random_buf, arc4random_uniform, getentropy, getrandom
// Outcome: exit 0
//
// Different numbers each time they are asked for; under a seed, the same ones in each run.
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static void *draw(void *argument)
{
    unsigned char *bytes = argument;
    assert(getrandom(bytes, 16, 0) == 16);
    assert(getentropy(bytes + 16, 16) == 0);
    arc4random_buf(bytes + 32, 16);
    assert(arc4random_uniform(10) < 10);
    assert(rand() >= 0 && random() >= 0 && drand48() < 1.0);
    unsigned seed = 5, same = 5;
    assert(rand_r(&seed) == rand_r(&same));
    int device = open("/dev/urandom", O_RDONLY);
    assert(device >= 0 && read(device, bytes + 48, 16) == 16 && close(device) == 0);
    FILE *file = fopen("/dev/urandom", "r");
    assert(file && fread(bytes + 64, 15, 1, file) == 1 && !ferror(file) && !feof(file));
    bytes[79] = (unsigned char)fgetc(file);
    assert(fclose(file) == 0);
    return NULL;
}

int main(void)
{
    static unsigned char bytes[3][80];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, draw, bytes[i]) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 15; i++)
        for (int j = 0; j < i; j++)
            assert(memcmp(&bytes[0][0] + 16 * i, &bytes[0][0] + 16 * j, 16) != 0);
    srand(1);
    int first = rand();
    srand(1);
    assert(rand() == first);
    for (int i = 0; i < 80; i++)
        printf("%02x", bytes[2][i]);
    printf("\n");
    return 0;
}
