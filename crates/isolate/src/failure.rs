//! The failure point: from a thread that is about to die to the memory that it failed on.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use raddle_trace::id::ThreadId;

use crate::code::{KEPT, bit};
use crate::flow;
use crate::frame::{Frame, RIP, RSP};
use crate::origin::{Location, Origin, StoppedThread};

/// A failure, as the thread that failed tells it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Who failed.
    pub thread: ThreadId,
    /// The signal, if it was one; a program that ends itself has none.
    pub signal: Option<i32>,
    /// The address that could not be accessed, for faults.
    pub address: Option<u64>,
    /// The instruction that failed, or the call that told of the failure.
    pub pc: u64,
    /// Return addresses of the activations around it, innermost first.
    pub callers: Vec<u64>,
    /// The memory whose values made it fail; the first ones are the likeliest.
    pub uses: Vec<Use>,
    /// Loads whose values made it fail, but from where is not known.
    pub lost: Vec<u64>,
}

/// Memory whose value was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Where in the code it was loaded.
    pub pc: u64,
    /// Which memory.
    pub location: Location,
    /// What it held.
    pub value: Option<u64>,
    /// It was used to tell where the other values are.
    pub is_address: bool,
    /// If it is on the stack of the thread that failed: where its activation's return address
    /// is, which was written when the activation began.
    pub activation: Option<u64>,
}

impl Use {
    /// Of a value, not of an address, and not on the stack as far as is known.
    pub(crate) fn new(pc: u64, location: Location, value: Option<u64>) -> Self {
        Self { pc, location, value, is_address: false, activation: None }
    }
}

/// How a thread came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// By a signal: its number, the address of a fault, and the kernel's code.
    Signal { number: i32, address: u64, code: i32 },
    /// By its own decision: it exits, or panics.
    Own,
}

/// The kernel's code for a fault without an address.
const SI_KERNEL: i32 = 0x80;

/// Finds out what a dying thread failed on.
pub(crate) fn failure(stopped: &StoppedThread<'_>, thread: ThreadId, death: Death) -> Failure {
    let (frame, origins) = match death {
        Death::Signal { number: libc::SIGABRT, .. } | Death::Own => of_report(stopped),
        Death::Signal { number, address, code } => {
            let known = (code != SI_KERNEL).then_some(address);
            match of_instruction(stopped, number, known) {
                origins if origins.is_empty() && is_trap(number) => of_report(stopped),
                origins => {
                    let heap = of_heap(stopped);
                    let doubt = |origin| Origin { is_doubtful: !heap.is_empty(), ..origin };
                    let others: Vec<Origin> = origins.into_iter().map(doubt).collect();
                    (0, heap.into_iter().chain(others).collect())
                }
            }
        }
    };
    let pcs: Vec<u64> = stopped.frames.iter().map(Frame::pc).collect();
    let at = frame.min(pcs.len().saturating_sub(1));
    // The call, not where it would return to.
    let pc = if at == 0 { pcs[0] } else { pcs[at].wrapping_sub(1) };
    Failure {
        thread,
        signal: match death {
            Death::Signal { number, .. } => Some(number),
            Death::Own => None,
        },
        address: match death {
            Death::Signal { number: libc::SIGSEGV | libc::SIGBUS, address, code }
                if code != SI_KERNEL =>
            {
                Some(address)
            }
            _ => None,
        },
        pc,
        callers: pcs[at + 1..].to_vec(),
        uses: uses(stopped, &origins),
        lost: origins.iter().filter(|origin| origin.is_lost).map(|origin| origin.pc).collect(),
    }
}

/// The memory, and then what the addresses of that memory were made of.
fn uses(stopped: &StoppedThread<'_>, origins: &[Origin]) -> Vec<Use> {
    let of = |origin: &Origin, is_address: bool| {
        let location = origin.location?;
        let value = stopped.memory.number(location.address, location.n_bytes.min(8) as usize);
        let activation = activation(stopped, location);
        Some(Use { pc: origin.pc, location, value, is_address, activation })
    };
    let mut uses: Vec<Use> =
        origins.iter().filter_map(|origin| of(origin, origin.is_doubtful)).collect();
    let addresses = origins.iter().flat_map(|origin| &origin.addresses);
    for used in addresses.map(|location| {
        let value = stopped.memory.number(location.address, location.n_bytes as usize);
        let activation = activation(stopped, *location);
        Use { pc: 0, location: *location, value, is_address: true, activation }
    }) {
        if !uses.iter().any(|other| other.location == used.location) {
            uses.push(used);
        }
    }
    // An index is suspected before the pointer that it belongs to.
    let is_pointer = |value: Option<u64>| {
        value.is_some_and(|value| value > 0xffff && stopped.memory.number(value, 1).is_some())
    };
    uses.sort_by_key(|used| used.is_address && is_pointer(used.value));
    uses.sort_by_key(|used| used.is_address);
    uses
}

