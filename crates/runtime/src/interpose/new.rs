//! `new` and `delete`: libstdc++ allocates with `malloc`, but a report should show the caller of
//! `new`. We store the caller and jump to libstdc++'s function: it may throw, so no frame of ours
//! may be below it.

use core::arch::naked_asm;

use crate::real::Real;
use crate::tls;

macro_rules! forward {
    ($($name:ident, $address:ident = $text:literal;)*) => {$(
        /// Stores the caller and jumps on; see the module.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            naked_asm!(
                "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr fs:[r10 + {caller}], r11",
                "push rdi",
                "push rsi",
                "push rdx",
                "call {address}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                caller = const tls::NEW_CALLER,
                address = sym $address,
            )
        }

        extern "C" fn $address() -> usize {
            #[unsafe(link_section = "raddle_real")]
            static REAL: Real = Real::new($text, None);
            REAL.address()
        }
    )*};
}

forward! {
    _Znwm, new = c"_Znwm";
    _Znam, new_array = c"_Znam";
    _ZnwmRKSt9nothrow_t, new_nothrow = c"_ZnwmRKSt9nothrow_t";
    _ZnamRKSt9nothrow_t, new_array_nothrow = c"_ZnamRKSt9nothrow_t";
    _ZnwmSt11align_val_t, new_aligned = c"_ZnwmSt11align_val_t";
    _ZnamSt11align_val_t, new_array_aligned = c"_ZnamSt11align_val_t";
    _ZdlPv, delete = c"_ZdlPv";
    _ZdaPv, delete_array = c"_ZdaPv";
    _ZdlPvm, delete_sized = c"_ZdlPvm";
    _ZdaPvm, delete_array_sized = c"_ZdaPvm";
    _ZdlPvSt11align_val_t, delete_aligned = c"_ZdlPvSt11align_val_t";
    _ZdaPvSt11align_val_t, delete_array_aligned = c"_ZdaPvSt11align_val_t";
    _ZdlPvmSt11align_val_t, delete_sized_aligned = c"_ZdlPvmSt11align_val_t";
    _ZdaPvmSt11align_val_t, delete_array_sized_aligned = c"_ZdaPvmSt11align_val_t";
}
