//! Misuse of synchronization objects.
//!
//! The runtime stores three codes; only the parent turns them into words.

use core::fmt;

use crate::record::{Lock, codes};

/// How a synchronization object was misused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
pub struct Misuse {
    /// The operation that the thread was about to perform.
    pub operation: Operation,
    /// The kind of object.
    pub object: Lock,
    /// Why that is wrong.
    pub fault: Fault,
}

impl Misuse {
    /// The codes stored in the control block.
    #[must_use]
    pub const fn codes(self) -> [u8; 3] {
        [self.operation as u8, self.object as u8, self.fault as u8]
    }

    /// Decodes what the control block holds; none if it is not a misuse.
    #[must_use]
    pub fn from_codes([operation, object, fault]: [u8; 3]) -> Option<Self> {
        Some(Self {
            operation: Operation::from_u8(operation)?,
            object: Lock::from_u8(object)?,
            fault: Fault::from_u8(fault)?,
        })
    }
}

codes! {
    /// What a thread does to a synchronization object.
    Operation:
    /// Acquires a lock exclusively.
    Lock = 1,
    /// Acquires a reader-writer lock for reading.
    ReadLock = 2,
    /// Acquires a lock exclusively if that does not require waiting.
    TryLock = 3,
    /// Acquires a reader-writer lock for reading if that does not require waiting.
    TryReadLock = 4,
    /// Releases a lock.
    Unlock = 5,
    /// Waits on a condition variable, or at a barrier, or for a semaphore.
    Wait = 6,
    /// Decrements a semaphore if that does not require waiting.
    TryWait = 7,
    /// Releases a mutex in order to wait on a condition variable.
    WaitWith = 8,
    /// Wakes one waiter of a condition variable.
    Signal = 9,
    /// Wakes all waiters of a condition variable.
    Broadcast = 10,
    /// Increments a semaphore.
    Post = 11,
    /// Reads the value of a semaphore.
    Value = 12,
    /// Destroys an object.
    Destroy = 13,
    /// Frees the memory that contains an object.
    Free = 14,
}

codes! {
    /// What is wrong with an object, given the operation.
    Fault:
    /// The pointer is null, or close to it.
    Null = 1,
    /// Its memory was freed.
    Freed = 2,
    /// It was destroyed.
    Destroyed = 3,
    /// Its memory was never initialized as such an object.
    Uninitialized = 4,
    /// Another thread holds it.
    HeldByOther = 5,
    /// No thread holds it.
    NotHeld = 6,
    /// Some thread holds it.
    Held = 7,
    /// A thread waits for it.
    Awaited = 8,
}

/// Continues after the name of a thread: «locks a mutex that was destroyed».
impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A thread waits on a condition variable, at a barrier, and for the others.
        let preposition = match self.object {
            Lock::Cond => "on",
            Lock::Barrier => "at",
            Lock::Mutex | Lock::RwLock | Lock::Spin | Lock::Semaphore | Lock::Annotated => "for",
        };
        match self.operation {
            Operation::Lock => f.write_str("locks"),
            Operation::ReadLock => f.write_str("read-locks"),
            Operation::TryLock => f.write_str("tries to lock"),
            Operation::TryReadLock => f.write_str("tries to read-lock"),
            Operation::Unlock => f.write_str("unlocks"),
            Operation::Wait => write!(f, "waits {preposition}"),
            Operation::TryWait => write!(f, "tries to wait {preposition}"),
            Operation::WaitWith => f.write_str("waits on a condition variable with"),
            Operation::Signal => f.write_str("signals"),
            Operation::Broadcast => f.write_str("broadcasts to"),
            Operation::Post => f.write_str("posts"),
            Operation::Value => f.write_str("reads the value of"),
            Operation::Destroy => f.write_str("destroys"),
            Operation::Free => f.write_str("frees the memory of"),
        }?;
        f.write_str(match self.object {
            Lock::Mutex => " a mutex ",
            Lock::RwLock => " a reader-writer lock ",
            Lock::Spin => " a spin lock ",
            Lock::Cond => " a condition variable ",
            Lock::Semaphore => " a semaphore ",
            Lock::Barrier => " a barrier ",
            Lock::Annotated => " a lock ",
        })?;
        match self.fault {
            Fault::Null => f.write_str("through a null pointer"),
            Fault::Freed => f.write_str("in memory that was freed"),
            Fault::Destroyed => f.write_str("that was destroyed"),
            Fault::Uninitialized => f.write_str("that was never initialized"),
            Fault::HeldByOther => f.write_str("that another thread holds"),
            Fault::NotHeld => f.write_str("that no thread holds"),
            Fault::Held => f.write_str("that is held"),
            Fault::Awaited => write!(f, "that a thread waits {preposition}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(operation: Operation, object: Lock, fault: Fault, words: &str) {
        let misuse = Misuse { operation, object, fault };
        assert_eq!(misuse.to_string(), words);
        assert_eq!(Misuse::from_codes(misuse.codes()), Some(misuse));
    }

    #[test]
    fn codes_come_back_as_words() {
        check(Operation::Lock, Lock::Mutex, Fault::Destroyed, "locks a mutex that was destroyed");
        check(
            Operation::Destroy,
            Lock::Barrier,
            Fault::Awaited,
            "destroys a barrier that a thread waits at",
        );
        check(
            Operation::Wait,
            Lock::Cond,
            Fault::Null,
            "waits on a condition variable through a null pointer",
        );
        check(
            Operation::WaitWith,
            Lock::Mutex,
            Fault::NotHeld,
            "waits on a condition variable with a mutex that no thread holds",
        );
        check(
            Operation::Free,
            Lock::RwLock,
            Fault::Held,
            "frees the memory of a reader-writer lock that is held",
        );
    }

    #[test]
    fn what_is_no_code_is_no_misuse() {
        assert_eq!(Misuse::from_codes([0, 0, 0]), None);
        assert_eq!(Misuse::from_codes([Operation::Lock as u8, Lock::Mutex as u8, 200]), None);
    }
}
