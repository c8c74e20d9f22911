//! What an event accesses: the one place that says which events touch memory or a synchronization
//! object. The compiler asks here about every new event.

use raddle_trace::event::{AtomicAction, Op};
use raddle_trace::id::Addr;

use crate::witness::AccessKind;

/// What an event does, where, and to how many bytes; none if it accesses nothing. Synchronization
/// objects are memory too. They count as one byte, since they are used as a whole.
#[inline]
pub fn accessed(op: &Op) -> Option<(AccessKind, Addr, u64)> {
    Some(match *op {
        Op::Read(access) => (AccessKind::Read, access.addr, access.bytes),
        Op::Write(access) => (AccessKind::Write, access.addr, access.bytes),
        Op::Atomic(atomic) => {
            let kind = match atomic.action {
                AtomicAction::Load | AtomicAction::Miss => AccessKind::AtomicRead,
                AtomicAction::Store | AtomicAction::Update | AtomicAction::Swap => {
                    AccessKind::AtomicWrite
                }
            };
            (kind, atomic.addr, u64::from(atomic.bytes))
        }
        Op::Free { block, bytes } | Op::Unmap { addr: block, bytes } => {
            (AccessKind::Free, block, bytes)
        }
        Op::Acquire(lock) => (AccessKind::Acquire, lock.lock, 1),
        Op::Release(lock) => (AccessKind::Release, lock.lock, 1),
        Op::Init { object, .. } => (AccessKind::Init, object, 1),
        Op::Destroy { object, .. } => (AccessKind::Destroy, object, 1),
        Op::CondWait { cond, .. } => (AccessKind::Wait, cond, 1),
        Op::CondSignal { cond, .. } | Op::CondBroadcast { cond, .. } => {
            (AccessKind::Signal, cond, 1)
        }
        Op::SemPost(semaphore) => (AccessKind::Signal, semaphore, 1),
        Op::SemWait { semaphore, .. } => (AccessKind::Lower, semaphore, 1),
        Op::SemAsk(semaphore) => (AccessKind::Ask, semaphore, 1),
        Op::BarrierEnter(barrier) => (AccessKind::Wait, barrier, 1),
        Op::Fence { .. }
        | Op::Enter { .. }
        | Op::Leave
        | Op::Switch { .. }
        | Op::Choice { .. }
        | Op::Spawn(_)
        | Op::Begin { .. }
        | Op::End
        | Op::Join(_)
        | Op::Detach(_)
        | Op::CondWake { .. }
        | Op::BarrierLeave(_)
        | Op::OnceBegin(_)
        | Op::OnceEnd { .. }
        | Op::OncePass(_)
        | Op::Before(_)
        | Op::After(_)
        | Op::FutexWait { .. }
        | Op::FutexWoken { .. }
        | Op::FutexWake { .. }
        | Op::Send(_)
        | Op::Receive(_)
        | Op::Map { .. }
        | Op::Alloc { .. }
        | Op::Sleep { .. }
        | Op::Yield
        | Op::Block { .. }
        | Op::Unblock { .. }
        | Op::Clock { .. }
        | Op::Exit { .. }
        | Op::Fork
        | Op::Signal { .. }
        | Op::UnitBegin(_)
        | Op::UnitEnd(_)
        | Op::Fiber(_)
        | Op::Step
        | Op::Repeats { .. } => return None,
    })
}
