//! Blocks of records, packed.
//!
//! A program does most of the time what it did before. So packer and unpacker both keep a
//! model of it that says what comes next, and only surprises are stored: the idea of
//! value-prediction compression (Burtscher et al., «The VPC Trace-Compression Algorithms»,
//! IEEE Transactions on Computers 54(11), 2005), cut down to what one pass over a record in
//! some ten cycles allows.
//!
//! **The model.** The part of a record that is the same each time an operation is performed
//! (kind, info, extra, pc) is a *site*, the rest (most often an address) its *value*. The
//! extra of a plain access, which counts repeats, belongs to neither: it is expected to be
//! what it was when the thread last performed the site. The
//! site is guessed from a hash of the sites before it in the same thread. The value is
//! guessed by the one of four rules that was right last: the site's last value plus
//! a stride; the thread's last value, or the one before, plus a distance (fields of an
//! object, a store after a load; calls and payload do not count here); what followed the
//! site's last value when it was there before (a list that is walked again). A payload record is a site with a value of 64 bits.
//! When the turn passes ([`Kind::Switch`](crate::record::Kind::Switch)), the context of the
//! thread that gets it is taken up again.
//!
//! **The block.** For each surprise: a code byte, and how many records since the last one
//! came as expected. A code says how the site is told, and how the value:
//! ```text
//! code    = other << 7 | how << 5 | what
//! other   = 1 if the repeats are not those expected, and in their column
//! how     = 0 as guessed | 1 what followed the site before the last time that was a surprise
//!         | 2 by number | 3 a new one
//! what    = 0 by the site's rule | 1..=4 by another rule | 4 + n: n bytes to add to the site's
//!           last value | 12 + n: n bytes to add to the thread's last value   (n = 1..=8)
//! columns = codes: (code, run (u8; 255: in the next column))*
//!           long runs: varint* | numbers of sites: varint*
//!           new sites: (head >> 48 (u24; 0x10000: payload), zigzag varint of tail - last new tail)*
//!           literals of 1, 2, … 8 bytes, zigzag: eight columns
//!           repeats: varint*
//! block   = (n_bytes (u32) n_stored (u32) stored)*, a column each, in this order
//! ```
//! A column is compressed by zstd if that saves a sixteenth of it (then n_stored < n_bytes).
//! Columns of their own are what makes this cheap: codes and runs repeat, literals do not.
//!
//! **Choices**, measured with `examples/codec_bench`. The state starts afresh with each
//! block, so that blocks can be read alone and in any order. Against a state that is never
//! reset this costs, at 2^18 records, 6 % more bytes for `quicksort` and 14 % for `large
//! code`, at 2^16 records 16 % and 51 %; `list`, which is all repetition, loses most. Level
//! -5 of zstd for the longer literals would save a tenth of the time and add a quarter of the
//! bytes. An expected record takes some 4 ns either way, a surprise some 30 ns more, and
//! compression about a quarter of the time where surprises are many.
//!
//! **Limits.** What is random costs what it weighs, a random access some three bytes. Sorting
//! and then hashing random numbers, with two of five records a surprise, packs to one byte
//! per record at a sixth of the speed of a loop over an array.

mod column;
mod model;
mod pack;
mod unpack;

pub use column::Press;
pub use pack::Packer;
pub use unpack::Unpacker;

/// Why bytes are no packed records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// A column that is cut, or that zstd does not take.
    #[error("a column of packed records is damaged")]
    Column,
    /// A column that ends before the records do.
    #[error("packed records end too early")]
    Short,
    /// A code without a meaning.
    #[error("packed records with unknown code {0}")]
    Code(u8),
    /// A site that was not there yet.
    #[error("packed records name a site that is not there")]
    Site,
}

/// Most records in a block.
pub const RECORDS_MAX: usize = 1 << 18;

/// The columns of a block.
const CODES: usize = 0;
const RUNS: usize = 1;
const NUMBERS: usize = 2;
const SITES: usize = 3;
/// That of literals with n bytes is `LITERALS + n`.
const LITERALS: usize = 3;
const REPEATS: usize = 12;
const N_COLUMNS: usize = 13;

/// In the column of codes: the run is in that of long runs.
const LONG_RUN: u64 = 255;
/// In the column of new sites: payload.
const PAYLOAD: u64 = 1 << 16;

/// Code, upper part: how the site is told.
const GUESSED: u8 = 0;
const NEXT: u8 = 1;
const NUMBERED: u8 = 2;
const NEW: u8 = 3;
const HOW_SHIFT: u32 = 5;
/// Code, uppermost bit: the repeats are in their column.
const OTHER_REPEATS: u8 = 0x80;

