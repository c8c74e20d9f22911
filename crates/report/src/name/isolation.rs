//! An isolation with names.

use raddle_isolate::{AccessAt, Cause as Found, Isolation as Isolated, Link as Step_, Location};
use raddle_symbols::name::{Namer, Place};
use raddle_symbols::site::Frame;
use raddle_trace::id::{Addr, ThreadId};

use super::Names;
use super::access::action;
use crate::model::{Cause, CauseKind, Executions, Instructions, Isolation, Link, Step, Value};

impl Names<'_> {
    /// An isolation with names.
    #[must_use]
    pub fn isolation(&self, isolated: &Isolated) -> Isolation {
        let mut namer = Namer::new(&isolated.run, self.cache);
        if let Some(trace) = &isolated.trace {
            // What cannot be read has no names.
            for (seq, event) in (0..).zip(trace.events().map_while(Result::ok)) {
                namer.push(seq, &event);
            }
        }
        let link = |link: &Step_| match link {
            Step_::Failure { what, at } => {
                Link { step: Step::Failure { detail: what.clone() }, access: value(&namer, 1, at) }
            }
            Step_::Definition { at, suppressed } => Link {
                step: Step::Definition { suppressed: *suppressed },
                access: value(&namer, 1, at),
            },
        };
        let raddle_isolate::Executions { original, suppression, race, violation, watch } =
            isolated.executions;
        let n = |n: u32| n as usize;
        Isolation {
            failure: isolated.ending.clone(),
            cause: isolated.cause.as_ref().map(|cause| self::cause(&namer, cause)),
            chain: isolated.chain.iter().map(link).collect(),
            executions: Executions {
                original: n(original),
                suppression: n(suppression),
                race: n(race),
                violation: n(violation),
                watch: n(watch),
            },
            instructions: Instructions { stepped: isolated.n_stepped, skipped: isolated.n_skipped },
            notes: isolated
                .notes
                .iter()
                .cloned()
                .chain(self.allowed(&isolated.run, &isolated.allowed))
                .collect(),
        }
    }
}

fn cause(namer: &Namer, cause: &Found) -> Cause {
    let mut threads: Vec<ThreadId> = Vec::new();
    let access = |at: &AccessAt| {
        let known = threads.iter().position(|thread| *thread == at.thread);
        let role = known.unwrap_or_else(|| {
            threads.push(at.thread);
            threads.len() - 1
        });
        value(namer, role + 1, at)
    };
    Cause {
        kind: match cause.kind {
            raddle_isolate::CauseKind::Race => CauseKind::Race,
            raddle_isolate::CauseKind::Atomicity => CauseKind::Atomicity,
            raddle_isolate::CauseKind::Order => CauseKind::Order,
            raddle_isolate::CauseKind::Statement => CauseKind::Statement,
        },
        accesses: cause.accesses.iter().map(access).collect(),
        variable: variable(namer, cause),
    }
}

/// The name of the variable that a cause is about.
fn variable(namer: &Namer, cause: &Found) -> Option<String> {
    let location = cause.accesses.iter().rev().find_map(|at| at.location)?;
    match namer.place(Addr(location.address), location.n_bytes) {
        Place::Global(variable) => Some(variable.name.clone()),
        Place::Heap { .. } | Place::Stack { .. } | Place::Image { .. } | Place::Unknown(_) => None,
    }
}

fn value(namer: &Namer, role: usize, at: &AccessAt) -> Value {
    let frame = frame(namer, at);
    let site = match (&frame.short_file, frame.line) {
        (Some(_), Some(_)) => frame.to_string(),
        _ => at.pcs.first().map(|&pc| namer.site(pc).to_string()).unwrap_or_default(),
    };
    Value {
        role,
        thread: namer.thread(at.thread),
        op: at.kind.letter(),
        action: action(at.kind),
        file: frame.short_file,
        line: frame.line,
        function: frame.function,
        site,
        value: at.value,
        location: at.location.map(|at| location(namer, at)),
    }
}

/// The innermost line of the program itself.
fn frame(namer: &Namer, at: &AccessAt) -> Frame {
    let own = at.pcs.iter().find_map(|&pc| namer.site(pc).own_frame().cloned());
    let first = || at.pcs.first().map(|&pc| namer.site(pc).frame.clone());
    own.or_else(first).unwrap_or_default()
}

fn location(namer: &Namer, location: Location) -> String {
    match namer.place(Addr(location.address), location.n_bytes) {
        Place::Global(variable) => format!("`{}`", variable.name),
        Place::Unknown(_) => format!("the {} bytes at {:#x}", location.n_bytes, location.address),
        other => other.to_string(),
    }
}
