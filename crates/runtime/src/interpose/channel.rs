//! Channels: whatever carries bytes from thread to thread, as objects that order events.
//!
//! Who receives from a channel comes after everybody who has sent into it before. So does who sees
//! its end of file, or that there is something in it (`poll`, `epoll`). All descriptors of one
//! pipe are one channel, known by its inode. A stream socket has two: one for each direction.
//! The two ends of a pair are remembered from `socketpair`; those of a connection are known by
//! their two names, which each end sees the other way around. All unnamed clients of one Unix
//! socket have the same names, and share their channels.
//!
//! What cannot be told apart is one channel, which orders more than there is and so misses
//! predictions rather than making up false ones: all datagram sockets that are not a pair, all
//! sockets of other families, all terminals. Descriptors of other kinds, such as event counters,
//! are known by the number that they got first, which duplicates inherit.
//!
//! Numbers are given out in order of first use: inodes and ports differ from run to run.
//!
//! Limits: bytes that go through another process order nothing, and neither do those that
//! `splice`, `sendfile`, or `io_uring` move. A descriptor that is no pipe or socket and that the
//! program sends to itself through a socket is another channel than the original.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use libc::{c_int, c_long, sockaddr, socklen_t};
use raddle_trace::record::{Channel, Kind, WAITED};

use crate::guarded::Guarded;
use crate::{hook, sys, tls};

/// What identifies a channel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// A pipe, FIFO, or POSIX message queue: device and inode.
    Inode(u64, u64),
    /// A direction of a connection.
    Stream { from: Name, to: Name },
    /// From who listens to who connects.
    Listening(Name),
    /// From who connects to who accepts.
    Connecting(Name),
    /// All datagram sockets.
    Datagrams,
    /// All sockets of which nothing is known.
    Sockets,
    /// All terminals.
    Terminals,
    /// A System V message queue.
    Messages(c_int),
}

/// The name of a socket: its family's letter, then its address and port, or its path.
type Name = Vec<u8>;

/// The channels of a descriptor: what is received from it, and what is sent into it.
#[derive(Clone, Copy, Debug)]
struct Ends {
    kind: Channel,
    into: u64,
    out: u64,
}

/// A descriptor in an epoll set: the program's word for it, and its channels when it was added. A
/// socket may have been connected since.
#[derive(Clone, Copy, Debug)]
struct Member {
    data: u64,
    ends: Option<Ends>,
}

struct Channels {
    /// How many numbers were given out.
    n: u64,
    by_key: BTreeMap<Key, u64>,
    /// Sockets by inode. A socket that is no longer connected does not tell its names.
    sockets: BTreeMap<u64, Ends>,
    /// Channels that are known by their descriptor.
    others: BTreeMap<c_int, u64>,
    /// The members of epoll sets, by the set's channel and their descriptor.
    members: BTreeMap<(u64, c_int), Member>,
}

static CHANNELS: Guarded<Channels> = Guarded::new(Channels {
    n: 0,
    by_key: BTreeMap::new(),
    sockets: BTreeMap::new(),
    others: BTreeMap::new(),
    members: BTreeMap::new(),
});

/// Uses the channels, if events are recorded. A signal handler that interrupts us finds us quiet.
fn with<R>(work: impl FnOnce(&mut Channels) -> R) -> Option<R> {
    if !hook::tracing() {
        return None;
    }
    tls::set(tls::QUIET, tls::get(tls::QUIET) + 1);
    let result = CHANNELS.lock_soon().map(|mut channels| work(&mut channels));
    tls::set(tls::QUIET, tls::get(tls::QUIET) - 1);
    result
}

fn record(kind: Kind, channel: Channel, number: u64, waited: bool, pc: u64) {
    let info = channel as u8 | if waited { WAITED } else { 0 };
    hook::record(kind, info, number, 0, pc, &[]);
}

fn ends(descriptor: c_int) -> Option<Ends> {
    with(|channels| channels.ends(descriptor)).flatten()
}

/// The thread is about to send into a descriptor, or to close it.
pub(super) fn send(descriptor: c_int, waited: bool, pc: u64) {
    if let Some(ends) = ends(descriptor) {
        record(Kind::Send, ends.kind, ends.out, waited, pc);
    }
}