/// Where the activation that a place on the stack belongs to has its return address.
fn activation(stopped: &StoppedThread<'_>, location: Location) -> Option<u64> {
    if !stopped.is_on_stack(location.address) {
        return None;
    }
    let ends = stopped.frames.windows(2).filter_map(|pair| pair[1].get(RSP));
    ends.map(|end| end - 8).find(|&slot| location.address < slot)
}

fn is_trap(number: i32) -> bool {
    matches!(number, libc::SIGILL | libc::SIGTRAP)
}

/// A program that looked and found that something is wrong: what it looked at. The outermost
/// activation whose call never comes back made the decision.
fn of_report(stopped: &StoppedThread<'_>) -> (usize, Vec<Origin>) {
    let never_returns = |&frame: &usize| {
        // raddle's runtime only looks at what it was given.
        if stopped.images.is_runtime(stopped.frames[frame].pc()) {
            return false;
        }
        let Some(place) = stopped.place(frame) else { return false };
        let call = stopped.instruction(&place);
        let is_call = matches!(
            call.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall | FlowControl::Exception
        );
        is_call && !stopped.functions.returns(stopped.images, &call)
    };
    // What calls the program's first function never returns either.
    let is_program = |frame: &Frame| {
        let pc = frame.pc().wrapping_sub(1);
        let name = stopped.images.function(pc).and_then(|bounds| bounds.name);
        stopped.images.is_own(pc) && name != Some("_start")
    };
    let n_frames = stopped.frames.iter().rposition(is_program).map_or(1, |last| last + 1);
    let frames: Vec<usize> = (0..n_frames).filter(never_returns).collect();
    // From the outside in: a decision without any memory in it was made further inside.
    for &frame in frames.iter().rev() {
        let origins = stopped.place(frame).map(|place| stopped.of_condition(&place));
        let origins = origins.unwrap_or_default();
        if origins.iter().any(|origin| origin.location.is_some()) {
            return (frame, origins);
        }
    }
    // Or somebody else has found that what it was given is wrong.
    let given = (1..n_frames).find(|&at| stopped.images.is_own(stopped.frames[at].pc()));
    if let Some(frame) = given
        && let Some(place) = stopped.place(frame)
    {
        return (frame, stopped.of_register(&place, Register::RDI));
    }
    // Or the program's first function has returned something else than 0.
    let program = stopped.frames.iter().rfind(|frame| stopped.images.is_own(frame.pc()));
    if let Some(main) = program.and_then(|frame| stopped.images.named(frame.pc(), "main"))
        && let Some(status) = stopped.frames.first().and_then(|frame| frame.value(Register::RDI))
        && status != 0
    {
        return (0, stopped.of_returned(main, status & 0xff));
    }
    (frames.last().copied().unwrap_or(0), Vec::new())
}

/// An instruction that could not be executed: what its addresses, or its operands, are made of.
fn of_instruction(stopped: &StoppedThread<'_>, number: i32, address: Option<u64>) -> Vec<Origin> {
    let Some(frame) = stopped.frames.first() else { return Vec::new() };
    if !stopped.images.is_code(frame.pc()) {
        return of_jump(stopped, frame);
    }
    let Some(place) = stopped.place(0) else { return Vec::new() };
    let instruction = stopped.instruction(&place);
    if instruction.flow_control() == FlowControl::Return {
        return frame.get(RSP).map_or_else(Vec::new, |rsp| of_slot(stopped, frame.pc(), rsp));
    }
    if is_trap(number) {
        return stopped.of_condition(&place);
    }
    if number == libc::SIGFPE {
        return match instruction.op0_kind() {
            OpKind::Memory => stopped.of_memory(&place),
            _ => stopped.of_register(&place, instruction.op0_register()),
        };
    }
    let is_jump = matches!(
        instruction.flow_control(),
        FlowControl::IndirectCall | FlowControl::IndirectBranch
    );
    // A jump to an address that cannot be: its operand is to blame.
    if is_jump && address.is_none() {
        return stopped.of_sources(&place);
    }
    let mut factory = InstructionInfoFactory::new();
    let touched = flow::touched(&instruction, frame, &mut factory);
    let info = factory.info(&instruction);
    let mut registers = Vec::new();
    for (used, (start, n_bytes, _)) in info.used_memory().iter().zip(&touched) {
        let is_it = address.is_none_or(|address| {
            (start.saturating_sub(63)..start.saturating_add(n_bytes + 63)).contains(&address)
        });
        if is_it || touched.len() == 1 {
            registers.extend([used.base(), used.index()]);
        }
    }
    let is_general =
        |register: &Register| register.is_gpr() && register.full_register() != Register::RSP;
    registers.retain(is_general);
    // Of an array whose base is fine, the index is suspected first.
    let is_mapped = |register: &Register| {
        let value = frame.value(*register);
        value.is_some_and(|value| stopped.memory.number(value, 1).is_some())
    };
    registers.sort_by_key(is_mapped);
    let mut origins = Vec::new();
    for register in registers {
        let is_doubtful = !origins.is_empty() && is_mapped(&register);
        let mut found = stopped.of_register(&place, register);
        if found.iter().all(|origin| origin.location.is_none() && !origin.is_lost) {
            found.extend(of_saved(stopped, frame, register));
        }
        let found = found.into_iter();
        origins.extend(found.map(|origin| Origin { is_doubtful, ..origin }));
    }
    origins
}

