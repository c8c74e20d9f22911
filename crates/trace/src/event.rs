//! Events: records, decoded.
//!
//! An [`Event`] is one operation as it was performed. Records that only carry payload or say
//! which thread runs are folded into the events around them, so readers of events never handle a
//! record.

use crate::id::{Addr, Pc, ThreadId};
use crate::record::{self, Channel, Kind, Lock, Record, Switch, Wake};

/// One operation, as it was performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The thread that performed it.
    pub thread: ThreadId,
    /// Its code address.
    pub pc: Pc,
    /// The operation.
    pub op: Op,
}

/// What a thread can do that another thread can see, and what is needed to interpret it.
#[expect(missing_docs, reason = "a field is named for what it holds")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A read of memory.
    Read(Access),
    /// A write of memory.
    Write(Access),
    /// An atomic operation.
    Atomic(Atomic),
    /// A fence with its memory order.
    Fence { order: u8 },
    /// Function entry; it will return to this address.
    Enter { return_to: Pc },
    /// Function exit.
    Leave,
    /// The thread received the turn from the previous one.
    Switch { reason: Switch, stopped_at: Pc, steps: u64 },
    /// A choice other than a switch.
    Choice { taken: u64, of: u8 },
    /// A thread was created.
    Spawn(ThreadId),
    /// The thread starts.
    Begin { parent: ThreadId, stack_low: Addr, stack_high: Addr },
    /// The thread ends.
    End,
    /// A thread was joined.
    Join(ThreadId),
    /// A thread was detached.
    Detach(ThreadId),
    /// A lock was acquired.
    Acquire(LockOp),
    /// A lock was released.
    Release(LockOp),
    /// A synchronization object was initialized.
    Init { object: Addr, kind: Lock },
    /// A synchronization object was destroyed.
    Destroy { object: Addr, kind: Lock },
    /// A wait on a condition variable begins; its mutex was released just before.
    CondWait { cond: Addr, mutex: Addr },
    /// The wait is over; its mutex is acquired next.
    CondWake { cond: Addr, how: Wake, by: ThreadId },
    /// A waiter was woken, if there was one.
    CondSignal { cond: Addr, n_woken: u16 },
    /// All waiters were woken.
    CondBroadcast { cond: Addr, n_woken: u16 },
    /// A semaphore was incremented.
    SemPost(Addr),
    /// A semaphore was decremented.
    SemWait { semaphore: Addr, tried: bool },
    /// The value of a semaphore was read.
    SemAsk(Addr),
    /// A barrier was reached.
    BarrierEnter(Addr),
    /// A barrier was left.
    BarrierLeave(Addr),
    /// One-time initialization begins.
    OnceBegin(Addr),
    /// One-time initialization ended, completed or abandoned.
    OnceEnd { control: Addr, done: bool },
    /// One-time initialization was already complete.
    OncePass(Addr),
    /// Releases to threads that acquire at this address.
    Before(Addr),
    /// Acquires what was released at this address.
    After(Addr),
    /// A futex wait begins.
    FutexWait { futex: Addr, expected: u64 },
    /// A futex wait is over.
    FutexWoken { futex: Addr, how: Wake, by: ThreadId },
    /// A futex wake.
    FutexWake { futex: Addr, n_woken: u16 },
    /// Something is put into a channel.
    Send(ChannelOp),
    /// Something was received from a channel, or seen in it.
    Receive(ChannelOp),
    /// Memory was mapped.
    Map { addr: Addr, bytes: u64 },
    /// Memory is unmapped.
    Unmap { addr: Addr, bytes: u64 },
    /// A block of memory was allocated: the requested size, and the actual one.
    Alloc { block: Addr, bytes: u64, room: u64 },
    /// A block of memory is freed.
    Free { block: Addr, bytes: u64 },
    /// A sleep.
    Sleep { ns: u64 },
    /// The processor is yielded.
    Yield,
    /// A call that may block on a file descriptor begins.
    Block { descriptor: i64 },
    /// The call is over.
    Unblock { descriptor: i64 },
    /// Virtual time jumped.
    Clock { ns: u64 },
    /// The process is about to exit.
    Exit { status: u8 },
    /// The process forked.
    Fork,
    /// A signal.
    Signal { number: u8, address: Addr },
    /// The start of a region that the user marked as atomic.
    UnitBegin(Addr),
    /// The end of the region.
    UnitEnd(Addr),
    /// The thread continues as another fiber.
    Fiber(Addr),
    /// A step other than a plain access was counted, usually that of the following event.
    Step,
    /// Plain accesses that repeat earlier ones and were not recorded: see [`Access::repeats`].
    Repeats { n: u64 },
}

