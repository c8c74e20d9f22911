// In the place of the sanitizer's library: prints which callback is called from where.
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>

#define HERE ((unsigned long)__builtin_return_address(0))

#define ACCESS(name) \
    void __tsan_##name(void *at) { (void)at; printf("site %lx\n", HERE); }

ACCESS(read1) ACCESS(read2) ACCESS(read4) ACCESS(read8) ACCESS(read16)
ACCESS(write1) ACCESS(write2) ACCESS(write4) ACCESS(write8) ACCESS(write16)
ACCESS(read_write4)

void __tsan_func_entry(void *to) { (void)to; printf("enter %lx\n", HERE); }
void __tsan_func_exit(void) { puts("leave"); }
void note(int first, int second, int third) { printf("note %d %d %d\n", first, second, third); }

static int say_base(struct dl_phdr_info *info, size_t bytes, void *data) {
    (void)bytes, (void)data;
    printf("base %lx\n", (unsigned long)info->dlpi_addr);
    return 1;
}

void __tsan_init(void) { dl_iterate_phdr(say_base, 0); }
