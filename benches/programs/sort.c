// Sorts numbers: four threads sort a quarter each, then two and then one merge the parts.
//
// The access pattern: reads and writes near each other that move through an array, almost
// no synchronization.

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, NUMBERS = 3000000, SMALL = 16 };

static uint32_t *numbers, *merged;

struct part {
    size_t low, middle, high;
};

static void insertion_sort(uint32_t *a, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint32_t x = a[i];
        size_t j = i;
        for (; j > 0 && a[j - 1] > x; j--)
            a[j] = a[j - 1];
        a[j] = x;
    }
}

static void quick_sort(uint32_t *a, size_t n)
{
    while (n > SMALL) {
        uint32_t first = a[0], middle = a[n / 2], last = a[n - 1];
        uint32_t low = first < middle ? first : middle;
        uint32_t high = first < middle ? middle : first;
        uint32_t pivot = last < low ? low : last > high ? high : last;
        size_t i = 0, j = n - 1;
        for (;;) {
            while (a[i] < pivot)
                i++;
            while (a[j] > pivot)
                j--;
            if (i >= j)
                break;
            uint32_t t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
        quick_sort(a, i);
        a += i;
        n -= i;
    }
    insertion_sort(a, n);
}

static void *sort_part(void *argument)
{
    struct part *part = argument;
    quick_sort(numbers + part->low, part->high - part->low);
    return NULL;
}

static void *merge_part(void *argument)
{
    struct part *part = argument;
    size_t i = part->low, j = part->middle, k = part->low;
    while (i < part->middle && j < part->high)
        merged[k++] = numbers[j] < numbers[i] ? numbers[j++] : numbers[i++];
    while (i < part->middle)
        merged[k++] = numbers[i++];
    while (j < part->high)
        merged[k++] = numbers[j++];
    memcpy(numbers + part->low, merged + part->low, (part->high - part->low) * sizeof *numbers);
    return NULL;
}

static void in_parallel(void *(*work)(void *), int n)
{
    pthread_t threads[THREADS];
    struct part parts[THREADS];
    size_t size = NUMBERS / n;
    for (int i = 0; i < n; i++) {
        parts[i] = (struct part){i * size, i * size + size / 2, (i + 1) * size};
        if (pthread_create(&threads[i], NULL, work, &parts[i]) != 0)
            abort();
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    numbers = malloc(NUMBERS * sizeof *numbers);
    merged = malloc(NUMBERS * sizeof *merged);
    if (!numbers || !merged)
        abort();
    uint32_t random = 1;
    uint64_t before = 0, after = 0;
    for (size_t i = 0; i < NUMBERS; i++) {
        random = random * 1664525 + 1013904223;
        numbers[i] = random >> 4;
        before += numbers[i];
    }

    in_parallel(sort_part, 4);
    in_parallel(merge_part, 2);
    in_parallel(merge_part, 1);

    for (size_t i = 0; i < NUMBERS; i++) {
        after += numbers[i];
        if (i > 0 && numbers[i - 1] > numbers[i]) {
            printf("not sorted at %zu\n", i);
            return 1;
        }
    }
    printf("sorted %d numbers, sum %llu\n", NUMBERS, (unsigned long long)after);
    free(numbers);
    free(merged);
    return before != after;
}
