//! System calls, without libc.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libc::{c_int, c_long};

/// Makes a system call; returns the kernel's result, negative for an error.
///
/// # Safety
/// The arguments are what the system call of this number demands.
#[inline]
pub(crate) unsafe fn call(number: c_long, args: [u64; 6]) -> i64 {
    let result: i64;
    // SAFETY: the caller's promise; the clobbers are the kernel's.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

macro_rules! syscall {
    ($number:expr $(, $arg:expr)* $(,)?) => {{
        let args = $crate::sys::padded([$($arg as u64),*]);
        // SAFETY: the wrapper around this call hands over what the system call demands.
        unsafe { $crate::sys::call($number, args) }
    }};
}
pub(crate) use syscall;

/// Pads the arguments of a system call with zeros.
pub(crate) fn padded<const N: usize>(given: [u64; N]) -> [u64; 6] {
    core::array::from_fn(|index| given.get(index).copied().unwrap_or(0))
}

/// Waits while the word holds `value`, at most `ns` nanoseconds. `shared` if another process
/// may wake it.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32, ns: Option<u64>, shared: bool) {
    let time = ns.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    });
    let time = time.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    let op = libc::FUTEX_WAIT | if shared { 0 } else { libc::FUTEX_PRIVATE_FLAG };
    syscall!(libc::SYS_futex, word.as_ptr(), op, value, time);
}

/// Wakes one thread that waits on the word.
pub(crate) fn futex_wake(word: &AtomicU32, shared: bool) {
    let op = libc::FUTEX_WAKE | if shared { 0 } else { libc::FUTEX_PRIVATE_FLAG };
    syscall!(libc::SYS_futex, word.as_ptr(), op, 1);
}

/// Wakes all threads, of all processes, that wait on the word.
pub(crate) fn futex_wake_all(word: &AtomicU32) {
    syscall!(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
}

/// The kernel's id of this thread.
pub(crate) fn gettid() -> u32 {
    syscall!(libc::SYS_gettid) as u32
}

/// The processor's time stamp counter, which runs at the same rate on all processors of any
/// machine of the last decade.
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: reads a counter.
    core::hint::black_box(unsafe { core::arch::x86_64::_rdtsc() })
}

/// The id of this process.
pub(crate) fn getpid() -> u32 {
    syscall!(libc::SYS_getpid) as u32
}

/// Whether there are child processes, also such that have ended and not been waited for.
pub(crate) fn has_children() -> bool {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    syscall!(libc::SYS_waitid, libc::P_ALL, 0, 0, options, 0) >= 0
}

/// Whether the thread still exists.
pub(crate) fn thread_exists(thread: u32) -> bool {
    syscall!(libc::SYS_tgkill, getpid(), thread, 0) == 0
}

/// Sends a signal to a thread of this process.
pub(crate) fn tgkill(thread: u32, signal: c_int) -> i64 {
    syscall!(libc::SYS_tgkill, getpid(), thread, signal)
}

/// The signals that wait for this thread or for the whole process, since they are blocked.
pub(crate) fn pending_signals() -> u64 {
    let mut set = 0u64;
    syscall!(libc::SYS_rt_sigpending, &raw mut set, 8);
    set
}

/// Lets another thread of this processor go first.
pub(crate) fn sched_yield() {
    syscall!(libc::SYS_sched_yield);
}

/// Sleeps in real time.
pub(crate) fn sleep_us(us: u64) {
    let time =
        libc::timespec { tv_sec: (us / 1_000_000) as i64, tv_nsec: (us % 1_000_000 * 1000) as i64 };
    syscall!(libc::SYS_nanosleep, &raw const time, 0);
}

/// Real time since some point, in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    syscall!(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut time);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Ends the process at once.
pub(crate) fn exit_group(status: c_int) -> ! {
    loop {
        syscall!(libc::SYS_exit_group, status);
    }
}

