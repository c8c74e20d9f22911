//! What is known of calls into libraries: how many arguments they use, what they write, and
//! the callbacks of instrumented code.

use iced_x86::Register;

use crate::code::bit;
use crate::tracee::Registers;

/// How many arguments a library function uses, if it is a known one.
pub(crate) fn n_arguments(name: &str) -> Option<usize> {
    let name = name.split('@').next().unwrap_or(name);
    Some(match name {
        "abort" | "__stack_chk_fail" | "rand" | "getpid" | "sched_yield" | "pthread_self"
        | "__errno_location" | "__tsan_func_exit" => 0,
        "free"
        | "malloc"
        | "strlen"
        | "puts"
        | "putchar"
        | "exit"
        | "_exit"
        | "close"
        | "dup"
        | "abs"
        | "pthread_mutex_lock"
        | "pthread_mutex_unlock"
        | "pthread_mutex_trylock"
        | "pthread_mutex_destroy"
        | "pthread_cond_signal"
        | "pthread_cond_broadcast"
        | "pthread_cond_destroy"
        | "pthread_rwlock_rdlock"
        | "pthread_rwlock_wrlock"
        | "pthread_rwlock_unlock"
        | "pthread_spin_lock"
        | "pthread_spin_unlock"
        | "pthread_barrier_wait"
        | "pthread_barrier_destroy"
        | "pthread_detach"
        | "sem_wait"
        | "sem_post"
        | "sem_destroy"
        | "sem_trywait"
        | "sleep"
        | "usleep"
        | "time"
        | "atoi"
        | "atol"
        | "fclose"
        | "fflush"
        | "strdup"
        | "getenv"
        | "_Znwm"
        | "_Znam"
        | "_ZdlPv"
        | "_ZdaPv"
        | "srand"
        | "toupper"
        | "tolower"
        | "perror"
        | "fgetc"
        | "getc"
        | "wcslen"
        | "localtime"
        | "gmtime"
        | "ctime"
        | "asctime"
        | "mktime"
        | "readdir"
        | "pclose"
        | "__tsan_func_entry" => 1,
        "realloc"
        | "calloc"
        | "strcmp"
        | "strcpy"
        | "stpcpy"
        | "strcat"
        | "strchr"
        | "strrchr"
        | "strstr"
        | "fputs"
        | "fopen"
        | "pthread_mutex_init"
        | "pthread_cond_init"
        | "pthread_cond_wait"
        | "pthread_join"
        | "sem_getvalue"
        | "nanosleep"
        | "pthread_rwlock_init"
        | "aligned_alloc"
        | "strnlen"
        | "fputc"
        | "putc"
        | "_ZdlPvm"
        | "clock_gettime"
        | "strspn"
        | "strcspn"
        | "strpbrk"
        | "strcasestr"
        | "strchrnul"
        | "wcscpy"
        | "wcscat"
        | "wcscmp"
        | "explicit_bzero"
        | "localtime_r"
        | "gmtime_r"
        | "ctime_r"
        | "asctime_r"
        | "stat"
        | "lstat"
        | "fstat"
        | "flock"
        | "eventfd_read"
        | "eventfd_write"
        | "munmap"
        | "dup2"
        | "listen"
        | "shutdown"
        | "vprintf"
        | "gettimeofday" => 2,
        "memcpy"
        | "memmove"
        | "memset"
        | "memcmp"
        | "strncpy"
        | "strncmp"
        | "strncat"
        | "memchr"
        | "read"
        | "write"
        | "fgets"
        | "pthread_cond_timedwait"
        | "sem_init"
        | "pthread_barrier_init"
        | "__strcpy_chk"
        | "__stpcpy_chk"
        | "__strcat_chk"
        | "__explicit_bzero_chk"
        | "mempcpy"
        | "stpncpy"
        | "memrchr"
        | "strncasecmp"
        | "strtok_r"
        | "wmemcpy"
        | "wmemmove"
        | "wmemset"
        | "wmemcmp"
        | "wmemchr"
        | "wcsncpy"
        | "wcsncmp"
        | "getline"
        | "strtol"
        | "strtoul"
        | "dup3"
        | "vfprintf"
        | "__vprintf_chk"
        | "lseek" => 3,
        "getdelim" | "memmem" | "strftime" | "vsnprintf" | "pthread_create" | "fread"
        | "fwrite" | "qsort" | "__memcpy_chk" | "__memmove_chk" | "__mempcpy_chk"
        | "__memset_chk" | "__strncpy_chk" | "__stpncpy_chk" | "__strncat_chk" | "__read_chk"
        | "__poll_chk" | "__assert_fail" | "socketpair" | "epoll_ctl" | "sendmmsg"
        | "__vfprintf_chk" => 4,
        "__pread_chk" | "__pread64_chk" | "__recv_chk" | "__ppoll_chk" | "mremap" => 5,
        "mmap" | "mmap64" => 6,
        _ => return None,
    })
}