impl Op {
    /// The kind of its record.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Read(access) if access.range => Kind::ReadRange,
            Self::Read(_) => Kind::Read,
            Self::Write(access) if access.range => Kind::WriteRange,
            Self::Write(_) => Kind::Write,
            Self::Atomic(atomic) => match atomic.action {
                AtomicAction::Load => Kind::AtomicLoad,
                AtomicAction::Store => Kind::AtomicStore,
                AtomicAction::Update => Kind::AtomicUpdate,
                AtomicAction::Swap => Kind::AtomicSwap,
                AtomicAction::Miss => Kind::AtomicMiss,
            },
            Self::Fence { .. } => Kind::Fence,
            Self::Enter { .. } => Kind::Enter,
            Self::Leave => Kind::Leave,
            Self::Switch { .. } => Kind::Switch,
            Self::Choice { .. } => Kind::Choice,
            Self::Spawn(_) => Kind::Spawn,
            Self::Begin { .. } => Kind::Begin,
            Self::End => Kind::End,
            Self::Join(_) => Kind::Join,
            Self::Detach(_) => Kind::Detach,
            Self::Acquire(_) => Kind::Acquire,
            Self::Release(_) => Kind::Release,
            Self::Init { .. } => Kind::Init,
            Self::Destroy { .. } => Kind::Destroy,
            Self::CondWait { .. } => Kind::CondWait,
            Self::CondWake { .. } => Kind::CondWake,
            Self::CondSignal { .. } => Kind::CondSignal,
            Self::CondBroadcast { .. } => Kind::CondBroadcast,
            Self::SemPost(_) => Kind::SemPost,
            Self::SemWait { .. } => Kind::SemWait,
            Self::SemAsk(_) => Kind::SemAsk,
            Self::BarrierEnter(_) => Kind::BarrierEnter,
            Self::BarrierLeave(_) => Kind::BarrierLeave,
            Self::OnceBegin(_) => Kind::OnceBegin,
            Self::OnceEnd { .. } => Kind::OnceEnd,
            Self::OncePass(_) => Kind::OncePass,
            Self::Before(_) => Kind::Before,
            Self::After(_) => Kind::After,
            Self::FutexWait { .. } => Kind::FutexWait,
            Self::FutexWoken { .. } => Kind::FutexWoken,
            Self::FutexWake { .. } => Kind::FutexWake,
            Self::Send(_) => Kind::Send,
            Self::Receive(_) => Kind::Receive,
            Self::Map { .. } => Kind::Map,
            Self::Unmap { .. } => Kind::Unmap,
            Self::Alloc { .. } => Kind::Alloc,
            Self::Free { .. } => Kind::Free,
            Self::Sleep { .. } => Kind::Sleep,
            Self::Yield => Kind::Yield,
            Self::Block { .. } => Kind::Block,
            Self::Unblock { .. } => Kind::Unblock,
            Self::Clock { .. } => Kind::Clock,
            Self::Exit { .. } => Kind::Exit,
            Self::Fork => Kind::Fork,
            Self::Signal { .. } => Kind::Signal,
            Self::UnitBegin(_) => Kind::UnitBegin,
            Self::UnitEnd(_) => Kind::UnitEnd,
            Self::Fiber(_) => Kind::Fiber,
            Self::Step => Kind::Step,
            Self::Repeats { .. } => Kind::Repeats,
        }
    }
}