/// A fault while a block is freed: the allocator keeps the block's size before it, and has believed
/// what it found there.
fn of_heap(stopped: &StoppedThread<'_>) -> Vec<Origin> {
    const FREES: [&str; 6] = ["free", "cfree", "realloc", "_ZdlPv", "_ZdaPv", "_ZdlPvm"];
    let own = (1..stopped.frames.len()).find(|&at| stopped.images.is_own(stopped.frames[at].pc()));
    let Some(place) = own.and_then(|at| stopped.place(at)) else { return Vec::new() };
    let callee = stopped.functions.callee(stopped.images, &stopped.instruction(&place));
    if !callee.name.is_some_and(|name| FREES.contains(&name.as_str())) {
        return Vec::new();
    }
    let blocks = stopped.of_register(&place, Register::RDI);
    let Some(block) = blocks.iter().find_map(|origin| origin.value) else { return Vec::new() };
    of_slot(stopped, stopped.frames[0].pc(), block.wrapping_sub(8))
        .into_iter()
        .filter(|origin| origin.value.is_some())
        .collect()
}

/// A register that calls keep may have come back wrong from the last one: from where that had
/// saved it, right below the stack.
fn of_saved(stopped: &StoppedThread<'_>, frame: &Frame, register: Register) -> Vec<Origin> {
    let (Some(rsp), Some(value)) = (frame.get(RSP), frame.value(register)) else {
        return Vec::new();
    };
    if bit(register) & KEPT == 0 || register.size() != 8 {
        return Vec::new();
    }
    let slots = (2..=8).map(|n| rsp - 8 * n);
    let saved = slots.into_iter().find(|&slot| stopped.memory.number(slot, 8) == Some(value));
    saved.map_or_else(Vec::new, |slot| of_slot(stopped, frame.pc(), slot))
}

/// A thread that has jumped to where no code is: by a return, or by a call through a pointer.
fn of_jump(stopped: &StoppedThread<'_>, frame: &Frame) -> Vec<Origin> {
    let (Some(rsp), Some(rip)) = (frame.get(RSP), frame.get(RIP)) else { return Vec::new() };
    let back = stopped.memory.number(rsp, 8).unwrap_or(0);
    let is_call = |call: &Instruction| call.flow_control() == FlowControl::IndirectCall;
    if stopped.functions.before(stopped.images, back).as_ref().is_some_and(is_call) {
        // Nothing was executed since, so all registers are as they were.
        let mut caller = frame.clone();
        caller.set(RIP, Some(back));
        caller.set(RSP, Some(rsp + 8));
        caller.is_exact = false;
        let mut frames = vec![caller];
        frames.extend(stopped.frames.iter().skip(2).cloned());
        let stopped = StoppedThread { frames: &frames, ..*stopped };
        let Some(place) = stopped.place(0) else { return Vec::new() };
        return stopped.of_sources(&place);
    }
    if stopped.memory.number(rsp.wrapping_sub(8), 8) == Some(rip) {
        return of_slot(stopped, rip, rsp - 8);
    }
    Vec::new()
}

/// A return address.
fn of_slot(stopped: &StoppedThread<'_>, pc: u64, address: u64) -> Vec<Origin> {
    let location = Some(Location { address, n_bytes: 8 });
    let value = stopped.memory.number(address, 8);
    vec![Origin { pc, location, value, ..Origin::default() }]
}

/// Whether an instruction saves what a function's caller needs: a push, or a call's own.
pub(crate) fn is_save(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Push | Mnemonic::Call)
}
