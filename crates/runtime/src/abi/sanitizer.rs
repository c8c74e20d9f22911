//! The interface that all sanitizers share, for programs that call it themselves.
//!
//! Accesses by function are accesses. Questions about the heap are answered by libc's allocator.
//! Whatever configures reports or collects coverage is accepted and has no effect: raddle reports
//! from outside the target, where no callback of the program's can run.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

use libc::size_t;
use raddle_trace::record::{Kind, Lock};

use super::access::{head, slow_access};
use crate::export::export;
use crate::real::real;
use crate::sched::SCHED;
use crate::sched::object::Object;
use crate::sched::thread::{NEVER, Wait};
use crate::{hook, sys, tls};

/// A load: the access is announced, then performed.
macro_rules! loads {
    ($($name:ident => $bytes:expr, $load:literal;)*) => {$(
        /// Loads from any address.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "mov rdx, qword ptr [rsp + 8]",
                "movabs rsi, {head}",
                "call {slow}",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                $load,
                "ret",
                ".cfi_endproc",
                head = const head(Kind::Read, $bytes),
                slow = sym slow_access,
            )
        }
    )*};
}

loads! {
    __sanitizer_unaligned_load16 => 2, "movzx eax, word ptr [rdi]";
    __sanitizer_unaligned_load32 => 4, "mov eax, dword ptr [rdi]";
    __sanitizer_unaligned_load64 => 8, "mov rax, qword ptr [rdi]";
}

/// A store: the access is announced, then performed.
macro_rules! stores {
    ($($name:ident => $bytes:expr, $store:literal;)*) => {$(
        /// Stores to any address.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "sub rsp, 24",
                ".cfi_adjust_cfa_offset 24",
                "mov qword ptr [rsp], rdi",
                "mov qword ptr [rsp + 8], rsi",
                "mov rdx, qword ptr [rsp + 24]",
                "movabs rsi, {head}",
                "call {slow}",
                "mov rdi, qword ptr [rsp]",
                "mov rsi, qword ptr [rsp + 8]",
                "add rsp, 24",
                ".cfi_adjust_cfa_offset -24",
                $store,
                "ret",
                ".cfi_endproc",
                head = const head(Kind::Write, $bytes),
                slow = sym slow_access,
            )
        }
    )*};
}

stores! {
    __sanitizer_unaligned_store16 => 2, "mov word ptr [rdi], si";
    __sanitizer_unaligned_store32 => 4, "mov dword ptr [rdi], esi";
    __sanitizer_unaligned_store64 => 8, "mov qword ptr [rdi], rsi";
}

export! {
    __sanitizer_print_stack_trace => print_stack;
    __sanitizer_acquire_crash_state => first_crash;
    __sanitizer_get_report_path => report_path;
    __sanitizer_symbolize_pc => symbolize;
    __sanitizer_symbolize_global => symbolize;
    __sanitizer_get_estimated_allocated_size => estimated_size;
    __sanitizer_get_allocated_size => allocated_size;
    __sanitizer_get_ownership => is_allocated;
    __tsan_testonly_barrier_init => barrier_init;
    __tsan_testonly_barrier_wait => barrier_wait;
}

/// The frames that a stack trace shows.
const FRAMES_MAX: usize = 64;

/// Prints the stack to standard error, as libc does it.
extern "C" fn print_stack() {
    let mut frames = [0usize; FRAMES_MAX];
    tls::set(tls::QUIET, tls::get(tls::QUIET) + 1);
    let n =
        real!(backtrace(frames.as_mut_ptr() => *mut usize, FRAMES_MAX as c_int => c_int) -> c_int);
    real!(backtrace_symbols_fd(frames.as_ptr() => *const usize, n => c_int, 2 => c_int));
    tls::set(tls::QUIET, tls::get(tls::QUIET) - 1);
}

/// 1 for the first thread that crashes, which may then print.
extern "C" fn first_crash() -> c_int {
    static CRASHED: AtomicU32 = AtomicU32::new(0);
    c_int::from(CRASHED.swap(1, Ordering::Relaxed) == 0)
}

extern "C" fn report_path() -> *const u8 {
    c"".as_ptr().cast()
}

