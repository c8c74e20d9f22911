//! Jump tables in the form that gcc and LLVM generate for `switch`.
//!
//! Two forms. Position-independent code adds the table's address to an entry of 4 bytes:
//!
//! ```text
//! lea    rdx, [rip + table]
//! movsxd rax, dword ptr [rdx + rax*4]
//! add    rax, rdx
//! jmp    rax
//! ```
//!
//! The `lea` may have been moved far away, so any one in the function is a candidate. Other code
//! jumps through entries of 8 bytes: `jmp qword ptr [rax*8 + table]`.
//!
//! The number of entries is not determined: a table extends as long as its entries lead to
//! instructions of the function, or to the next table. What follows the table may look like an
//! entry by chance; then there is an extra edge, never a missing one.

use std::collections::BTreeSet;

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use crate::image::Image;

/// A larger table is not plausible.
const ENTRIES_MAX: u64 = 1 << 14;

/// The targets of the jump at `at`; empty if unknown. `decoded` is sorted by address.
pub(super) fn targets(
    decoded: &[Instruction],
    at: u64,
    image: &dyn Image,
    is_fit: impl Fn(u64) -> bool,
) -> BTreeSet<u64> {
    let Ok(place) = decoded.binary_search_by_key(&at, Instruction::ip) else {
        return BTreeSet::new();
    };
    let jump = &decoded[place];
    let before = straight(&decoded[..place], at);
    let leas: BTreeSet<u64> = decoded.iter().filter_map(lea).collect();

    if jump.op0_kind() == OpKind::Memory {
        let has_base = jump.memory_base() != Register::None;
        let table = jump.memory_displacement64();
        if has_base || jump.memory_index_scale() != 8 || jump.memory_index() == Register::None {
            return BTreeSet::new();
        }
        let read = |entry: u64| {
            let bytes = image.bytes(entry..entry.checked_add(8)?)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        return entries(table, 8, &leas, read, is_fit);
    }

    let Some(add) = last_write(before, jump.op0_register()) else { return BTreeSet::new() };
    let is_sum =
        before[add].mnemonic() == Mnemonic::Add && before[add].op1_kind() == OpKind::Register;
    if !is_sum {
        return BTreeSet::new();
    }
    let near = last_write(&before[..add], before[add].op1_register());
    let table = near.filter(|&near| !is_entered(decoded, before[near].ip(), at));
    let bases = match table.and_then(|near| lea(&before[near])) {
        Some(table) => BTreeSet::from([table]),
        None => leas.clone(),
    };
    let relative = |table: u64| {
        let read = move |entry: u64| {
            let bytes = image.bytes(entry..entry.checked_add(4)?)?;
            let offset = i32::from_le_bytes(bytes.try_into().ok()?);
            Some(table.wrapping_add_signed(offset.into()))
        };
        entries(table, 4, &leas, read, &is_fit)
    };
    bases.into_iter().flat_map(relative).collect()
}

/// The targets in a table, from its first entry.
fn entries(
    table: u64,
    entry_bytes: u64,
    tables: &BTreeSet<u64>,
    read: impl Fn(u64) -> Option<u64>,
    is_fit: impl Fn(u64) -> bool,
) -> BTreeSet<u64> {
    (0..ENTRIES_MAX)
        .map_while(|n| table.checked_add(n * entry_bytes))
        .take_while(|entry| *entry == table || !tables.contains(entry))
        .map_while(read)
        .take_while(|&to| is_fit(to))
        .collect()
}

/// Whether a jump leads to an instruction after `from`, up to `to`.
fn is_entered(decoded: &[Instruction], from: u64, to: u64) -> bool {
    decoded.iter().any(|i| {
        (i.is_jcc_short_or_near() || i.is_jmp_short_or_near())
            && (from + 1..=to).contains(&i.near_branch_target())
    })
}

/// The instructions before `at` without a gap.
fn straight(before: &[Instruction], at: u64) -> &[Instruction] {
    let mut at = at;
    let n = before
        .iter()
        .rev()
        .take_while(|i| std::mem::replace(&mut at, i.ip()) == i.next_ip())
        .count();
    &before[before.len() - n..]
}

/// The last instruction that writes to a register.
fn last_write(instructions: &[Instruction], register: Register) -> Option<usize> {
    let mut factory = InstructionInfoFactory::new();
    instructions.iter().rposition(|instruction| {
        factory.info(instruction).used_registers().iter().any(|used| {
            used.register().full_register() == register.full_register()
                && matches!(
                    used.access(),
                    OpAccess::Write
                        | OpAccess::ReadWrite
                        | OpAccess::CondWrite
                        | OpAccess::ReadCondWrite
                )
        })
    })
}

/// The address that an rip-relative `lea` computes.
fn lea(instruction: &Instruction) -> Option<u64> {
    let is_lea = instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand();
    is_lea.then(|| instruction.ip_rel_memory_address())
}
