//! How suppression spreads over one instruction.
//!
//! An instruction that uses something suppressed has no effect, and what it would have
//! written becomes suppressed; otherwise what it writes becomes clean. What it uses and
//! writes is iced-x86's knowledge, so this holds for all instructions. Those that only move
//! bytes are looked at byte by byte: a copy of a structure with one suppressed member has one
//! suppressed member, and the others are copied.
//!
//! Who may be followed by whom (branches, calls) is decided elsewhere.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use crate::code::{FLAGS, Function, KEPT, is_call, writes};
use crate::frame::Frame;
use crate::shadow::{Bytes, Shadow};

/// What is to become of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// It uses nothing suppressed, so it is executed.
    Clean,
    /// It moves suppressed bytes, and others perhaps: executing it does no harm.
    Moved,
    /// It is passed over.
    Skipped,
}

/// Decides about an instruction and notes what becomes of what it writes. `frame` holds the
/// registers before it.
pub(crate) fn flow(
    instruction: &Instruction,
    frame: &Frame,
    thread: &mut Shadow,
    memory: &mut Bytes,
    factory: &mut InstructionInfoFactory,
) -> Treatment {
    let effect = Effect::of(instruction, frame, thread, memory, factory);
    if matches!(instruction.mnemonic(), Mnemonic::Leave)
        || instruction.mnemonic() == Mnemonic::Pop && instruction.op0_register() == Register::RBP
    {
        // A frame pointer that was suppressed has its old value back, as a return address.
        thread.set(Register::RBP, 0);
        return Treatment::Clean;
    }
    if let Some(copy) = Copy::of(instruction)
        && !effect.is_address_suppressed
        && let Some(fate) = copy.perform(instruction, &effect, thread, memory)
    {
        return fate;
    }
    let is_suppressed = effect.is_source_suppressed || effect.is_address_suppressed;
    for &(register, always) in &effect.written {
        if is_suppressed {
            thread.set(register, u64::MAX);
        } else if always {
            thread.set(register, 0);
        }
    }
    for &(address, n_bytes, always) in &effect.stored {
        if is_suppressed {
            // Where it would have gone is known only if the address is.
            if !effect.is_address_suppressed {
                memory.fill(address, n_bytes, true);
            }
        } else if always {
            memory.fill(address, n_bytes, false);
        }
    }
    let flags = instruction.rflags_modified();
    thread.flags = if is_suppressed { thread.flags | flags } else { thread.flags & !flags };
    if is_suppressed { Treatment::Skipped } else { Treatment::Clean }
}

/// Passes over a branch on something suppressed: what is written on the ways to where they meet
/// is suppressed, as far as it has a fixed place. Where they meet, if they do in the function.
pub(crate) fn pass_branch(
    function: &Function,
    branch: usize,
    frame: &Frame,
    thread: &mut Shadow,
    memory: &mut Bytes,
    factory: &mut InstructionInfoFactory,
) -> Option<u64> {
    let meet = function.meets(branch);
    for between in function.between(branch, meet) {
        let instruction = &function.instructions()[between];
        if is_call(instruction) {
            thread.mark(!KEPT & (FLAGS - 1));
            continue;
        }
        let used = factory.info(instruction).used_registers().iter();
        for used in used.filter(|used| writes(used.access())) {
            thread.set(used.register(), u64::MAX);
        }
        // Variables of the frame and of the program, whose address is known.
        let is_fixed = instruction.is_ip_rel_memory_operand()
            || matches!(instruction.memory_base(), Register::RBP | Register::RSP)
                && instruction.memory_index() == Register::None;
        if is_fixed && !matches!(instruction.mnemonic(), Mnemonic::Push | Mnemonic::Call) {
            for (address, n_bytes, writes) in touched(instruction, frame, factory) {
                if writes {
                    memory.fill(address, n_bytes.min(64), true);
                }
            }
        }
        thread.flags |= instruction.rflags_modified();
    }
    meet.map(|meet| function.instructions()[meet].ip())
}

