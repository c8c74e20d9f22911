//! Descriptors on which nobody outside of this process can act.
//!
//! A thread that waits for one of them waits for another thread of ours: if all of these wait too,
//! that is a deadlock. Everything that is not certain counts as reachable from outside.
//!
//! Certain are pipes, unnamed pairs of stream sockets, and event counters that this process has
//! created, as long as none of its descriptors can have got into other hands, or come from there:
//!
//! - What was open when the program started may have other ends elsewhere.
//! - A child process inherits descriptors, and may pass them on. Whoever asks knows whether there
//!   was one.
//! - A message with control data may carry descriptors, in either direction.
//! - A handler may be called for a signal from outside, and write to a pipe.
//! - The kernel itself writes for `io_uring` and asynchronous I/O ([`has_asynchronous_io`]).
//!
//! Limits: epoll sets, timer descriptors, message queues, and connections count as reachable. System
//! calls that a program makes by its own instructions are not seen.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use libc::{c_int, c_long, msghdr, pollfd, socklen_t};

use crate::guarded::Guarded;
use crate::{signals, sys};

/// Whether a descriptor may have been passed to another process, or received from one.
static IS_EXPOSED: AtomicBool = AtomicBool::new(false);

/// What was open when the program started.
static INHERITED: Guarded<Inherited> =
    Guarded::new(Inherited { nodes: Vec::new(), has_anonymous: false });

struct Inherited {
    /// Pipes and sockets: device and inode.
    nodes: Vec<(u64, u64)>,
    /// Whether there was something that has no inode of its own, such as an event counter.
    has_anonymous: bool,
}

/// Notes what is open when the program starts.
pub(crate) fn start() {
    let mut inherited = INHERITED.lock();
    let is_complete = each_descriptor(|descriptor| {
        match Kind::of(descriptor) {
            Some((Kind::Pipe | Kind::Socket, node)) => inherited.nodes.push(node),
            Some((Kind::Plain, _)) => {}
            Some((Kind::Anonymous, _)) | None => inherited.has_anonymous = true,
        }
        true
    });
    if !is_complete {
        expose();
    }
}

/// From now on descriptors may be known to other processes.
pub(crate) fn expose() {
    IS_EXPOSED.store(true, Ordering::Relaxed);
}

/// A message was sent or received; descriptors may have been in its control data.
pub(crate) fn note_message(message: &msghdr) {
    if !message.msg_control.is_null() && message.msg_controllen > 0 {
        expose();
    }
}

/// The program makes a system call by itself.
pub(crate) fn note_call(number: c_long) {
    if matches!(
        number,
        libc::SYS_clone
            | libc::SYS_clone3
            | libc::SYS_fork
            | libc::SYS_vfork
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg
            | libc::SYS_recvmsg
            | libc::SYS_recvmmsg
            | libc::SYS_pidfd_getfd
            | libc::SYS_io_setup
            | libc::SYS_io_uring_setup
    ) {
        expose();
    }
}

/// Whether only this process can make these descriptors ready.
pub(crate) fn is_inside(descriptors: &[pollfd]) -> bool {
    let mut numbers = descriptors.iter().map(|one| one.fd).filter(|&number| number >= 0).peekable();
    numbers.peek().is_some()
        && !IS_EXPOSED.load(Ordering::Relaxed)
        && !signals::may_be_handled()
        && INHERITED.try_lock().is_some_and(|inherited| numbers.all(|one| is_own(one, &inherited)))
}

/// Whether this process has created what a descriptor leads to, with all of its ends.
fn is_own(descriptor: c_int, inherited: &Inherited) -> bool {
    match Kind::of(descriptor) {
        Some((Kind::Pipe, node)) => {
            // A FIFO has a path.
            !inherited.nodes.contains(&node) && Link::of(descriptor).starts_with(b"pipe:")
        }
        Some((Kind::Socket, node)) => !inherited.nodes.contains(&node) && is_of_pair(descriptor),
        Some((Kind::Anonymous, _)) => {
            !inherited.has_anonymous && Link::of(descriptor).is(b"anon_inode:[eventfd]")
        }
        Some((Kind::Plain, _)) | None => false,
    }
}