/// The thread has received from a descriptor, or has seen that it could.
pub(super) fn receive(descriptor: c_int, pc: u64) {
    if let Some(ends) = ends(descriptor) {
        record(Kind::Receive, ends.kind, ends.into, false, pc);
    }
}

/// The thread is about to shut a socket down, which those see who use it at either end.
pub(super) fn shut(descriptor: c_int, pc: u64) {
    if let Some(ends) = ends(descriptor) {
        record(Kind::Send, ends.kind, ends.out, false, pc);
        record(Kind::Send, ends.kind, ends.into, false, pc);
    }
}

/// A new socket is connected: its names are known now, and may not be later.
pub(super) fn connected(descriptor: c_int) {
    ends(descriptor);
}

/// The thread is about to listen at a socket.
pub(super) fn listen(descriptor: c_int, pc: u64) {
    let number = with(|channels| {
        let own = own_name(descriptor).unwrap_or_default();
        channels.number(Key::Listening(place(&own)))
    });
    if let Some(number) = number {
        record(Kind::Send, Channel::Socket, number, false, pc);
    }
}

/// The thread is about to connect a socket.
pub(super) fn connect(descriptor: c_int, to: *const sockaddr, bytes: socklen_t, pc: u64) {
    let number = with(|channels| {
        if let Some(about) = status(descriptor) {
            channels.sockets.remove(&about.st_ino);
        }
        channels.number(Key::Connecting(place(&given_name(to, bytes))))
    });
    if let Some(number) = number {
        record(Kind::Send, Channel::Socket, number, false, pc);
    }
}

/// The thread has connected a socket.
pub(super) fn has_connected(descriptor: c_int, to: *const sockaddr, bytes: socklen_t, pc: u64) {
    connected(descriptor);
    let number = with(|channels| channels.number(Key::Listening(place(&given_name(to, bytes)))));
    if let Some(number) = number {
        record(Kind::Receive, Channel::Socket, number, false, pc);
    }
}

/// Two sockets were created as a pair.
pub(super) fn pair(descriptors: [c_int; 2]) {
    with(|channels| {
        let [one, two] = descriptors.map(status);
        if let (Some(one), Some(two)) = (one, two) {
            let (kind, into, out) = (Channel::Socket, channels.next(), channels.next());
            channels.sockets.insert(one.st_ino, Ends { kind, into, out });
            channels.sockets.insert(two.st_ino, Ends { kind, into: out, out: into });
        }
    });
}

/// A descriptor is about to be closed: its number may come to mean something else.
pub(super) fn forget(descriptor: c_int) {
    with(|channels| channels.others.remove(&descriptor));
}

/// A descriptor was duplicated.
pub(super) fn duplicate(old: c_int, new: c_int) {
    with(|channels| {
        let number = channels.other(old);
        channels.others.insert(new, number);
    });
}

/// A descriptor was added to an epoll set, or got another word there.
pub(super) fn add(set: c_int, descriptor: c_int, data: u64) {
    with(|channels| {
        let ends = channels.ends(descriptor);
        let set = channels.other(set);
        channels.members.insert((set, descriptor), Member { data, ends });
    });
}

/// A descriptor was removed from an epoll set.
pub(super) fn remove(set: c_int, descriptor: c_int) {
    with(|channels| {
        let set = channels.other(set);
        channels.members.remove(&(set, descriptor));
    });
}

/// The thread has seen that a member of an epoll set is ready, by the program's word for it. If
/// that word is unknown, it may be any.
pub(super) fn receive_from_member(set: c_int, data: u64, pc: u64) {
    let seen = with(|channels| {
        let set = channels.other(set);
        let all = channels.members.range((set, c_int::MIN)..=(set, c_int::MAX));
        let mut members: Vec<(c_int, Member)> =
            all.map(|(&(_, descriptor), &member)| (descriptor, member)).collect();
        if members.iter().any(|(_, member)| member.data == data) {
            members.retain(|(_, member)| member.data == data);
        }
        let mut seen: Vec<(u64, Channel)> = Vec::new();
        for (descriptor, member) in members {
            let now = channels.ends(descriptor);
            seen.extend(member.ends.iter().chain(&now).map(|ends| (ends.into, ends.kind)));
        }
        seen.sort_unstable_by_key(|&(number, _)| number);
        seen.dedup_by_key(|(number, _)| *number);
        seen
    });
    for (number, kind) in seen.unwrap_or_default() {
        record(Kind::Receive, kind, number, false, pc);
    }
}