/// Whether a function ends the process with the status that it is given.
pub(crate) fn is_exit(name: &str) -> bool {
    matches!(name.split('@').next().unwrap_or(name), "exit" | "_exit" | "_Exit" | "quick_exit")
}

/// The registers of the first `n` arguments, and the vectors that may hold others.
pub(crate) fn argument_registers(n: usize) -> u64 {
    const ORDER: [Register; 6] =
        [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
    ORDER.iter().take(n).fold(0, |set, register| set | bit(*register))
}

/// How many bytes at its first argument a library function writes, if it does; 1 if its arguments
/// do not tell. What it writes at others is not known here.
pub(crate) fn written(name: &str, registers: &Registers) -> Option<u64> {
    match name.split('@').next().unwrap_or(name) {
        "memcpy" | "memmove" | "memset" | "strncpy" | "__memcpy_chk" | "__memmove_chk"
        | "__mempcpy_chk" | "__memset_chk" | "__strncpy_chk" | "__stpncpy_chk" | "mempcpy"
        | "stpncpy" => Some(registers.rdx),
        "explicit_bzero" | "__explicit_bzero_chk" => Some(registers.rsi),
        "strcpy" | "strcat" | "stpcpy" | "sprintf" | "vsprintf" | "__strcpy_chk"
        | "__stpcpy_chk" | "__strcat_chk" | "__strncat_chk" | "__sprintf_chk"
        | "__vsprintf_chk" => Some(1),
        "wmemcpy" | "wmemmove" | "wmemset" | "wcsncpy" => Some(registers.rdx.saturating_mul(4)),
        "wcscpy" | "wcscat" => Some(4),
        "snprintf" | "vsnprintf" | "strftime" | "__snprintf_chk" | "__vsnprintf_chk" => {
            Some(registers.rsi.min(1))
        }
        _ => None,
    }
}

/// A callback of instrumented code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Callback {
    /// It performs the access, and does not only tell of it.
    pub(crate) is_atomic: bool,
    pub(crate) n_bytes: u8,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// What a function is as a callback, if it is one.
pub(crate) fn callback(name: &str) -> Option<Callback> {
    let rest = name.strip_prefix("__tsan_")?;
    let none = Callback { is_atomic: false, n_bytes: 0, reads: false, writes: false };
    let Some(atomic) = rest.strip_prefix("atomic") else { return Some(none) };
    let Some((bits, action)) = atomic.split_once('_') else { return Some(none) };
    let Ok(bits) = bits.parse::<u32>() else { return Some(none) };
    let n_bytes = (bits / 8) as u8;
    let (reads, writes) = match action {
        "load" => (true, false),
        "store" => (false, true),
        _ => (true, true),
    };
    Some(Callback { is_atomic: true, n_bytes, reads, writes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callbacks_are_told_by_name() {
        assert_eq!(callback("memcpy"), None);
        assert!(!callback("__tsan_read4").expect("a callback").is_atomic);
        let add = callback("__tsan_atomic32_fetch_add").expect("a callback");
        assert_eq!((add.n_bytes, add.reads, add.writes), (4, true, true));
        let load = callback("__tsan_atomic64_load").expect("a callback");
        assert_eq!((load.n_bytes, load.reads, load.writes), (8, true, false));
    }
}