/// Whether a socket is one of a pair: only those are connected, and neither end has a name.
fn is_of_pair(descriptor: c_int) -> bool {
    let option = |option: c_int| {
        let mut value: c_int = 0;
        let mut bytes = size_of::<c_int>() as socklen_t;
        let (value_at, bytes_at) = (&raw mut value, &raw mut bytes);
        let level = libc::SOL_SOCKET;
        let call = libc::SYS_getsockopt;
        (sys::syscall!(call, descriptor, level, option, value_at, bytes_at) == 0).then_some(value)
    };
    let is_unnamed = |call: c_long| {
        let mut address = [0u8; size_of::<libc::sockaddr_un>()];
        let mut bytes = address.len() as socklen_t;
        let status = sys::syscall!(call, descriptor, address.as_mut_ptr(), &raw mut bytes);
        status == 0 && bytes as usize == size_of::<libc::sa_family_t>()
    };
    option(libc::SO_DOMAIN) == Some(libc::AF_UNIX)
        && matches!(option(libc::SO_TYPE), Some(libc::SOCK_STREAM | libc::SOCK_SEQPACKET))
        && is_unnamed(libc::SYS_getsockname)
        && is_unnamed(libc::SYS_getpeername)
}

/// Whether the kernel may act on our descriptors by itself.
pub(crate) fn has_asynchronous_io() -> bool {
    let is_harmless = |descriptor: c_int| match Kind::of(descriptor) {
        Some((Kind::Pipe | Kind::Socket | Kind::Plain, _)) => true,
        Some((Kind::Anonymous, _)) => {
            const HARMLESS: [&[u8]; 4] = [
                b"anon_inode:[eventfd]",
                b"anon_inode:[eventpoll]",
                b"anon_inode:[timerfd]",
                b"anon_inode:[signalfd]",
            ];
            let link = Link::of(descriptor);
            HARMLESS.iter().any(|harmless| link.is(harmless))
        }
        None => false,
    };
    !each_descriptor(is_harmless) || maps_hold(b"[aio]") || maps_hold(b"[io_uring]")
}

/// What a descriptor leads to, as far as it matters here.
enum Kind {
    Pipe,
    Socket,
    /// Files, directories, terminals, and memory devices: nothing that acts by itself.
    Plain,
    /// Something of the kernel's that has no inode of its own.
    Anonymous,
}

impl Kind {
    /// With its device and inode; none if it is something else, or closed.
    fn of(descriptor: c_int) -> Option<(Self, (u64, u64))> {
        /// Memory (such as `/dev/null`), terminals, and pairs of terminals.
        const DEVICES: [core::ops::RangeInclusive<u32>; 3] = [1..=1, 4..=5, 136..=143];
        // SAFETY: zeroes are a valid value of this plain struct.
        let mut about: libc::stat = unsafe { core::mem::zeroed() };
        if sys::syscall!(libc::SYS_fstat, descriptor, &raw mut about) != 0 {
            return None;
        }
        let kind = match about.st_mode & libc::S_IFMT {
            libc::S_IFIFO => Self::Pipe,
            libc::S_IFSOCK => Self::Socket,
            libc::S_IFREG | libc::S_IFDIR => Self::Plain,
            libc::S_IFCHR => {
                let major = libc::major(about.st_rdev);
                DEVICES.iter().any(|devices| devices.contains(&major)).then_some(Self::Plain)?
            }
            0 => Self::Anonymous,
            _ => return None,
        };
        Some((kind, (about.st_dev, about.st_ino)))
    }
}

/// What the kernel calls a descriptor's file, as far as it fits.
struct Link {
    bytes: [u8; 32],
    n: usize,
}

impl Link {
    fn of(descriptor: c_int) -> Self {
        let mut bytes = [0; 32];
        let path = sys::Path::new(b"/proc/self/fd/").number(descriptor as u64);
        let n = sys::read_link(&path, &mut bytes);
        Self { bytes, n }
    }

    fn starts_with(&self, text: &[u8]) -> bool {
        self.bytes[..self.n].starts_with(text)
    }

    fn is(&self, text: &[u8]) -> bool {
        self.bytes[..self.n] == *text
    }
}

/// Calls `look` for each open descriptor as long as it returns true; returns whether it did so for
/// all.
fn each_descriptor(mut look: impl FnMut(c_int) -> bool) -> bool {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY;
    let directory = sys::open(&sys::Path::new(b"/proc/self/fd"), flags);
    if directory < 0 {
        return false;
    }
    let mut is_complete = true;
    let mut entries = Entries { bytes: [0; 1024] };
    loop {
        let (into, room) = (entries.bytes.as_mut_ptr(), entries.bytes.len());
        let n = sys::syscall!(libc::SYS_getdents64, directory, into, room);
        is_complete &= n >= 0;
        let Some(n) = usize::try_from(n).ok().filter(|&n| n > 0) else { break };
        let mut numbers = entries.numbers(n).filter(|&number| i64::from(number) != directory);
        is_complete &= numbers.all(&mut look);
    }
    sys::close(directory);
    is_complete
}

