//! `dlopen` and `dlclose`: constructors run under the loader's lock, and a thread that waits
//! there would block all others.
//!
//! Both inspect their caller to choose a search path, so we must not be in between: the thread is
//! marked with its stack pointer, and libc's function is jumped to. The mark expires once the
//! stack is above it ([`crate::tls::sticky`]).

use core::arch::naked_asm;

use crate::real::Real;
use crate::{shared, tls};

static DLOPEN: Real = Real::new(c"dlopen", None);
static DLCLOSE: Real = Real::new(c"dlclose", None);

macro_rules! marked {
    ($($name:ident => $address:ident;)*) => {$(
        /// Marks the thread and jumps to libc; see the module.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            naked_asm!(
                "push rdi",
                "push rsi",
                "sub rsp, 8",
                "lea rdi, [rsp + 24]",
                "call {address}",
                "add rsp, 8",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                address = sym $address,
            )
        }
    )*};
}

marked! {
    dlopen => open_address;
    dlclose => close_address;
}

extern "C" fn open_address(stack: u64) -> usize {
    mark(stack);
    DLOPEN.address()
}

extern "C" fn close_address(stack: u64) -> usize {
    mark(stack);
    DLCLOSE.address()
}

fn mark(stack: u64) {
    if shared::controlled() && tls::get(tls::STICKY) == 0 {
        tls::set(tls::STICKY, stack);
    }
}
