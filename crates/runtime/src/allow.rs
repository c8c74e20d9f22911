//! Judgements that the plan allows: where they would end the run, it goes on. Remarks that it
//! allows are not made.
//!
//! Both are allowed everywhere, or in pieces of code that the parent has found by name: the
//! runtime knows no names. All of this is looked at only when a judgement or remark is due.

use core::sync::atomic::Ordering;

use raddle_trace::allow::Judgement;
use raddle_trace::control::ALLOWED_CODE_MAX;
use raddle_trace::remark::Remark;

use crate::{modules, shared};

/// Whether a judgement is allowed anywhere.
#[cold]
pub(crate) fn anywhere(judgement: Judgement) -> bool {
    let control = shared::control();
    let is_in = |set: u64| set & u64::from(judgement.bit()) != 0;
    is_in(control.plan.allowed.load(Ordering::Relaxed).into())
        || code().any(|code| is_in(code.set.load(Ordering::Relaxed)))
}

/// Whether a judgement on what the program does at a code address is allowed.
#[cold]
pub(crate) fn is_allowed(judgement: Judgement, pc: u64) -> bool {
    is_allowed_at(judgement.bit(), pc)
}

/// Whether a remark on what the program does at a code address is not to be made.
#[cold]
pub(crate) fn is_silent(remark: Remark, pc: u64) -> bool {
    is_allowed_at(remark.bit(), pc)
}

fn is_allowed_at(bit: u32, pc: u64) -> bool {
    let control = shared::control();
    if control.plan.allowed.load(Ordering::Relaxed) & bit != 0 {
        return true;
    }
    if control.plan.n_allowed_code.load(Ordering::Relaxed) == 0 {
        return false;
    }
    // A return address may be that of the next function.
    let site = modules::site(pc.wrapping_sub(1)).0;
    code().any(|code| {
        (code.start.load(Ordering::Relaxed)..code.end.load(Ordering::Relaxed)).contains(&site)
            && code.set.load(Ordering::Relaxed) & u64::from(bit) != 0
    })
}

/// The same, and counts it. Only the thread that holds the turn calls this.
#[cold]
pub(crate) fn lifts(judgement: Judgement, pc: u64) -> bool {
    let is_allowed = is_allowed(judgement, pc);
    if is_allowed {
        let count = &shared::control().allowed[judgement as usize];
        if count.n.fetch_add(1, Ordering::Relaxed) == 0 {
            count.pc.store(pc, Ordering::Relaxed);
        }
    }
    is_allowed
}

/// Whether freed memory may be used, by accesses or as an object, so that it has to keep what it
/// held.
#[cold]
pub(crate) fn freed_memory() -> bool {
    anywhere(Judgement::UseAfterFree) || anywhere(Judgement::Destroyed)
}

fn code() -> impl Iterator<Item = &'static raddle_trace::control::AllowedCode> {
    let control = shared::control();
    let n = control.plan.n_allowed_code.load(Ordering::Relaxed) as usize;
    control.allowed_code[..n.min(ALLOWED_CODE_MAX)].iter()
}