/// A plain access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// First byte accessed.
    pub addr: Addr,
    /// Size of the access.
    pub bytes: u64,
    /// Whether through a volatile lvalue.
    pub volatile: bool,
    /// Whether to an object's virtual table pointer.
    pub vptr: bool,
    /// Whether by a library call that touches a range.
    pub range: bool,
    /// Number of accesses before this one, since the thread's last event other than calls, that
    /// were not recorded: each equals one (in kind, size, address and code address) that the
    /// thread performed at least twice since it last synchronized, allocated, was switched to, or
    /// did anything other than plain accesses and calls. They are steps, and count as events.
    pub repeats: u16,
}

/// An atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atomic {
    /// First byte accessed.
    pub addr: Addr,
    /// Size of the access.
    pub bytes: u8,
    /// What it did.
    pub action: AtomicAction,
    /// Memory order in C ABI numbering: relaxed 0, consume 1, acquire 2, release 3,
    /// acquire-release 4, sequentially consistent 5.
    pub order: u8,
    /// The value before (the lower half for 16-byte operations).
    pub before: u64,
    /// The value after; for [`AtomicAction::Miss`], the value that was not stored.
    pub after: u64,
}

/// What an atomic operation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicAction {
    /// Read.
    Load,
    /// Write.
    Store,
    /// Read and write: exchange, fetch-and-op.
    Update,
    /// Successful compare-and-exchange.
    Swap,
    /// Failed compare-and-exchange.
    Miss,
}

/// A lock operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockOp {
    /// Address of the lock.
    pub lock: Addr,
    /// The kind of lock.
    pub kind: Lock,
    /// Whether for reading.
    pub shared: bool,
    /// Whether by a call that does not wait.
    pub tried: bool,
}

/// An operation on a channel: whatever carries bytes from thread to thread, such as a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelOp {
    /// Its number, in order of first use and never reused within a run. Each direction of a
    /// socket is a channel.
    pub channel: u64,
    /// What it is made of.
    pub kind: Channel,
    /// Whether the thread had to wait for room.
    pub waited: bool,
}

/// Why records could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// An undefined kind of record.
    #[error("unknown record kind {0}")]
    Kind(u8),
    /// An undefined code.
    #[error("record of kind {0:?} with unknown code {1}")]
    Code(Kind, u8),
    /// Payload without a record that it belongs to.
    #[error("payload without a record")]
    Stray,
    /// A record without the payload that it needs.
    #[error("record of kind {0:?} without its payload")]
    Short(Kind),
}

/// How many [`Kind::More`] records follow a record of this kind.
#[must_use]
pub const fn n_more(kind: Kind) -> usize {
    match kind {
        Kind::ReadRange
        | Kind::WriteRange
        | Kind::AtomicLoad
        | Kind::Switch
        | Kind::CondWait
        | Kind::FutexWait
        | Kind::Map
        | Kind::Unmap
        | Kind::Alloc
        | Kind::Free
        | Kind::Sleep
        | Kind::Clock
        | Kind::Time => 1,
        Kind::AtomicStore | Kind::AtomicUpdate | Kind::AtomicSwap | Kind::AtomicMiss => 2,
        Kind::Begin => 3,
        _ => 0,
    }
}

/// Whether an operation of this kind counts as an event.
///
/// Everything that a thread performs is an event: accesses, synchronization, function entry and
/// exit, allocation, sleeps, signals, marks. Bookkeeping is not: who runs ([`Kind::Switch`]),
/// what was chosen ([`Kind::Choice`]), the time ([`Kind::Clock`], [`Kind::Time`]), what was
/// counted ([`Kind::Step`], [`Kind::Repeats`]; the accesses that the latter represents are
/// events), and payload ([`Kind::More`]).
#[must_use]
pub const fn is_event(kind: Kind) -> bool {
    use Kind::{Choice, Clock, More, Repeats, Step, Switch, Time};
    !matches!(kind, More | Switch | Choice | Clock | Time | Step | Repeats)
}