/// Nothing is symbolized here: the text is empty.
extern "C" fn symbolize(_: *const c_void, _: *const u8, into: *mut u8, room: size_t) {
    if room > 0 {
        // SAFETY: the program's buffer of `room` bytes.
        unsafe { *into = 0 };
    }
}

extern "C" fn estimated_size(bytes: size_t) -> size_t {
    bytes
}

extern "C" fn allocated_size(block: *mut c_void) -> size_t {
    if block.is_null() {
        return 0;
    }
    real!(malloc_usable_size(block => *mut c_void) -> size_t)
}

extern "C" fn is_allocated(block: *mut c_void) -> c_int {
    c_int::from(!block.is_null())
}

/// A barrier of ThreadSanitizer's own tests, which orders no events for the analysis. The word
/// holds the number of threads in its upper half, and how many have arrived in its lower half.
extern "C" fn barrier_init(at: *mut u64, n: u32) {
    // SAFETY: the program's barrier, which nobody uses yet.
    unsafe { at.write(u64::from(n) << 32) };
    if hook::me().is_some() {
        let object = Object { count: n, ..Object::new(Lock::Barrier) };
        SCHED.lock().objects.insert(at as u64, object);
    }
}

extern "C" fn barrier_wait(at: *mut u64) {
    let pc = hook::caller();
    let Some(me) = hook::me() else { return wait_free(at) };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    let mut sched = SCHED.lock();
    let object = sched.object(at as u64, Lock::Barrier);
    object.arrived += 1;
    let round = object.round;
    if object.arrived >= object.count {
        object.arrived = 0;
        object.round += 1;
        sched.poke(me);
        return;
    }
    drop(sched);
    hook::sync(me, pc, Wait::Barrier(at as u64, round), NEVER);
}

/// The barrier among threads in parallel.
fn wait_free(at: *mut u64) {
    // SAFETY: the program's barrier; its two halves are aligned words.
    let [arrived, n] = unsafe { &*at.cast::<[AtomicU32; 2]>() };
    let n = n.load(Ordering::Relaxed).max(1);
    let round = arrived.fetch_add(1, Ordering::SeqCst) / n;
    loop {
        let now = arrived.load(Ordering::SeqCst);
        if now / n != round {
            break;
        }
        sys::futex_wait(arrived, now, None, false);
    }
    sys::syscall!(
        libc::SYS_futex,
        arrived.as_ptr(),
        libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
        i32::MAX
    );
}

/// Functions that a program may call and that do nothing here.
macro_rules! idle {
    ($($name:ident)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        extern "C" fn $name() -> u64 {
            0
        }
    )*};
}

idle! {
    __sanitizer_set_death_callback __sanitizer_set_report_path __sanitizer_set_report_fd
    __sanitizer_report_error_summary __sanitizer_sandbox_on_notify
    __sanitizer_get_module_and_offset_for_pc __sanitizer_install_malloc_and_free_hooks
    __sanitizer_get_current_allocated_bytes __sanitizer_get_free_bytes __sanitizer_get_heap_size
    __sanitizer_get_unmapped_bytes
    __sanitizer_cov_8bit_counters_init __sanitizer_cov_bool_flag_init __sanitizer_cov_dump
    __sanitizer_cov_pcs_init __sanitizer_cov_reset __sanitizer_cov_trace_cmp
    __sanitizer_cov_trace_cmp1 __sanitizer_cov_trace_cmp2 __sanitizer_cov_trace_cmp4
    __sanitizer_cov_trace_cmp8 __sanitizer_cov_trace_const_cmp1 __sanitizer_cov_trace_const_cmp2
    __sanitizer_cov_trace_const_cmp4 __sanitizer_cov_trace_const_cmp8 __sanitizer_cov_trace_div4
    __sanitizer_cov_trace_div8 __sanitizer_cov_trace_gep __sanitizer_cov_trace_pc_guard
    __sanitizer_cov_trace_pc_guard_init __sanitizer_cov_trace_pc_indir
    __sanitizer_cov_trace_switch __sanitizer_dump_coverage
    __sanitizer_dump_trace_pc_guard_coverage
}
