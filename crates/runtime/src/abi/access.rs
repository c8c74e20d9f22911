//! Plain accesses: the fast path, which nothing else may slow down.
//!
//! Without a trace an access is a countdown, six instructions including the return: the mode, its
//! branch, the address of the thread's words, the countdown, its branch. Once the program has
//! freed memory, five more check whether the address lies where freed blocks do
//! ([`crate::freed`]), and another five whether it is in one. With a trace, a lookup in the table
//! of [`crate::repeats`] follows: an access that only repeats others is counted; any other
//! appends a record with two stores, moves the cursor, and checks for the end of the chunk. With
//! histories, a lookup of the memory's state and of the transition from it follows
//! ([`crate::history`]). Everything else happens in [`crate::hook::slow_access`].

use core::arch::naked_asm;

use raddle_trace::control::Lane;
use raddle_trace::history::{ADDRESS_BITS, SPLIT};
use raddle_trace::record::{Kind, SIZE, VOLATILE, VPTR};

use crate::export::raddle_cancel;
use crate::{freed, history, hook, lane, repeats, shared, tls};

/// [`hook::slow_access`], followed by a cancellation point for threads with asynchronous
/// cancellation.
#[unsafe(naked)]
pub(super) extern "C" fn slow_access() {
    naked_asm!(
        ".cfi_startproc",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {slow}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "mov rax, qword ptr [rip + raddle_tls@GOTTPOFF]",
        "cmp qword ptr fs:[rax + {cancel}], 0",
        "jne {cancelled}",
        "ret",
        ".cfi_endproc",
        slow = sym hook::slow_access,
        cancel = const tls::CANCEL,
        cancelled = sym raddle_cancel,
    )
}

/// Continues at `$freed` if the address in rdi is in a freed block, falls through if it only lies
/// where such blocks do, and otherwise continues at `$elsewhere`.
macro_rules! unless_freed {
    ($elsewhere:literal, $freed:literal) => {
        concat!(
            "mov rcx, rdi\n",
            "sub rcx, qword ptr [rip + {low}]\n",
            "cmp rcx, qword ptr [rip + {bytes}]\n",
            "jae ",
            $elsewhere,
            "\nshr rcx, 4\n",
            "add rcx, qword ptr [rip + {shadow}]\n",
            "cmp byte ptr [rcx], 0\n",
            "jne ",
            $freed,
        )
    };
}

