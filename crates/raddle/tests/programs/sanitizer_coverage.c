// About: the callbacks of coverage instrumentation, which have no effect.
// Covers: __sanitizer_cov_8bit_counters_init, __sanitizer_cov_bool_flag_init, __sanitizer_cov_dump
// Covers: __sanitizer_cov_pcs_init, __sanitizer_cov_reset, __sanitizer_cov_trace_cmp
// Covers: __sanitizer_cov_trace_cmp1, __sanitizer_cov_trace_cmp2, __sanitizer_cov_trace_cmp4
// Covers: __sanitizer_cov_trace_cmp8, __sanitizer_cov_trace_const_cmp1, __sanitizer_cov_trace_const_cmp2
// Covers: __sanitizer_cov_trace_const_cmp4, __sanitizer_cov_trace_const_cmp8, __sanitizer_cov_trace_div4
// Covers: __sanitizer_cov_trace_div8, __sanitizer_cov_trace_gep, __sanitizer_cov_trace_pc_guard
// Covers: __sanitizer_cov_trace_pc_guard_init, __sanitizer_cov_trace_pc_indir, __sanitizer_cov_trace_switch
// Covers: __sanitizer_dump_coverage, __sanitizer_dump_trace_pc_guard_coverage
// Outcome: exit 0
// Flags: -Wno-builtin-declaration-mismatch
#include <stddef.h>

// Weak, so that the program links without instrumentation as well.
__attribute__((weak)) void __sanitizer_cov_8bit_counters_init(void);
__attribute__((weak)) void __sanitizer_cov_bool_flag_init(void);
__attribute__((weak)) void __sanitizer_cov_dump(void);
__attribute__((weak)) void __sanitizer_cov_pcs_init(void);
__attribute__((weak)) void __sanitizer_cov_reset(void);
__attribute__((weak)) void __sanitizer_cov_trace_cmp(void);
__attribute__((weak)) void __sanitizer_cov_trace_cmp1(void);
__attribute__((weak)) void __sanitizer_cov_trace_cmp2(void);
__attribute__((weak)) void __sanitizer_cov_trace_cmp4(void);
__attribute__((weak)) void __sanitizer_cov_trace_cmp8(void);
__attribute__((weak)) void __sanitizer_cov_trace_const_cmp1(void);
__attribute__((weak)) void __sanitizer_cov_trace_const_cmp2(void);
__attribute__((weak)) void __sanitizer_cov_trace_const_cmp4(void);
__attribute__((weak)) void __sanitizer_cov_trace_const_cmp8(void);
__attribute__((weak)) void __sanitizer_cov_trace_div4(void);
__attribute__((weak)) void __sanitizer_cov_trace_div8(void);
__attribute__((weak)) void __sanitizer_cov_trace_gep(void);
__attribute__((weak)) void __sanitizer_cov_trace_pc_guard(void);
__attribute__((weak)) void __sanitizer_cov_trace_pc_guard_init(void);
__attribute__((weak)) void __sanitizer_cov_trace_pc_indir(void);
__attribute__((weak)) void __sanitizer_cov_trace_switch(void);
__attribute__((weak)) void __sanitizer_dump_coverage(void);
__attribute__((weak)) void __sanitizer_dump_trace_pc_guard_coverage(void);

int main(void)
{
    void (*callbacks[])(void) = {
        __sanitizer_cov_8bit_counters_init,
        __sanitizer_cov_bool_flag_init,
        __sanitizer_cov_dump,
        __sanitizer_cov_pcs_init,
        __sanitizer_cov_reset,
        __sanitizer_cov_trace_cmp,
        __sanitizer_cov_trace_cmp1,
        __sanitizer_cov_trace_cmp2,
        __sanitizer_cov_trace_cmp4,
        __sanitizer_cov_trace_cmp8,
        __sanitizer_cov_trace_const_cmp1,
        __sanitizer_cov_trace_const_cmp2,
        __sanitizer_cov_trace_const_cmp4,
        __sanitizer_cov_trace_const_cmp8,
        __sanitizer_cov_trace_div4,
        __sanitizer_cov_trace_div8,
        __sanitizer_cov_trace_gep,
        __sanitizer_cov_trace_pc_guard,
        __sanitizer_cov_trace_pc_guard_init,
        __sanitizer_cov_trace_pc_indir,
        __sanitizer_cov_trace_switch,
        __sanitizer_dump_coverage,
        __sanitizer_dump_trace_pc_guard_coverage,
    };
    for (size_t i = 0; i < sizeof callbacks / sizeof *callbacks; i++)
        if (callbacks[i])
            callbacks[i]();
    return 0;
}
