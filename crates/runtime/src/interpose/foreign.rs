//! Descriptors whose other end a child process may have.
//!
//! A child inherits what was open when it was started. From then on, until all children were waited
//! for, a thread that uses such a descriptor lets them come to rest first
//! ([`sched::rest`]). Which descriptors these are depends only on what the program itself
//! does, not on how far its children are.
//!
//! All descriptors of one pipe, FIFO, or terminal have one inode. A socket and the one that it is
//! connected to have not, but both were open if the child got one of them. Event counters and other
//! descriptors without a file of their own share one inode, so all of them count if one was
//! inherited. An epoll set and a descriptor of signals always count. What comes from standard input and what is
//! written to standard output and error is not for the program's children.

use alloc::vec::Vec;

use libc::{c_int, pollfd};

use crate::guarded::Guarded;
use crate::sched::thread::Wait;
use crate::sched::{self, SCHED};
use crate::sys::Path;
use crate::{hook, proc, sys};

/// Device and inode of what children may have.
static KNOWN: Guarded<Vec<(u64, u64)>> = Guarded::new(Vec::new());

/// A child is about to be started. It has all descriptors, or only those that survive `exec`.
pub(super) fn inherit(only_kept: bool) {
    if hook::me().is_none() {
        return;
    }
    let standard = [0, 1, 2].map(|descriptor| about(descriptor).map(key));
    let mut inherited = Vec::new();
    proc::each_entry(&Path::new(b"/proc/self/fd"), |descriptor| {
        let descriptor = descriptor as c_int;
        let flags = sys::syscall!(libc::SYS_fcntl, descriptor, libc::F_GETFD);
        let is_kept = flags >= 0 && flags & i64::from(libc::FD_CLOEXEC) == 0;
        let about =
            about(descriptor).filter(|about| may_lead_out(about) && (is_kept || !only_kept));
        inherited.extend(about.map(key).filter(|&key| !standard.contains(&Some(key))));
    });
    let mut known = KNOWN.lock();
    for key in inherited {
        if !known.contains(&key) {
            known.push(key);
        }
    }
}

/// A descriptor that leads to a child, such as that of `popen`.
pub(super) fn lead_out(descriptor: c_int) {
    if let Some(about) = about(descriptor).filter(|_| hook::me().is_some()) {
        KNOWN.lock().push(key(about));
    }
}

/// A new connection: its other end may be a child's if there are any.
pub(super) fn connected(descriptor: c_int) {
    if hook::me().is_some() && SCHED.lock().n_processes > 0 {
        lead_out(descriptor);
    }
}

/// Threads that wait already may get their input from a child that was just started.
pub(super) fn reconsider() {
    let mut sched = SCHED.lock();
    for at in 0..sched.live.len() {
        let id = sched.live[at] as usize;
        let Wait::Descriptors(at, n) = sched.threads[id].wait else { continue };
        // SAFETY: a thread of ours waits with these on its stack and does not touch them.
        let descriptors = unsafe { core::slice::from_raw_parts(at as *const pollfd, n as usize) };
        if descriptors.iter().any(|one| is_known(one.fd)) {
            sched.threads[id].wait = Wait::Peer(at, n);
        }
    }
}

/// Whether a child may have the other end of one of these. If so, all children are at rest.
pub(super) fn is_any(descriptors: &[pollfd]) -> bool {
    if SCHED.lock().n_processes == 0 || !descriptors.iter().any(|one| is_known(one.fd)) {
        return false;
    }
    sched::rest();
    let has_children = sys::has_children();
    if !has_children {
        KNOWN.lock().clear();
    }
    has_children
}

fn is_known(descriptor: c_int) -> bool {
    about(descriptor).is_some_and(|about| {
        let known = KNOWN.lock();
        known.contains(&key(about)) || about.st_mode & libc::S_IFMT == 0 && is_set(descriptor)
    })
}

/// Whether it is an epoll set, or a descriptor of signals, which may tell that a child has ended.
fn is_set(descriptor: c_int) -> bool {
    const NAMES: [&[u8]; 2] = [b"anon_inode:[eventpoll]", b"anon_inode:[signalfd]"];
    let path = Path::new(b"/proc/self/fd/").number(u64::from(descriptor as u32));
    let mut name = [0; 64];
    let n = sys::read_link(&path, &mut name);
    NAMES.contains(&&name[..n])
}

fn about(descriptor: c_int) -> Option<libc::stat> {
    // SAFETY: zeroes are a valid value of this plain struct.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    let status = sys::syscall!(libc::SYS_fstat, descriptor, &raw mut about);
    (status == 0).then_some(about)
}

fn key(about: libc::stat) -> (u64, u64) {
    (about.st_dev, about.st_ino)
}

/// Whether something can arrive by it: not from files and directories. Event counters and the like
/// have no type.
fn may_lead_out(about: &libc::stat) -> bool {
    [libc::S_IFIFO, libc::S_IFSOCK, libc::S_IFCHR, 0].contains(&(about.st_mode & libc::S_IFMT))
}