/// The thread is about to send into a POSIX message queue, or has received from it.
pub(super) fn queue(kind: Kind, descriptor: c_int, waited: bool, pc: u64) {
    let number = with(|channels| {
        let about = status(descriptor)?;
        Some(channels.number(Key::Inode(about.st_dev, about.st_ino)))
    });
    if let Some(number) = number.flatten() {
        record(kind, Channel::Queue, number, waited, pc);
    }
}

/// The thread is about to send into a System V message queue, or has received from it.
pub(super) fn messages(kind: Kind, queue: c_int, pc: u64) {
    if let Some(number) = with(|channels| channels.number(Key::Messages(queue))) {
        record(kind, Channel::Queue, number, false, pc);
    }
}

/// Whether a descriptor has another end, which sees that it is closed.
pub(super) fn has_other_end(descriptor: c_int) -> bool {
    let kind = status(descriptor).map_or(0, |about| about.st_mode & libc::S_IFMT);
    kind == libc::S_IFIFO || kind == libc::S_IFSOCK
}

impl Channels {
    fn next(&mut self) -> u64 {
        self.n += 1;
        self.n
    }

    fn number(&mut self, key: Key) -> u64 {
        if let Some(&number) = self.by_key.get(&key) {
            return number;
        }
        let number = self.next();
        self.by_key.insert(key, number);
        number
    }

    /// The channel of a descriptor that is known by its number.
    fn other(&mut self, descriptor: c_int) -> u64 {
        if let Some(&number) = self.others.get(&descriptor) {
            return number;
        }
        let number = self.next();
        self.others.insert(descriptor, number);
        number
    }

    fn ends(&mut self, descriptor: c_int) -> Option<Ends> {
        let about = status(descriptor)?;
        let both = |kind, number| Ends { kind, into: number, out: number };
        Some(match about.st_mode & libc::S_IFMT {
            libc::S_IFIFO => {
                let number = self.number(Key::Inode(about.st_dev, about.st_ino));
                both(Channel::Pipe, number)
            }
            libc::S_IFSOCK => self.socket(descriptor, about.st_ino),
            libc::S_IFCHR if is_terminal(about.st_rdev) => {
                both(Channel::Terminal, self.number(Key::Terminals))
            }
            // Event counters and the like have inodes without a kind, and often share one.
            0 => both(Channel::Event, self.other(descriptor)),
            _ => both(Channel::File, self.other(descriptor)),
        })
    }

    fn socket(&mut self, descriptor: c_int, inode: u64) -> Ends {
        if let Some(&ends) = self.sockets.get(&inode) {
            return ends;
        }
        let kind = Channel::Socket;
        let all = |number| Ends { kind, into: number, out: number };
        let is_named = matches!(
            option(descriptor, libc::SO_DOMAIN),
            Some(libc::AF_UNIX | libc::AF_INET | libc::AF_INET6)
        );
        match option(descriptor, libc::SO_TYPE) {
            Some(libc::SOCK_STREAM | libc::SOCK_SEQPACKET) if is_named => {}
            Some(libc::SOCK_DGRAM) => return all(self.number(Key::Datagrams)),
            _ => return all(self.number(Key::Sockets)),
        }
        let own = own_name(descriptor).unwrap_or_default();
        let ends = if option(descriptor, libc::SO_ACCEPTCONN) == Some(1) {
            let place = place(&own);
            let into = self.number(Key::Connecting(place.clone()));
            Ends { kind, into, out: self.number(Key::Listening(place)) }
        } else if let Some(peer) = asked_name(libc::SYS_getpeername, descriptor) {
            let into = self.number(Key::Stream { from: peer.clone(), to: own.clone() });
            Ends { kind, into, out: self.number(Key::Stream { from: own, to: peer }) }
        } else {
            return all(self.number(Key::Sockets));
        };
        self.sockets.insert(inode, ends);
        ends
    }
}