/// Writes to standard error once, ignoring errors.
pub(crate) fn complain(text: &[u8]) {
    syscall!(libc::SYS_write, 2, text.as_ptr(), text.len());
}

/// Our mappings are contiguous from here, away from all others: how many we need, and how large,
/// depends on the plan and must not move the stacks and heaps of the target.
static NEXT: AtomicU64 = AtomicU64::new(0x2000_0000_0000);

/// Maps memory; null on failure.
fn map(bytes: usize, flags: c_int, descriptor: i64) -> *mut u8 {
    let here = reserve(bytes);
    let mut address = mmap(here, bytes, flags | libc::MAP_FIXED_NOREPLACE, descriptor);
    if address < 0 {
        address = mmap(0, bytes, flags, descriptor);
    }
    if address < 0 { core::ptr::null_mut() } else { address as *mut u8 }
}

/// The system call. What the program allows itself to use is not for us: its limit is raised for the
/// call, if it has to be and can be.
fn mmap(address: u64, bytes: usize, flags: c_int, descriptor: i64) -> i64 {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let call = || syscall!(libc::SYS_mmap, address, bytes, prot, flags, descriptor, 0);
    let result = call();
    if result != -i64::from(libc::ENOMEM) {
        return result;
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let no_limit = core::ptr::null::<libc::rlimit>();
    let status = syscall!(libc::SYS_prlimit64, 0, libc::RLIMIT_AS, no_limit, &raw mut limit);
    if status != 0 || limit.rlim_cur == limit.rlim_max {
        return result;
    }
    let set = |limit: &libc::rlimit| {
        syscall!(libc::SYS_prlimit64, 0, libc::RLIMIT_AS, core::ptr::from_ref(limit), 0)
    };
    set(&libc::rlimit { rlim_cur: limit.rlim_max, ..limit });
    let result = call();
    set(&limit);
    result
}

const FRESH: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// Fresh zeroed memory; null on failure.
pub(crate) fn map_anonymous(bytes: usize) -> *mut u8 {
    map(bytes, FRESH, -1)
}

/// Sets addresses aside for [`map_reserved`], without mapping anything.
pub(crate) fn reserve(bytes: usize) -> u64 {
    NEXT.fetch_add(bytes.next_multiple_of(1 << 16) as u64, Ordering::Relaxed)
}

/// Maps fresh zeroed memory at a reserved address; false on failure.
pub(crate) fn map_reserved(address: u64, bytes: usize) -> bool {
    mmap(address, bytes, FRESH | libc::MAP_FIXED_NOREPLACE, -1) == address as i64
}

/// The file's contents as shared memory; null on failure.
pub(crate) fn map_shared(descriptor: i64, bytes: usize) -> *mut u8 {
    map(bytes, libc::MAP_SHARED, descriptor)
}

/// Stores for each page of a mapping whether it is resident: 1 in its byte if so. At most as many
/// pages as there are bytes. False on failure.
pub(crate) fn pages_there(start: u64, bytes: u64, into: &mut [u8]) -> bool {
    assert!(bytes <= into.len() as u64 * 4096, "internal bug: too many pages");
    syscall!(libc::SYS_mincore, start, bytes, into.as_mut_ptr()) == 0
}

/// Excludes a mapping from core dumps, to which it would add terabytes, and from children.
pub(crate) fn keep_to_ourselves(start: u64, bytes: u64) {
    syscall!(libc::SYS_madvise, start, bytes, libc::MADV_DONTDUMP);
    syscall!(libc::SYS_madvise, start, bytes, libc::MADV_DONTFORK);
}

/// Removes pages of a shared mapping, also from the file behind it.
pub(crate) fn remove_pages(start: u64, bytes: u64) {
    syscall!(libc::SYS_madvise, start, bytes, libc::MADV_REMOVE);
}

/// A path built without formatting.
pub(crate) struct Path {
    // invariant: zeros from `len` on, and at least one.
    bytes: [u8; 64],
    len: usize,
}

impl Path {
    /// A path that starts with this text.
    pub(crate) fn new(text: &[u8]) -> Self {
        Self { bytes: [0; 64], len: 0 }.text(text)
    }

    /// Appends a text.
    pub(crate) fn text(mut self, text: &[u8]) -> Self {
        let end = self.len + text.len();
        assert!(end < self.bytes.len(), "internal bug: a path is too long");
        self.bytes[self.len..end].copy_from_slice(text);
        self.len = end;
        self
    }

    /// Appends a decimal number without leading zeros.
    pub(crate) fn number(self, mut number: u64) -> Self {
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return self.text(&digits[first..]);
            }
        }
    }
}