/// Records with their counts, which are computed once, since this is done for every record.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The records.
    pub records: &'a [Record],
    /// Number of events that they begin: see [`is_event`].
    pub n_begun: u64,
    /// Number of repeats that they represent: see [`Access::repeats`].
    pub n_repeats: u64,
    /// Whether all are plain accesses, entries or exits.
    pub is_plain: bool,
}

impl<'a> Batch<'a> {
    /// Counts the records.
    #[must_use]
    pub fn new(records: &'a [Record]) -> Self {
        let mut batch = Self { records, n_begun: 0, n_repeats: 0, is_plain: true };
        for group in records.chunks(GROUP_RECORDS) {
            let (n_begun, n_repeats) = match n_repeats_if_plain(group) {
                Some(n_repeats) => (group.len() as u64, n_repeats),
                None => {
                    batch.is_plain = false;
                    (n_begun(group), n_repeats(group))
                }
            };
            batch.n_begun += n_begun;
            batch.n_repeats = batch.n_repeats.wrapping_add(n_repeats);
        }
        batch
    }
}

/// Number of records processed together. In most groups all are plain.
const GROUP_RECORDS: usize = 64;

/// Like [`n_repeats`], if there are only plain accesses, entries and exits. Branch-free, so that
/// the compiler vectorizes it.
fn n_repeats_if_plain(records: &[Record]) -> Option<u64> {
    /// The bits in which the kinds differ, and the one among them that distinguishes calls.
    const OWN: u64 = (READ ^ WRITE | READ ^ ENTER | READ ^ LEAVE) as u64;
    const CALL_SHIFT: u32 = 56 + (READ ^ ENTER).ilog2();
    const _: () = assert!(OWN == 5 && READ ^ WRITE == 1 && ENTER ^ LEAVE == 1);
    let (mut others, mut n) = (0, 0_u64);
    for record in records {
        others |= record.head >> 56 & !OWN ^ u64::from(READ);
        let is_access = (record.head >> CALL_SHIFT & 1).wrapping_sub(1);
        n = n.wrapping_add(record.tail >> 48 & is_access);
    }
    (others == 0).then_some(n)
}

fn n_repeats(records: &[Record]) -> u64 {
    // Branch-free.
    let repeats = |record: &Record| {
        let kind = (record.head >> 56) as u8;
        let before = if kind == READ || kind == WRITE { record.tail >> 48 } else { 0 };
        before + if kind == REPEATS { record.operand() } else { 0 }
    };
    records.iter().map(repeats).fold(0, u64::wrapping_add)
}

fn n_begun(records: &[Record]) -> u64 {
    // Without a branch or a table.
    let begins = |record: &Record| EVENTS.checked_shr((record.head >> 56) as u32).unwrap_or(0) & 1;
    records.iter().map(begins).sum()
}

/// The kinds that count as events, one bit each.
const EVENTS: u64 = {
    let mut bits = 0;
    let mut i = 0;
    while i < Kind::ALL.len() {
        assert!((Kind::ALL[i] as u32) < u64::BITS);
        if is_event(Kind::ALL[i]) {
            bits |= 1 << Kind::ALL[i] as u32;
        }
        i += 1;
    }
    bits
};

/// Turns a stream of records into events.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    thread: u32,
    pending: Option<Record>,
    more: [u64; 3],
    n_more: usize,
    time: Option<u64>,
}

impl Decoder {
    /// A decoder for a stream that starts with `thread`.
    #[must_use]
    pub fn new(thread: ThreadId) -> Self {
        Self { thread: thread.0, ..Self::default() }
    }

    /// The time stamp of the last event, in free mode.
    #[must_use]
    pub fn time(&self) -> Option<u64> {
        self.time
    }

