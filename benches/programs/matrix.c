// Multiplies matrices block by block: four threads compute a band of rows each.
//
// The access pattern: regular strides at few places of the code, no synchronization.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, SIZE = 640, BLOCK = 32 };

static double a[SIZE][SIZE], b[SIZE][SIZE], c[SIZE][SIZE];

static void multiply_block(int i0, int j0, int k0)
{
    for (int i = i0; i < i0 + BLOCK; i++) {
        for (int j = j0; j < j0 + BLOCK; j++) {
            double sum = c[i][j];
            for (int k = k0; k < k0 + BLOCK; k++)
                sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
    }
}

static void *multiply_band(void *argument)
{
    int first = *(int *)argument;
    for (int i = first; i < first + SIZE / THREADS; i += BLOCK)
        for (int j = 0; j < SIZE; j += BLOCK)
            for (int k = 0; k < SIZE; k += BLOCK)
                multiply_block(i, j, k);
    return NULL;
}

int main(void)
{
    for (int i = 0; i < SIZE; i++) {
        for (int j = 0; j < SIZE; j++) {
            a[i][j] = i + j;
            b[i][j] = i - j;
        }
    }
    pthread_t threads[THREADS];
    int first[THREADS];
    for (int t = 0; t < THREADS; t++) {
        first[t] = t * (SIZE / THREADS);
        if (pthread_create(&threads[t], NULL, multiply_band, &first[t]) != 0)
            abort();
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);

    // With n = SIZE: the sum over k of (i + k) (k - j).
    double n = SIZE, sum = n * (n - 1) / 2, squares = (n - 1) * n * (2 * n - 1) / 6;
    for (int i = 0; i < SIZE; i++) {
        for (int j = 0; j < SIZE; j++) {
            if (c[i][j] != squares + (i - j) * sum - n * i * j) {
                printf("wrong at %d, %d: %f\n", i, j, c[i][j]);
                return 1;
            }
        }
    }
    printf("%d by %d, the last is %.0f\n", SIZE, SIZE, c[SIZE - 1][SIZE - 1]);
    return 0;
}