/// Code, lower part: how the value is told. 1 to 4 are rules.
const USUAL: u8 = 0;
const BY_RULE: u8 = 1;
/// Plus the number of bytes: from the site's last value.
const FROM_LAST: u8 = 4;
/// Plus the number of bytes: from the thread's last value.
const FROM_FIRST: u8 = 12;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::record::{Kind, Record};

    fn pack(records: &[Record]) -> Vec<u8> {
        let mut packer = Packer::new();
        let mut block = Vec::new();
        packer.push(records);
        packer.finish(&mut Press::new(), &mut block);
        block
    }

    fn unpack(block: &[u8], n_records: usize) -> Result<Vec<Record>, UnpackError> {
        let mut unpacker = Unpacker::new();
        let mut records = Vec::new();
        unpacker.start(block, n_records)?;
        loop {
            let before = records.len();
            unpacker.fill(&mut records)?;
            if records.len() == before {
                return Ok(records);
            }
        }
    }

    fn check(records: &[Record]) {
        let block = pack(records);
        assert_eq!(unpack(&block, records.len()).as_deref(), Ok(records));
    }

    /// The size of the packed block, without the 104 bytes that every block has.
    fn n_bytes(records: &[Record]) -> usize {
        check(records);
        pack(records).len() - 8 * N_COLUMNS
    }

    fn read(pc: u64, addr: u64) -> Record {
        Record::new(Kind::Read, 8, addr, 0, pc)
    }

    /// An address without a pattern.
    fn scattered(i: u64) -> u64 {
        let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40 << 6
    }

    #[test]
    fn nothing_packs_to_nothing() {
        assert_eq!(n_bytes(&[]), 0);
    }

    #[test]
    fn a_loop_over_an_array_packs_to_its_start() {
        let once: Vec<_> = (0..100).map(|i| read(1, 0x1000 + 8 * i)).collect();
        let longer: Vec<_> = (0..10_000).map(|i| read(1, 0x1000 + 8 * i)).collect();
        assert_eq!(n_bytes(&once), n_bytes(&longer));
    }

    #[test]
    fn fields_of_an_object_follow_from_the_first() {
        let objects = (0..1000).map(scattered);
        let one: Vec<_> = objects.clone().map(|object| read(1, object)).collect();
        let all: Vec<_> =
            objects.flat_map(|object| (0..4).map(move |i| read(1 + i, object + 8 * i))).collect();
        let (all, one) = (n_bytes(&all), n_bytes(&one));
        assert!(all < one + one / 8, "{all} bytes, and {one} for the first fields");
    }

    #[test]
    fn a_list_that_is_walked_again_costs_little() {
        let nodes: Vec<_> = (0..1000).map(|i| read(1, scattered(i))).collect();
        let again: Vec<_> = nodes.iter().cycle().take(20_000).copied().collect();
        assert!(n_bytes(&again) < 2 * n_bytes(&nodes));
    }

    #[test]
    fn each_thread_goes_on_where_it_was() {
        let switch = |to| [Record::new(Kind::Switch, 1, to, 0, 9), Record::more(10)];
        let turn = |turn: u64| {
            let thread = turn % 2;
            let at = turn / 2 * 10;
            let accesses = (at..at + 10).map(move |i| read(1 + i % 3, (thread << 32) + 8 * i));
            accesses.chain(switch(1 - thread))
        };
        let few: Vec<_> = (0..20).flat_map(turn).collect();
        let many: Vec<_> = (0..2000).flat_map(turn).collect();
        assert!(n_bytes(&many) < n_bytes(&few) + 1000);
    }

    #[test]
    fn a_packer_and_an_unpacker_start_afresh_with_each_block() {
        let records: Vec<_> = (0..5000).map(|i| read(i % 7, 8 * i)).collect();
        let (mut packer, mut press) = (Packer::new(), Press::new());
        let mut blocks = [Vec::new(), Vec::new()];
        for block in &mut blocks {
            records.chunks(333).for_each(|chunk| packer.push(chunk));
            packer.finish(&mut press, block);
        }
        assert_eq!(blocks[0], blocks[1]);
    }

    /// A record as a program would leave it: few sites, values that are near each other.
    fn usual() -> impl Strategy<Value = Record> {
        let kinds =
            vec![Kind::Read, Kind::Write, Kind::Switch, Kind::Enter, Kind::More, Kind::Acquire];
        (select(kinds), 0..3_u8, 0..40_u64, 0..6_u64).prop_map(|(kind, info, at, pc)| match kind {
            Kind::More => Record::more(at),
            Kind::Switch => Record::new(kind, info, at % 3, 0, 0x5555_0000 + pc),
            _ => {
                Record::new(kind, info, 0x7fff_0000 + 4 * at, (at % 4 / 3) as u16, 0x5555_0000 + pc)
            }
        })
    }

    /// Any 16 bytes.
    fn any_record() -> impl Strategy<Value = Record> {
        let word = prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), Just(1 << 56), 0..4_u64];
        (word.clone(), word).prop_map(|(head, tail)| Record { head, tail })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn usual_records_come_back(records in vec(usual(), 0..3000)) {
            check(&records);
        }

        #[test]
        fn any_records_come_back(records in vec(any_record(), 0..500)) {
            check(&records);
        }

        #[test]
        fn mixed_records_come_back(records in vec(prop_oneof![usual(), any_record()], 0..2000)) {
            check(&records);
        }

        #[test]
        fn any_bytes_unpack_to_something_or_an_error(
            block in vec(any::<u8>(), 0..300),
            n_records in 0..5000_usize,
        ) {
            let _ = unpack(&block, n_records);
        }

        #[test]
        fn damaged_blocks_unpack_to_something_or_an_error(
            records in vec(usual(), 1..500),
            at in any::<proptest::sample::Index>(),
            byte: u8,
        ) {
            let mut block = pack(&records);
            let at = at.index(block.len());
            block[at] = byte;
            if let Ok(unpacked) = unpack(&block, records.len()) {
                prop_assert_eq!(unpacked.len(), records.len());
            }
        }
    }
}