/// The body of an access callback. The address is in rdi; `$head` is the record's first word
/// without the address, `$shift` the logarithm of the size.
macro_rules! access {
    ($head:expr, $shift:expr) => {
        naked_asm!(
            "cmp byte ptr [rip + {mode}], {count}",
            "jne 2f",
            "4:",
            "mov rax, qword ptr [rip + raddle_tls@GOTTPOFF]",
            "sub qword ptr fs:[rax + {countdown}], 1",
            "js 3f",
            "ret",
            "2:",
            // The only larger mode watches freed memory.
            "jna 5f",
            unless_freed!("4b", "3f"),
            "jmp 4b",
            "5:",
            "cmp byte ptr [rip + {mode}], {collects}",
            "jae 9f",
            "cmp byte ptr [rip + {mode}], {trace}",
            "jne 3f",
            unless_freed!("6f", "3f"),
            "6:",
            "mov rax, qword ptr [rip + raddle_tls@GOTTPOFF]",
            "sub qword ptr fs:[rax + {countdown}], 1",
            "js 3f",
            "mov rdx, qword ptr fs:[rax + {lane}]",
            "mov r9, qword ptr [rsp]",
            // A wild pointer must not overwrite the kind.
            "shl rdi, 16",
            "shr rdi, 16",
            "movabs r8, {head}",
            "or r8, rdi",
            // The slot in the table.
            "mov r10d, {spread}",
            "imul r10, r9",
            "shr r10, {spread_shift}",
            "shl rdi, {unit_shift}",
            "add r10, rdi",
            "shr rdi, {fold_shift}",
            "add rdi, r10",
            "and edi, {offsets}",
            "lea r10, [rip + {table}]",
            "add rdi, r10",
            // What the slot holds if this is a repeat.
            "mov r10, qword ptr [rip + {stamp}]",
            "xor r10, r9",
            "cmp qword ptr [rdi], r8",
            "jne 7f",
            "mov r11, qword ptr [rdi + 8]",
            "xor r11, r10",
            "jnz 4f",
            "add qword ptr [rdx + {repeats}], 1",
            "ret",
            "7:",
            "movabs rcx, {second}",
            "jmp 8f",
            "4:",
            "movabs rcx, {second}",
            "cmp r11, rcx",
            "cmove rcx, qword ptr [rip + {taken}]",
            "8:",
            "xor r10, rcx",
            "mov qword ptr [rdi], r8",
            "mov qword ptr [rdi + 8], r10",
            "5:",
            "mov r10, qword ptr [rdx + {repeats}]",
            "mov r11, r10",
            "sub r11, qword ptr [rdx + {told}]",
            "cmp r11, 0xffff",
            "ja 6f",
            "mov rcx, qword ptr [rdx]",
            "shl r11, 48",
            "or r9, r11",
            "mov qword ptr [rcx], r8",
            "mov qword ptr [rcx + 8], r9",
            "add rcx, 16",
            "mov qword ptr [rdx], rcx",
            "mov qword ptr [rdx + {told}], r10",
            "cmp rcx, qword ptr [rdx + 8]",
            "jae {full}",
            "ret",
            "6:",
            "push r8",
            "push r9",
            "push rdx",
            "call {many}",
            "pop rdx",
            "pop r9",
            "pop r8",
            "jmp 5b",
            "9:",
            "mov rax, qword ptr [rip + raddle_tls@GOTTPOFF]",
            "sub qword ptr fs:[rax + {countdown}], 1",
            "js 3f",
            // The state of the whole access goes into edx, its address into rcx.
            ".if {size} == 16",
            "jmp 2f",
            ".endif",
            ".if {size} > 1",
            "test dil, {size} - 1",
            "jnz 2f",
            ".endif",
            "movabs rcx, {fold}",
            "and rcx, rdi",
            ".if {size} >= 4",
            "add rcx, qword ptr [rip + {words}]",
            ".else",
            "mov r8, rcx",
            "and r8, -4",
            "add r8, qword ptr [rip + {words}]",
            "cmp dword ptr [r8], {split}",
            "jne 2f",
            "shl rcx, 2",
            "add rcx, qword ptr [rip + {single_bytes}]",
            ".endif",
            "mov edx, dword ptr [rcx]",
            ".if {size} == 8 || {size} == 2",
            "cmp edx, dword ptr [rcx + 4]",
            "jne 2f",
            ".endif",
            // Look up the next state.
            "mov r9, qword ptr fs:[rax + {who}]",
            "or r9, qword ptr [rsp]",
            "imul r10d, r9d, {fast_spread}",
            "lea r10d, [r10 + rdx * 8]",
            "and r10d, {fast_halves}",
            "lea r11, [rip + {fast}]",
            "cmp qword ptr [r11 + r10 * 2], r9",
            "jne 2f",
            "cmp dword ptr [r11 + r10 * 2 + 8], edx",
            "jne 2f",
            "mov r8d, dword ptr [r11 + r10 * 2 + 12]",
            "cmp byte ptr [rip + {mode}], {collect}",
            "jne 7f",
            "mov dword ptr [rcx], r8d",
            ".if {size} == 8 || {size} == 2",
            "mov dword ptr [rcx + 4], r8d",
            ".endif",
            "5:",
            "ret",
            // Free threads: others may change the table and the state.
            "7:",
            "cmp qword ptr [r11 + r10 * 2], r9",
            "jne 2f",
            "cmp r8d, edx",
            "je 5b",
            "mov eax, edx",
            ".if {size} == 8 || {size} == 2",
            "shl rax, 32",
            "or rax, rdx",
            "mov edx, r8d",
            "shl r8, 32",
            "or r8, rdx",
            "lock cmpxchg qword ptr [rcx], r8",
            ".else",
            "lock cmpxchg dword ptr [rcx], r8d",
            ".endif",
            "je 5b",
            "2:",
            // No transition from freed memory is known.
            unless_freed!("6f", "8f"),
            "6:",
            "movabs rsi, {head}",
            "mov rdx, qword ptr [rsp]",
            "jmp {new_step}",
            "8:",
            "mov rax, qword ptr [rip + raddle_tls@GOTTPOFF]",
            "add qword ptr fs:[rax + {countdown}], 1",
            "3:",
            "movabs rsi, {head}",
            "mov rdx, qword ptr [rsp]",
            "jmp {slow}",
            // The next function starts on a cache line, and so does the section if it has its
            // own.
            ".p2align 6",
            mode = sym shared::MODE,
            who = const if $head >> 56 == Kind::Write as u64 { tls::WRITER } else { tls::READER },
            fast = sym history::FAST,
            fast_spread = const history::SPREAD,
            fast_halves = const history::HALVES,
            new_step = sym history::access,
            size = const 1u32 << $shift,
            fold = const (1u64 << ADDRESS_BITS) - 1,
            split = const SPLIT,
            words = sym history::WORDS_START,
            single_bytes = sym history::BYTES_START,
            count = const shared::COUNT,
            collects = const shared::COLLECT_FREE,
            collect = const shared::COLLECT,
            trace = const shared::TRACE,
            countdown = const tls::COUNTDOWN,
            lane = const tls::LANE,
            low = sym freed::LOW,
            bytes = sym freed::BYTES,
            shadow = sym freed::SHADOW,
            head = const $head,
            unit_shift = const repeats::unit_shift($shift),
            spread = const repeats::SPREAD,
            spread_shift = const repeats::SPREAD_SHIFT,
            fold_shift = const repeats::FOLD_SHIFT,
            offsets = const repeats::OFFSETS,
            table = sym repeats::TABLE,
            stamp = sym repeats::STAMP,
            second = const repeats::SECOND,
            taken = sym repeats::TAKEN,
            repeats = const core::mem::offset_of!(Lane, repeats),
            told = const core::mem::offset_of!(Lane, repeats_recorded),
            many = sym lane::many_repeats,
            full = sym lane::full,
            slow = sym slow_access,
        )
    };
}

