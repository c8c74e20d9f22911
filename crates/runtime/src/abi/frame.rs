//! Function entry and exit, ranges, and initialization.
//!
//! Entry and exit are recorded so that stacks can be rebuilt later; they are not steps.

use core::arch::naked_asm;

use raddle_trace::record::{Kind, VPTR};

use crate::export::export;
use crate::{hook, lane, shared, tls};

/// Entry and exit share one path: append a record and return.
macro_rules! frame {
    ($head:expr) => {
        naked_asm!(
            "cmp byte ptr [rip + {mode}], {trace}",
            "jne 2f",
            "mov rax, qword ptr [rip + raddle_tls@GOTTPOFF]",
            // Only with the turn: a thread without it has no lane to append to.
            "cmp qword ptr fs:[rax + {turn}], 1",
            "jne 3f",
            "mov rdx, qword ptr fs:[rax + {lane}]",
            "mov rcx, qword ptr [rdx]",
            "movabs r8, {head}",
            "or r8, rdi",
            "mov qword ptr [rcx], r8",
            "mov r8, qword ptr [rsp]",
            "mov qword ptr [rcx + 8], r8",
            "add rcx, 16",
            "mov qword ptr [rdx], rcx",
            "cmp rcx, qword ptr [rdx + 8]",
            "jae {full}",
            "3:",
            "ret",
            "2:",
            "cmp byte ptr [rip + {mode}], {free}",
            "jne 3b",
            "movabs rsi, {head}",
            "mov rdx, qword ptr [rsp]",
            "jmp {slow}",
            mode = sym shared::MODE,
            trace = const shared::TRACE,
            free = const shared::FREE,
            turn = const tls::TURN,
            lane = const tls::LANE,
            head = const $head,
            full = sym lane::full,
            slow = sym free_frame,
        )
    };
}

/// Function entry; the argument is its return address.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) extern "C" fn __tsan_func_entry() {
    frame!((Kind::Enter as u64) << 56)
}

/// Function exit.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) extern "C" fn __tsan_func_exit() {
    naked_asm!("xor edi, edi", "jmp {inner}", inner = sym func_exit)
}

#[unsafe(naked)]
extern "C" fn func_exit() {
    frame!((Kind::Leave as u64) << 56)
}

extern "C" fn free_frame(operand: u64, head: u64, pc: u64) {
    let kind = if head >> 56 == Kind::Enter as u64 { Kind::Enter } else { Kind::Leave };
    hook::record(kind, 0, operand, 0, pc, &[]);
}

export! {
    __tsan_read_range => read_range;
    __tsan_write_range => write_range;
    __tsan_vptr_update => vptr_update;
}

extern "C" fn read_range(addr: u64, bytes: u64) {
    hook::range(addr, bytes, false, hook::caller());
}

extern "C" fn write_range(addr: u64, bytes: u64) {
    hook::range(addr, bytes, true, hook::caller());
}

/// Range access at a code address that the program passes.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn __tsan_read_range_pc(addr: u64, bytes: u64, pc: u64) {
    hook::range(addr, bytes, false, pc);
}

/// Range access at a code address that the program passes.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn __tsan_write_range_pc(addr: u64, bytes: u64, pc: u64) {
    hook::range(addr, bytes, true, pc);
}

/// A constructor or destructor sets the virtual table pointer. It counts even if the value stays
/// the same: a new object contains what the stack held before, which differs between modes.
extern "C" fn vptr_update(slot: *const u64, _: u64) {
    let head = (Kind::Write as u64) << 56 | u64::from(8 | VPTR) << 48;
    hook::slow_access(slot as u64, head, hook::caller());
}

/// Called by the constructor of every instrumented module.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn __tsan_init() {
    crate::start::start();
}
