//! Second names of interposed functions, by which a program calls a sanitizer's version of them,
//! for example where it replaces the function itself.
//!
//! ThreadSanitizer has such a name for every function that it intercepts. These are the ones that
//! programs use: those that they replace.

use super::{descriptor, memory, mutex, string, thread};

/// Continues in the function of the first name, as if that had been called.
macro_rules! aliases {
    ($($name:ident => $function:path;)*) => {$(
        /// See the function that it stands for.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        extern "C" fn $name() {
            core::arch::naked_asm!("jmp {function}", function = sym $function)
        }
    )*};
}

aliases! {
    __interceptor_malloc => memory::malloc;
    __interceptor_calloc => memory::calloc;
    __interceptor_realloc => memory::realloc;
    __interceptor_free => memory::free;
    __interceptor_aligned_alloc => memory::aligned_alloc;
    __interceptor_memalign => memory::memalign;
    __interceptor_posix_memalign => memory::posix_memalign;
    __interceptor_valloc => memory::valloc;
    __interceptor_memcpy => string::memcpy;
    __interceptor_memmove => string::memmove;
    __interceptor_memset => string::memset;
    __interceptor_memcmp => string::memcmp;
    __interceptor_strlen => string::strlen;
    __interceptor_strcmp => string::strcmp;
    __interceptor_pthread_create => thread::pthread_create;
    __interceptor_pthread_join => thread::pthread_join;
    __interceptor_pthread_detach => thread::pthread_detach;
    __interceptor_pthread_mutex_lock => mutex::pthread_mutex_lock;
    __interceptor_pthread_mutex_trylock => mutex::pthread_mutex_trylock;
    __interceptor_pthread_mutex_unlock => mutex::pthread_mutex_unlock;
    __interceptor_read => descriptor::read;
    __interceptor_write => descriptor::write;
}
