//! Where exceptions land: the tables that unwinding uses.
//!
//! `.eh_frame` has an entry for each function, or for each of its parts. An entry may point to
//! a table in `.gcc_except_table` (the language-specific data area; there is no standard for
//! it, but gcc and LLVM share one form for all languages): a list of code ranges, each with the
//! landing pad for exceptions from calls in it, or none.

use std::ops::Range;

use gimli::{BaseAddresses, CieOrFde, EndianSlice, LittleEndian, Pointer, Reader, UnwindSection};
use object::{Object, ObjectSection};

use crate::elf::Elf;
use crate::image::LandingPad;

/// The entries of a module.
#[derive(Debug, Default)]
pub(crate) struct Exceptions {
    // invariant: sorted; code, at its addresses in the target, and its table
    entries: Vec<(Range<u64>, Table)>,
}

/// Where the table of an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    /// No table: no exception lands here.
    None,
    /// At this address in the target.
    At(u64),
    /// In a place that we do not search.
    Elsewhere,
}

/// An omitted pointer.
const OMITTED: u8 = 0xff;

impl Exceptions {
    /// Reads `.eh_frame` of a module loaded at `base`. Damaged entries are skipped.
    pub(crate) fn new(elf: &Elf<'_>, base: u64) -> Self {
        let mut all = Self::default();
        let address = |name| elf.section_by_name(name).map(|section| section.address());
        let Some(section) = elf.section_by_name(".eh_frame") else { return all };
        let Ok(data) = section.data() else { return all };
        let frames = gimli::EhFrame::new(data, LittleEndian);
        let bases = BaseAddresses::default()
            .set_eh_frame(section.address())
            .set_text(address(".text").unwrap_or(0))
            .set_got(address(".got").unwrap_or(0));
        let mut entries = frames.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(entry) = entry else { continue };
            let Ok(entry) = entry.parse(|section, bases, at| section.cie_from_offset(bases, at))
            else {
                continue;
            };
            let start = base.wrapping_add(entry.initial_address());
            let table = match entry.lsda() {
                None => Table::None,
                Some(Pointer::Direct(table)) => Table::At(base.wrapping_add(table)),
                Some(Pointer::Indirect(_)) => Table::Elsewhere,
            };
            all.entries.push((start..start.saturating_add(entry.len()), table));
        }
        all.entries.sort_by_key(|(range, _)| range.start);
        all
    }

    /// The landing pads of a function or part of one; none if they are not known for all of it.
    /// `rest` returns the file's bytes from an address on.
    pub(crate) fn landing_pads<'a>(
        &self,
        code: &Range<u64>,
        rest: impl Fn(u64) -> Option<&'a [u8]>,
    ) -> Option<Vec<LandingPad>> {
        let n_before = self.entries.partition_point(|(range, _)| range.start <= code.start);
        let (range, table) = self.entries.get(n_before.checked_sub(1)?)?;
        if range.end < code.end {
            return None;
        }
        match *table {
            Table::None => Some(Vec::new()),
            Table::Elsewhere => None,
            Table::At(at) => pads(rest(at)?, at, range.start).ok()?,
        }
    }
}

/// Reads a table at `at`, for code that starts at `start`. None if its format is unknown.
fn pads(table: &[u8], at: u64, start: u64) -> gimli::Result<Option<Vec<LandingPad>>> {
    let mut table = EndianSlice::new(table, LittleEndian);
    let n_bytes = table.len();
    let pads_from = match table.read_u8()? {
        OMITTED => start,
        // Relative to its own position.
        0x1b => {
            let here = at + (n_bytes - table.len()) as u64;
            here.wrapping_add_signed(table.read_i32()?.into())
        }
        _ => return Ok(None),
    };
    if table.read_u8()? != OMITTED {
        table.read_uleb128()?;
    }
    let form = table.read_u8()?;
    let n_bytes =
        usize::try_from(table.read_uleb128()?).map_err(|_| gimli::Error::UnsupportedOffset)?;
    let mut calls = table.split(n_bytes)?;
    let mut pads = Vec::new();
    while !calls.is_empty() {
        let mut number = || match form {
            0x01 => calls.read_uleb128().map(Some),
            0x03 => calls.read_u32().map(|n| Some(n.into())),
            _ => Ok(None),
        };
        let (Some(low), Some(n_bytes), Some(pad)) = (number()?, number()?, number()?) else {
            return Ok(None);
        };
        calls.read_uleb128()?;
        if pad != 0 {
            let low = start.wrapping_add(low);
            let calls = low..low.saturating_add(n_bytes);
            pads.push(LandingPad { calls, at: pads_from.wrapping_add(pad) });
        }
    }
    Ok(Some(pads))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(table: &[u8], expect: Option<&[LandingPad]>) {
        let pads = pads(table, 0x9000, 0x1000).expect("a whole table");
        assert_eq!(pads.as_deref(), expect);
    }

    #[test]
    fn a_range_without_a_pad_is_left_out() {
        // No base, no types, numbers as ULEB128, 8 bytes; (0, 5) lands nowhere, (5, 5) at 0x90.
        let table = [0xff, 0xff, 0x01, 9, 0, 5, 0, 0, 5, 5, 0x90, 0x01, 1, 0xee];
        check(&table, Some(&[LandingPad { calls: 0x1005..0x100a, at: 0x1090 }]));
    }

    #[test]
    fn pads_may_have_a_base_of_their_own() {
        // Base: 0x10 before its own position, which is 0x9001.
        let table = [0x1b, 0xf0, 0xff, 0xff, 0xff, 0xff, 0x01, 4, 0, 5, 1, 0];
        check(&table, Some(&[LandingPad { calls: 0x1000..0x1005, at: 0x8ff2 }]));
    }

    #[test]
    fn an_unknown_form_is_admitted() {
        check(&[0x9b, 0, 0, 0, 0], None);
        check(&[0xff, 0xff, 0x55, 1, 0], None);
    }

    #[test]
    fn a_table_that_ends_early_is_an_error() {
        assert!(pads(&[0xff, 0xff, 0x01, 9, 0], 0, 0).is_err());
    }
}