    /// The event of a record that is complete by itself and of a frequent kind. A separate path:
    /// inlined, it takes a fraction of the time of [`Decoder::push`].
    #[inline]
    pub(crate) fn frequent(&self, record: Record) -> Option<Event> {
        let op = match (record.head >> 56) as u8 {
            _ if self.pending.is_some() => return None,
            READ => Op::Read(plain(record)),
            WRITE => Op::Write(plain(record)),
            ENTER => Op::Enter { return_to: Pc(record.operand()) },
            LEAVE => Op::Leave,
            _ => return None,
        };
        Some(Event { thread: ThreadId(self.thread), pc: Pc(record.pc()), op })
    }

    /// Adds the next record and returns the event that it completes.
    pub fn push(&mut self, record: Record) -> Result<Option<Event>, DecodeError> {
        let kind = record.kind().ok_or(DecodeError::Kind((record.head >> 56) as u8))?;
        if let Some(first) = self.pending {
            let first_kind = first.kind().ok_or(DecodeError::Stray)?;
            if kind != Kind::More {
                return Err(DecodeError::Short(first_kind));
            }
            self.more[self.n_more] = record.tail;
            self.n_more += 1;
            if self.n_more < n_more(first_kind) {
                return Ok(None);
            }
            self.pending = None;
            return self.event(first_kind, first);
        }
        if kind == Kind::More {
            return Err(DecodeError::Stray);
        }
        if n_more(kind) > 0 {
            self.pending = Some(record);
            self.n_more = 0;
            return Ok(None);
        }
        self.event(kind, record)
    }

