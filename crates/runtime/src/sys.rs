//! System calls, without libc.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libc::{c_int, c_long};

/// Makes a system call; the result is as the kernel gives it, negative for an error.
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

/// The arguments of a system call, and zeros for those that it has not.
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

/// The kernel's name of this thread.
pub(crate) fn gettid() -> u32 {
    syscall!(libc::SYS_gettid) as u32
}

/// This process.
pub(crate) fn getpid() -> u32 {
    syscall!(libc::SYS_getpid) as u32
}

/// Whether the thread still exists.
pub(crate) fn thread_exists(thread: u32) -> bool {
    syscall!(libc::SYS_tgkill, getpid(), thread, 0) == 0
}

/// Sends a signal to a thread of this process.
pub(crate) fn tgkill(thread: u32, signal: c_int) -> i64 {
    syscall!(libc::SYS_tgkill, getpid(), thread, signal)
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

/// Writes to standard error, once, whatever comes of it.
pub(crate) fn complain(text: &[u8]) {
    syscall!(libc::SYS_write, 2, text.as_ptr(), text.len());
}

/// Our mappings lie where nobody else's do, side by side from here: how many we need, and how
/// large, depends on the plan, and must not move the stacks and heaps of the target.
static NEXT: AtomicU64 = AtomicU64::new(0x2000_0000_0000);

/// Maps memory, or gives null.
fn map(bytes: usize, flags: c_int, descriptor: i64) -> *mut u8 {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let room = bytes.next_multiple_of(1 << 16) as u64;
    let here = NEXT.fetch_add(room, Ordering::Relaxed);
    let mut address = syscall!(
        libc::SYS_mmap,
        here,
        bytes,
        prot,
        flags | libc::MAP_FIXED_NOREPLACE,
        descriptor,
        0
    );
    if address < 0 {
        address = syscall!(libc::SYS_mmap, 0, bytes, prot, flags, descriptor, 0);
    }
    if address < 0 { core::ptr::null_mut() } else { address as *mut u8 }
}

/// Fresh zeroed memory, or null.
pub(crate) fn map_anonymous(bytes: usize) -> *mut u8 {
    map(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)
}

/// The file's bytes as memory shared with whoever else maps it, or null.
pub(crate) fn map_shared(descriptor: i64, bytes: usize) -> *mut u8 {
    map(bytes, libc::MAP_SHARED, descriptor)
}

/// Tells for each page of a mapping whether it is there: 1 in its byte if so. At most as many
/// pages as there are bytes. False if that cannot be told.
pub(crate) fn pages_there(start: u64, bytes: u64, into: &mut [u8]) -> bool {
    assert!(bytes <= into.len() as u64 * 4096, "internal bug: too many pages");
    syscall!(libc::SYS_mincore, start, bytes, into.as_mut_ptr()) == 0
}

/// Keeps a mapping out of core dumps, to which it would add terabytes, and out of children.
pub(crate) fn keep_to_ourselves(start: u64, bytes: u64) {
    syscall!(libc::SYS_madvise, start, bytes, libc::MADV_DONTDUMP);
    syscall!(libc::SYS_madvise, start, bytes, libc::MADV_DONTFORK);
}

/// Gives pages of a shared mapping back, also in the file behind it.
pub(crate) fn remove_pages(start: u64, bytes: u64) {
    syscall!(libc::SYS_madvise, start, bytes, libc::MADV_REMOVE);
}

/// Opens the file that the zero-terminated path names, with `flags`; negative if it can't.
pub(crate) fn open(path: &[u8], flags: c_int) -> i64 {
    assert!(path.last() == Some(&0), "internal bug: a path without its end");
    syscall!(libc::SYS_open, path.as_ptr(), flags | libc::O_CLOEXEC, 0)
}

/// Reads once; how many bytes.
pub(crate) fn read(descriptor: i64, into: &mut [u8]) -> usize {
    let n = syscall!(libc::SYS_read, descriptor, into.as_mut_ptr(), into.len());
    usize::try_from(n).unwrap_or(0)
}

/// Closes a descriptor.
pub(crate) fn close(descriptor: i64) {
    syscall!(libc::SYS_close, descriptor);
}

/// Asks which of the descriptors are ready, waiting at most `ms`.
pub(crate) fn poll(descriptors: &mut [libc::pollfd], ms: c_int) -> i64 {
    syscall!(libc::SYS_poll, descriptors.as_mut_ptr(), descriptors.len(), ms)
}

/// What a thread of ours is doing, as the kernel's one-letter state; `?` if unknown.
pub(crate) fn thread_state(thread: u32) -> u8 {
    let mut path = *b"/proc/self/task/0000000000/stat\0";
    let (mut at, mut rest) = (25, thread);
    while at >= 16 {
        path[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        at -= 1;
    }
    // The kernel does not take leading zeros: move the digits to the front.
    let first = path[16..26].iter().position(|&digit| digit != b'0').unwrap_or(9);
    let mut short = [0u8; 40];
    let (head, tail) = (&path[..16], &path[16 + first..]);
    short[..16].copy_from_slice(head);
    short[16..16 + tail.len()].copy_from_slice(tail);
    let file = open(&short, libc::O_RDONLY);
    if file < 0 {
        return b'?';
    }
    let mut text = [0u8; 256];
    let n = read(file, &mut text);
    close(file);
    // The state follows the name, which is in parentheses and may hold anything.
    text[..n]
        .iter()
        .rposition(|&byte| byte == b')')
        .and_then(|at| text.get(at + 2))
        .copied()
        .unwrap_or(b'?')
}

/// Reads memory of this process that may not be there.
pub(crate) fn read_own_memory(from: u64, into: &mut [u8]) {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: from as *mut _, iov_len: into.len() };
    syscall!(libc::SYS_process_vm_readv, getpid(), &raw const local, 1, &raw const remote, 1, 0);
}