/// Whether an instruction would use anything suppressed.
pub(crate) fn uses_suppressed(
    instruction: &Instruction,
    frame: &Frame,
    thread: &Shadow,
    memory: &Bytes,
    factory: &mut InstructionInfoFactory,
) -> bool {
    let effect = Effect::of(instruction, frame, thread, memory, factory);
    effect.is_source_suppressed || effect.is_address_suppressed
}

/// The bytes of memory that an instruction touches, with whether it writes them, as far as its
/// registers are known.
pub(crate) fn touched(
    instruction: &Instruction,
    frame: &Frame,
    factory: &mut InstructionInfoFactory,
) -> Vec<(u64, u64, bool)> {
    let info = factory.info(instruction);
    info.used_memory()
        .iter()
        .filter(|used| used.access() != OpAccess::NoMemAccess)
        .filter_map(|used| {
            let address = used.virtual_address(0, |register, _, _| frame.value(register))?;
            let n_bytes = used.memory_size().size().max(1) as u64;
            Some((address, n_bytes, writes(used.access())))
        })
        .collect()
}

/// What an instruction does, and what of that is suppressed.
struct Effect {
    is_source_suppressed: bool,
    is_address_suppressed: bool,
    /// Registers, and whether they are written in any case.
    written: Vec<(Register, bool)>,
    /// Memory, and whether it is written in any case.
    stored: Vec<(u64, u64, bool)>,
    loaded: Vec<(u64, u64)>,
}

impl Effect {
    fn of(
        instruction: &Instruction,
        frame: &Frame,
        thread: &Shadow,
        memory: &Bytes,
        factory: &mut InstructionInfoFactory,
    ) -> Self {
        let info = factory.info(instruction);
        let mut effect = Self {
            is_source_suppressed: instruction.rflags_read() & thread.flags != 0,
            is_address_suppressed: false,
            written: Vec::new(),
            stored: Vec::new(),
            loaded: Vec::new(),
        };
        for used in info.used_registers() {
            let register = used.register();
            match used.access() {
                OpAccess::Write => effect.written.push((register, true)),
                OpAccess::CondWrite => effect.written.push((register, false)),
                OpAccess::Read | OpAccess::CondRead => {
                    effect.is_source_suppressed |= thread.get(register) != 0;
                }
                OpAccess::ReadWrite => {
                    effect.is_source_suppressed |= thread.get(register) != 0;
                    effect.written.push((register, true));
                }
                OpAccess::ReadCondWrite => {
                    effect.is_source_suppressed |= thread.get(register) != 0;
                    effect.written.push((register, false));
                }
                OpAccess::None | OpAccess::NoMemAccess => {}
            }
        }
        for used in info.used_memory() {
            if used.access() == OpAccess::NoMemAccess {
                continue;
            }
            effect.is_address_suppressed |=
                thread.get(used.base()) != 0 || thread.get(used.index()) != 0;
            let address = used.virtual_address(0, |register, _, _| frame.value(register));
            let n_bytes = used.memory_size().size().max(1) as u64;
            let Some(address) = address else { continue };
            let (reads, writes) = match used.access() {
                OpAccess::Read | OpAccess::CondRead => (true, None),
                OpAccess::Write => (false, Some(true)),
                OpAccess::CondWrite => (false, Some(false)),
                OpAccess::ReadWrite => (true, Some(true)),
                OpAccess::ReadCondWrite => (true, Some(false)),
                OpAccess::None | OpAccess::NoMemAccess => (false, None),
            };
            if reads {
                effect.is_source_suppressed |= memory.any(address, n_bytes);
                effect.loaded.push((address, n_bytes));
            }
            if let Some(always) = writes {
                effect.stored.push((address, n_bytes, always));
            }
        }
        effect
    }
}

/// An instruction that only moves bytes, and zeroes the rest of what it writes.
struct Copy {
    n_bytes: u64,
    /// The rest repeats the last byte's sign.
    extends_sign: bool,
}