macro_rules! accesses {
    ($($name:ident => $kind:ident, $info:expr;)*) => {$(
        /// Access callback; see the module.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            access!(head(Kind::$kind, $info), (($info) & SIZE).ilog2())
        }
    )*};
}

/// A record's first word without the address.
pub(super) const fn head(kind: Kind, info: u8) -> u64 {
    (kind as u64) << 56 | (info as u64) << 48
}

const _: () = assert!(core::mem::offset_of!(Lane, cursor) == 0);
const _: () = assert!(shared::WATCH > shared::COUNT && shared::COUNT > shared::COLLECT);
const _: () = assert!(shared::COLLECT > shared::COLLECT_FREE);
const _: () = assert!(shared::COLLECT_FREE > shared::FREE && shared::COLLECT_FREE > shared::TRACE);
const _: () = assert!(core::mem::offset_of!(Lane, limit) == 8);

accesses! {
    __tsan_read1 => Read, 1;
    __tsan_read2 => Read, 2;
    __tsan_read4 => Read, 4;
    __tsan_read8 => Read, 8;
    __tsan_read16 => Read, 16;
    __tsan_write1 => Write, 1;
    __tsan_write2 => Write, 2;
    __tsan_write4 => Write, 4;
    __tsan_write8 => Write, 8;
    __tsan_write16 => Write, 16;
    __tsan_unaligned_read1 => Read, 1;
    __tsan_unaligned_read2 => Read, 2;
    __tsan_unaligned_read4 => Read, 4;
    __tsan_unaligned_read8 => Read, 8;
    __tsan_unaligned_read16 => Read, 16;
    __tsan_unaligned_write1 => Write, 1;
    __tsan_unaligned_write2 => Write, 2;
    __tsan_unaligned_write4 => Write, 4;
    __tsan_unaligned_write8 => Write, 8;
    __tsan_unaligned_write16 => Write, 16;
    __tsan_volatile_read1 => Read, 1 | VOLATILE;
    __tsan_volatile_read2 => Read, 2 | VOLATILE;
    __tsan_volatile_read4 => Read, 4 | VOLATILE;
    __tsan_volatile_read8 => Read, 8 | VOLATILE;
    __tsan_volatile_read16 => Read, 16 | VOLATILE;
    __tsan_volatile_write1 => Write, 1 | VOLATILE;
    __tsan_volatile_write2 => Write, 2 | VOLATILE;
    __tsan_volatile_write4 => Write, 4 | VOLATILE;
    __tsan_volatile_write8 => Write, 8 | VOLATILE;
    __tsan_volatile_write16 => Write, 16 | VOLATILE;
    __tsan_unaligned_volatile_read1 => Read, 1 | VOLATILE;
    __tsan_unaligned_volatile_read2 => Read, 2 | VOLATILE;
    __tsan_unaligned_volatile_read4 => Read, 4 | VOLATILE;
    __tsan_unaligned_volatile_read8 => Read, 8 | VOLATILE;
    __tsan_unaligned_volatile_read16 => Read, 16 | VOLATILE;
    __tsan_unaligned_volatile_write1 => Write, 1 | VOLATILE;
    __tsan_unaligned_volatile_write2 => Write, 2 | VOLATILE;
    __tsan_unaligned_volatile_write4 => Write, 4 | VOLATILE;
    __tsan_unaligned_volatile_write8 => Write, 8 | VOLATILE;
    __tsan_unaligned_volatile_write16 => Write, 16 | VOLATILE;
    __tsan_vptr_read => Read, 8 | VPTR;
}