fn status(descriptor: c_int) -> Option<libc::stat> {
    // SAFETY: zeroes are a valid value of this plain struct.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    (sys::syscall!(libc::SYS_fstat, descriptor, &raw mut about) == 0).then_some(about)
}

fn is_terminal(device: u64) -> bool {
    // Consoles, the own terminal and new pairs, the other ends of pairs.
    matches!(libc::major(device), 4 | 5 | 136..=143)
}

fn option(descriptor: c_int, option: c_int) -> Option<c_int> {
    let mut value: c_int = 0;
    let mut bytes = size_of::<c_int>() as socklen_t;
    let status = sys::syscall!(
        libc::SYS_getsockopt,
        descriptor,
        libc::SOL_SOCKET,
        option,
        &raw mut value,
        &raw mut bytes
    );
    (status == 0).then_some(value)
}

/// As long as an address of any family.
const ADDRESS_BYTES: usize = size_of::<libc::sockaddr_storage>();

fn own_name(descriptor: c_int) -> Option<Name> {
    asked_name(libc::SYS_getsockname, descriptor)
}

/// A name that the kernel tells by this system call.
fn asked_name(call: c_long, descriptor: c_int) -> Option<Name> {
    let mut address = [0u8; ADDRESS_BYTES];
    let mut bytes = ADDRESS_BYTES as socklen_t;
    let status = sys::syscall!(call, descriptor, address.as_mut_ptr(), &raw mut bytes);
    (status == 0).then(|| name(&address[..ADDRESS_BYTES.min(bytes as usize)]))
}

/// The name that the program gives. Its pointer may be wild.
fn given_name(address: *const sockaddr, bytes: socklen_t) -> Name {
    let mut copy = [0u8; ADDRESS_BYTES];
    let bytes = ADDRESS_BYTES.min(bytes as usize);
    sys::read_own_memory(address as u64, &mut copy[..bytes]);
    name(&copy[..bytes])
}

/// A name as all who use it spell it: IPv4 as part of IPv6, and paths without what follows them.
fn name(address: &[u8]) -> Name {
    const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    let Some((family, rest)) = address.split_first_chunk::<2>() else { return Name::new() };
    match (c_int::from(u16::from_le_bytes(*family)), rest) {
        (libc::AF_INET, rest) if rest.len() >= 6 => inet(&MAPPED, &rest[2..6], &rest[..2]),
        (libc::AF_INET6, rest) if rest.len() >= 22 => inet(&[], &rest[6..22], &rest[..2]),
        (libc::AF_UNIX, [0, ..]) => [&b"u"[..], rest].concat(),
        (libc::AF_UNIX, _) => {
            let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
            [&b"u"[..], &rest[..end]].concat()
        }
        _ => address.to_vec(),
    }
}

fn inet(before: &[u8], address: &[u8], port: &[u8]) -> Name {
    [&b"i"[..], before, address, port].concat()
}

/// What a connection and its listener have in common: the port, since who listens may do so at
/// all addresses, or the path.
fn place(name: &Name) -> Name {
    match name[..] {
        [b'i', .., high, low] => [b'p', high, low].to_vec(),
        _ => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_in_both_families() {
        let four = [2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut six = [0; 28];
        six[..4].copy_from_slice(&[10, 0, 0x1f, 0x90]);
        six[18..24].copy_from_slice(&[0xff, 0xff, 127, 0, 0, 1]);
        assert_eq!(name(&four), name(&six));
        assert_eq!(place(&name(&four)), b"p\x1f\x90");
    }

    #[test]
    fn a_path_ends_at_its_zero_unless_it_begins_with_one() {
        assert_eq!(name(b"\x01\x00/tmp/s\0"), name(b"\x01\x00/tmp/s"));
        assert_ne!(name(b"\x01\x00\0one"), name(b"\x01\x00\0two"));
        assert_eq!(name(b"\x01\x00"), b"u");
        assert_eq!(name(b""), b"");
    }
}