impl Copy {
    fn of(instruction: &Instruction) -> Option<Self> {
        use Mnemonic::{
            Lddqu, Mov, Movapd, Movaps, Movd, Movdqa, Movdqu, Movntdq, Movnti, Movntps, Movq,
            Movsx, Movsxd, Movupd, Movups, Movzx, Pop, Push, Vmovapd, Vmovaps, Vmovd, Vmovdqa,
            Vmovdqa32, Vmovdqa64, Vmovdqu, Vmovdqu8, Vmovdqu16, Vmovdqu32, Vmovdqu64, Vmovntdq,
            Vmovq, Vmovupd, Vmovups,
        };
        let mnemonic = instruction.mnemonic();
        let is_copy = matches!(
            mnemonic,
            Lddqu
                | Mov
                | Movapd
                | Movaps
                | Movd
                | Movdqa
                | Movdqu
                | Movnti
                | Movntdq
                | Movntps
                | Movq
                | Movsx
                | Movsxd
                | Movupd
                | Movups
                | Movzx
                | Pop
                | Push
                | Vmovapd
                | Vmovaps
                | Vmovd
                | Vmovdqa
                | Vmovdqa32
                | Vmovdqa64
                | Vmovdqu
                | Vmovdqu8
                | Vmovdqu16
                | Vmovdqu32
                | Vmovdqu64
                | Vmovntdq
                | Vmovq
                | Vmovupd
                | Vmovups
        );
        // With a mask register only parts are moved.
        let is_plain = instruction.op_mask() == Register::None;
        let source = if instruction.op_count() > 1 { 1 } else { 0 };
        let n_bytes = match instruction.op_kind(source) {
            OpKind::Register => instruction.op_register(source).size() as u64,
            OpKind::Memory => instruction.memory_size().size() as u64,
            // A constant: nothing can be suppressed.
            _ => return None,
        };
        let n_bytes = match mnemonic {
            Movd | Vmovd => n_bytes.min(4),
            Movq | Vmovq => n_bytes.min(8),
            Push | Pop => 8,
            _ => n_bytes,
        };
        (is_copy && is_plain && (1..=64).contains(&n_bytes))
            .then_some(Self { n_bytes, extends_sign: matches!(mnemonic, Movsx | Movsxd) })
    }

    /// Moves the bits along with the bytes; none if it is not what it seemed.
    fn perform(
        &self,
        instruction: &Instruction,
        effect: &Effect,
        thread: &mut Shadow,
        memory: &mut Bytes,
    ) -> Option<Treatment> {
        let all = if self.n_bytes == 64 { u64::MAX } else { (1 << self.n_bytes) - 1 };
        let pops = instruction.mnemonic() == Mnemonic::Pop;
        let pushes = instruction.mnemonic() == Mnemonic::Push;
        let source = match (&effect.loaded[..], pops, pushes) {
            ([(address, _)], ..) => memory.get(*address, self.n_bytes),
            ([], _, true) => thread.get(instruction.op0_register()),
            ([], false, false) if instruction.op_kind(1) == OpKind::Register => {
                thread.get(instruction.op1_register()) & all
            }
            _ => return None,
        };
        match &effect.stored[..] {
            [(address, n_bytes, true)] if *n_bytes <= self.n_bytes => {
                memory.set(*address, *n_bytes, source);
                let whole = source & all == all;
                // The stack pointer moves all the same.
                let fate = if whole && !pushes { Treatment::Skipped } else { Treatment::Moved };
                return Some(if source == 0 { Treatment::Clean } else { fate });
            }
            [] => {}
            _ => return None,
        }
        let destination = instruction.op0_register();
        let top = source >> (self.n_bytes - 1) & 1 == 1;
        let rest = if self.extends_sign && top { !all } else { 0 };
        // Narrow general registers keep their other bytes; all else is written whole.
        let is_narrow = destination.is_gpr8() || destination.is_gpr16();
        let is_old_vector = destination.is_vector_register()
            && effect.written.iter().any(|(register, _)| *register == destination)
            && instruction.op1_kind() == OpKind::Register
            && !effect.written.iter().any(|(register, _)| register.size() > destination.size());
        if is_narrow || is_old_vector {
            thread.set(destination, source | rest);
        } else {
            thread.set(destination.full_register(), source | rest);
        }
        Some(if source == 0 { Treatment::Clean } else { Treatment::Moved })
    }
}