/// A read followed by a write in one call. clang can emit it for `x = x + 1`.
macro_rules! read_writes {
    ($($name:ident => $bytes:expr;)*) => {$(
        /// Access callback; see the module.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            naked_asm!(
                "push rdi",
                "mov rdx, qword ptr [rsp + 8]",
                "movabs rsi, {read}",
                "call {slow}",
                "pop rdi",
                "mov rdx, qword ptr [rsp]",
                "movabs rsi, {write}",
                "jmp {slow}",
                read = const head(Kind::Read, $bytes),
                write = const head(Kind::Write, $bytes),
                slow = sym slow_access,
            )
        }
    )*};
}

read_writes! {
    __tsan_read_write1 => 1;
    __tsan_read_write2 => 2;
    __tsan_read_write4 => 4;
    __tsan_read_write8 => 8;
    __tsan_read_write16 => 16;
    __tsan_unaligned_read_write2 => 2;
    __tsan_unaligned_read_write4 => 4;
    __tsan_unaligned_read_write8 => 8;
    __tsan_unaligned_read_write16 => 16;
}

/// The `_pc` variants, where the program passes the code address: the second argument replaces
/// the return address.
macro_rules! accesses_at {
    ($($name:ident => $kind:ident, $info:expr;)*) => {$(
        /// Access callback; see the module.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            naked_asm!(
                "mov rdx, rsi",
                "movabs rsi, {head}",
                "jmp {slow}",
                head = const head(Kind::$kind, $info),
                slow = sym slow_access,
            )
        }
    )*};
}

accesses_at! {
    __tsan_read1_pc => Read, 1;
    __tsan_read2_pc => Read, 2;
    __tsan_read4_pc => Read, 4;
    __tsan_read8_pc => Read, 8;
    __tsan_read16_pc => Read, 16;
    __tsan_write1_pc => Write, 1;
    __tsan_write2_pc => Write, 2;
    __tsan_write4_pc => Write, 4;
    __tsan_write8_pc => Write, 8;
    __tsan_write16_pc => Write, 16;
}