    fn event(&mut self, kind: Kind, record: Record) -> Result<Option<Event>, DecodeError> {
        let operand = record.operand();
        let addr = Addr(operand);
        let other = ThreadId(operand as u32);
        let by = ThreadId(u32::from(record.extra()));
        let info = record.info();
        let order = record.extra() as u8;
        let [first, second, third] = self.more;
        let code = |code: Option<Lock>| code.ok_or(DecodeError::Code(kind, info));
        let wake = || Wake::from_u8(info).ok_or(DecodeError::Code(kind, info));
        let range =
            Access { addr, bytes: first, volatile: false, vptr: false, range: true, repeats: 0 };
        let atomic = |action, before, after| {
            Op::Atomic(Atomic { addr, bytes: info, action, order, before, after })
        };
        let lock = || {
            Ok(LockOp {
                lock: addr,
                kind: code(Lock::from_u8(info & record::LOCK))?,
                shared: info & record::SHARED != 0,
                tried: info & record::TRIED != 0,
            })
        };
        let unknown = DecodeError::Code(kind, info);
        let channel = || {
            let kind = Channel::from_u8(info & record::CHANNEL);
            Ok(ChannelOp {
                channel: operand,
                kind: kind.ok_or(unknown)?,
                waited: info & record::WAITED != 0,
            })
        };
        let op = match kind {
            Kind::More => return Err(DecodeError::Stray),
            Kind::Read => Op::Read(plain(record)),
            Kind::Write => Op::Write(plain(record)),
            Kind::ReadRange => Op::Read(range),
            Kind::WriteRange => Op::Write(range),
            Kind::Enter => Op::Enter { return_to: Pc(operand) },
            Kind::Leave => Op::Leave,
            Kind::AtomicLoad => atomic(AtomicAction::Load, first, first),
            Kind::AtomicStore => atomic(AtomicAction::Store, first, second),
            Kind::AtomicUpdate => atomic(AtomicAction::Update, first, second),
            Kind::AtomicSwap => atomic(AtomicAction::Swap, first, second),
            Kind::AtomicMiss => atomic(AtomicAction::Miss, first, second),
            Kind::Fence => Op::Fence { order },
            Kind::Switch => {
                self.thread = operand as u32;
                Op::Switch {
                    reason: Switch::from_u8(info).ok_or(DecodeError::Code(kind, info))?,
                    stopped_at: Pc(record.pc()),
                    steps: first,
                }
            }
            Kind::Choice => Op::Choice { taken: operand, of: info },
            Kind::Spawn => Op::Spawn(other),
            Kind::Begin => Op::Begin {
                parent: ThreadId(first as u32),
                stack_low: Addr(second),
                stack_high: Addr(third),
            },
            Kind::End => Op::End,
            Kind::Join => Op::Join(other),
            Kind::Detach => Op::Detach(other),
            Kind::Acquire => Op::Acquire(lock()?),
            Kind::Release => Op::Release(lock()?),
            Kind::Init => Op::Init { object: addr, kind: code(Lock::from_u8(info))? },
            Kind::Destroy => Op::Destroy { object: addr, kind: code(Lock::from_u8(info))? },
            Kind::CondWait => Op::CondWait { cond: addr, mutex: Addr(first) },
            Kind::CondWake => Op::CondWake { cond: addr, how: wake()?, by },
            Kind::CondSignal => Op::CondSignal { cond: addr, n_woken: u16::from(info) },
            Kind::CondBroadcast => Op::CondBroadcast { cond: addr, n_woken: record.extra() },
            Kind::SemPost => Op::SemPost(addr),
            Kind::SemWait => Op::SemWait { semaphore: addr, tried: info & record::TRIED != 0 },
            Kind::SemAsk => Op::SemAsk(addr),
            Kind::BarrierEnter => Op::BarrierEnter(addr),
            Kind::BarrierLeave => Op::BarrierLeave(addr),
            Kind::OnceBegin => Op::OnceBegin(addr),
            Kind::OnceEnd => Op::OnceEnd { control: addr, done: info == 0 },
            Kind::OncePass => Op::OncePass(addr),
            Kind::Before => Op::Before(addr),
            Kind::After => Op::After(addr),
            Kind::FutexWait => Op::FutexWait { futex: addr, expected: first },
            Kind::FutexWoken => Op::FutexWoken { futex: addr, how: wake()?, by },
            Kind::FutexWake => Op::FutexWake { futex: addr, n_woken: record.extra() },
            Kind::Send => Op::Send(channel()?),
            Kind::Receive => Op::Receive(channel()?),
            Kind::Map => Op::Map { addr, bytes: first },
            Kind::Unmap => Op::Unmap { addr, bytes: first },
            Kind::Alloc => {
                let room = first.saturating_add(record.extra().into());
                Op::Alloc { block: addr, bytes: first, room }
            }
            Kind::Free => Op::Free { block: addr, bytes: first },
            Kind::Sleep => Op::Sleep { ns: first },
            Kind::Yield => Op::Yield,
            Kind::Block => Op::Block { descriptor: i64::from(operand as i32) },
            Kind::Unblock => Op::Unblock { descriptor: i64::from(operand as i32) },
            Kind::Clock => Op::Clock { ns: first },
            Kind::Exit => Op::Exit { status: info },
            Kind::Fork => Op::Fork,
            Kind::Signal => Op::Signal { number: info, address: addr },
            Kind::UnitBegin => Op::UnitBegin(addr),
            Kind::UnitEnd => Op::UnitEnd(addr),
            Kind::Time => {
                self.time = Some(first);
                return Ok(None);
            }
            Kind::Fiber => Op::Fiber(addr),
            Kind::Step => Op::Step,
            Kind::Repeats => Op::Repeats { n: operand },
        };
        Ok(Some(Event { thread: ThreadId(self.thread), pc: Pc(record.pc()), op }))
    }
}

const READ: u8 = Kind::Read as u8;
const WRITE: u8 = Kind::Write as u8;
const ENTER: u8 = Kind::Enter as u8;
const LEAVE: u8 = Kind::Leave as u8;
const REPEATS: u8 = Kind::Repeats as u8;

#[inline]
fn plain(record: Record) -> Access {
    let info = record.info();
    Access {
        addr: Addr(record.operand()),
        bytes: u64::from(info & record::SIZE),
        volatile: info & record::VOLATILE != 0,
        vptr: info & record::VPTR != 0,
        range: false,
        repeats: record.extra(),
    }
}
