//! What is kept of each thread that is followed.

use crate::origin::Location;
use crate::shadow::Shadow;
use crate::tracee::{N_DEBUG_REGISTERS, Registers, Watched};

#[derive(Debug)]
pub(super) struct Thread {
    pub(super) number: u32,
    pub(super) shadow: Shadow,
    pub(super) is_stepping: bool,
    /// It was stopped by a protected page, which is open now.
    pub(super) is_let_through: bool,
    /// Calls that run at full speed, outermost first.
    pub(super) overs: Vec<FastCall>,
    pub(super) armed: Option<[Option<(u64, Watched)>; N_DEBUG_REGISTERS]>,
    /// It has not stopped yet since it was created.
    pub(super) is_new: bool,
    /// We have told it to stop, and it has not yet done so.
    pub(super) is_called: bool,
    pub(super) system_call: SystemCall,
}

/// Where a thread is with a system call, while pages are protected.
#[derive(Clone, Debug)]
pub(super) enum SystemCall {
    /// It makes none.
    None,
    /// One is put off, since the kernel could not access protected pages: the registers.
    PutOff(Box<Registers>),
    /// Pages are open for it.
    Made,
}

/// A call that runs at full speed.
#[derive(Clone, Debug)]
pub(super) struct FastCall {
    pub(super) return_to: u64,
    /// The stack pointer behind the return.
    pub(super) rsp: u64,
    /// The caller's registers.
    pub(super) shadow: Shadow,
    /// What it gives back is suppressed, whatever else happens in it.
    pub(super) spoils_result: bool,
    /// Nothing in it is looked at.
    pub(super) is_opaque: bool,
    /// What becomes of memory when it is over.
    pub(super) after: Option<(Location, bool)>,
}

impl FastCall {
    /// A call in which all is as usual.
    pub(super) fn new(return_to: u64, rsp: u64, shadow: Shadow) -> Self {
        Self { return_to, rsp, shadow, spoils_result: false, is_opaque: false, after: None }
    }
}