/// Opens a file with `flags`; negative on failure.
pub(crate) fn open(path: &Path, flags: c_int) -> i64 {
    syscall!(libc::SYS_open, path.bytes.as_ptr(), flags | libc::O_CLOEXEC, 0)
}

/// Reads where a symbolic link leads, as far as it fits; returns the number of bytes.
pub(crate) fn read_link(path: &Path, into: &mut [u8]) -> usize {
    let n = syscall!(libc::SYS_readlink, path.bytes.as_ptr(), into.as_mut_ptr(), into.len());
    usize::try_from(n).unwrap_or(0)
}

/// Makes a timer descriptor that is not set readable, with this number of expirations; false if it
/// is no such descriptor.
pub(crate) fn set_expirations(descriptor: c_int, n: u64) -> bool {
    /// `TFD_IOC_SET_TICKS`, which a kernel without checkpoints does not have.
    const SET_TICKS: u32 = 0x4008_5400;
    if syscall!(libc::SYS_ioctl, descriptor, SET_TICKS, &raw const n) == 0 {
        return true;
    }
    // A time that is long past counts as one expiration, a moment later.
    let mut past = [0u64; 4];
    past[3] = 1;
    let absolute = libc::TFD_TIMER_ABSTIME;
    if syscall!(libc::SYS_timerfd_settime, descriptor, absolute, past.as_ptr(), 0) < 0 {
        return false;
    }
    poll(&mut [libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }], 1_000);
    true
}

/// Reads once; returns the number of bytes.
pub(crate) fn read(descriptor: i64, into: &mut [u8]) -> usize {
    let n = syscall!(libc::SYS_read, descriptor, into.as_mut_ptr(), into.len());
    usize::try_from(n).unwrap_or(0)
}

/// Closes a descriptor.
pub(crate) fn close(descriptor: i64) {
    syscall!(libc::SYS_close, descriptor);
}

/// Polls the descriptors, waiting at most `ms`.
pub(crate) fn poll(descriptors: &mut [libc::pollfd], ms: c_int) -> i64 {
    syscall!(libc::SYS_poll, descriptors.as_mut_ptr(), descriptors.len(), ms)
}

/// Reads memory of this process that may be unmapped.
pub(crate) fn read_own_memory(from: u64, into: &mut [u8]) {
    copy_own_memory(from, into.as_mut_ptr() as u64, into.len() as u64);
}

/// Copies memory of this process that may be unmapped; returns whether all of it was copied.
pub(crate) fn copy_own_memory(from: u64, to: u64, bytes: u64) -> bool {
    let local = libc::iovec { iov_base: to as *mut _, iov_len: bytes as usize };
    let remote = libc::iovec { iov_base: from as *mut _, iov_len: bytes as usize };
    let (local, remote) = (&raw const local, &raw const remote);
    let n = syscall!(libc::SYS_process_vm_readv, getpid(), local, 1, remote, 1, 0);
    n == bytes as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_put_together() {
        for (number, text) in
            [(0, "/a/0/b"), (1070, "/a/1070/b"), (u64::MAX, "/a/18446744073709551615/b")]
        {
            let path = Path::new(b"/a/").number(number).text(b"/b");
            assert_eq!(&path.bytes[..path.len], text.as_bytes());
            assert_eq!(path.bytes[path.len], 0);
        }
    }
}