/// Entries of a directory, as the kernel returns them.
#[repr(align(8))]
struct Entries {
    bytes: [u8; 1024],
}

impl Entries {
    /// The names that are numbers, in the first `n` bytes.
    fn numbers(&self, n: usize) -> impl Iterator<Item = c_int> {
        /// Where the length of an entry is, and its name.
        const LENGTH_AT: usize = 16;
        const NAME_AT: usize = 19;
        let mut rest = &self.bytes[..n];
        core::iter::from_fn(move || {
            let length = rest.get(LENGTH_AT..LENGTH_AT + 2)?;
            let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
            let (entry, others) = rest.split_at_checked(length)?;
            rest = others;
            Some(number(entry.get(NAME_AT..)?))
        })
        .flatten()
    }
}

/// The number that a zero-terminated text consists of.
fn number(text: &[u8]) -> Option<c_int> {
    let end = text.iter().position(|&byte| byte == 0).filter(|&end| end > 0)?;
    text[..end].iter().try_fold(0, |number: c_int, byte| {
        let digit = byte.is_ascii_digit().then(|| c_int::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Whether a mapping of ours has a name that holds this text.
fn maps_hold(text: &[u8]) -> bool {
    let file = sys::open(&sys::Path::new(b"/proc/self/maps"), libc::O_RDONLY);
    if file < 0 {
        return true;
    }
    let mut bytes = [0u8; 4096];
    let mut kept = 0;
    let mut is_found = false;
    loop {
        let n = sys::read(file, &mut bytes[kept..]);
        if n == 0 {
            break;
        }
        let end = kept + n;
        is_found |= bytes[..end].windows(text.len()).any(|part| part == text);
        // The text may be cut in two.
        kept = end.min(text.len() - 1);
        bytes.copy_within(end - kept..end, 0);
    }
    sys::close(file);
    is_found
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::pipe;
    use std::os::fd::{AsRawFd as _, RawFd};
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    use super::*;

    fn is_own_here(descriptor: RawFd) -> bool {
        is_own(descriptor, &Inherited { nodes: Vec::new(), has_anonymous: false })
    }

    #[test]
    fn pipes_and_pairs_are_our_own() {
        let (reader, writer) = pipe().expect("a pipe");
        assert!(is_own_here(reader.as_raw_fd()) && is_own_here(writer.as_raw_fd()));
        let (one, two) = UnixStream::pair().expect("a pair");
        assert!(is_own_here(one.as_raw_fd()) && is_own_here(two.as_raw_fd()));
        let event = sys::syscall!(libc::SYS_eventfd2, 0, libc::EFD_CLOEXEC) as c_int;
        assert!(is_own_here(event));
        let node = Kind::of(reader.as_raw_fd()).expect("a pipe").1;
        let inherited = Inherited { nodes: Vec::from([node]), has_anonymous: true };
        assert!(!is_own(writer.as_raw_fd(), &inherited) && !is_own(event, &inherited));
        sys::close(event.into());
    }

    #[test]
    fn what_others_can_reach_is_not() {
        let directory = std::env::temp_dir().join(format!("raddle-inside-{}", sys::getpid()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let client = UnixStream::connect(&path).expect("a connection");
        let (server, _) = listener.accept().expect("a connection");
        let (one, _two) = UnixDatagram::pair().expect("a pair");
        let null = File::open("/dev/null").expect("a device");
        let sockets =
            [listener.as_raw_fd(), client.as_raw_fd(), server.as_raw_fd(), one.as_raw_fd()];
        for descriptor in sockets.into_iter().chain([null.as_raw_fd(), -1, 1 << 20]) {
            assert!(!is_own_here(descriptor), "{descriptor}");
        }
        std::fs::remove_dir_all(directory).expect("a directory");
    }

    #[test]
    fn every_descriptor_is_looked_at() {
        let (reader, writer) = pipe().expect("a pipe");
        let mut seen = Vec::new();
        each_descriptor(|descriptor| {
            seen.push(descriptor);
            true
        });
        assert!(seen.contains(&reader.as_raw_fd()) && seen.contains(&writer.as_raw_fd()));
    }

    #[test]
    fn mappings_are_known_by_name() {
        assert!(maps_hold(b"[stack]"));
        assert!(!maps_hold(b"[no such mapping"));
    }
}
