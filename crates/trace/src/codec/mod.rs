//! Packed blocks of records.
//!
//! Programs mostly repeat what they have done before. So packer and unpacker both keep a model
//! that predicts the next record, and only the difference is stored: value-prediction compression
//! (Burtscher et al., «The VPC Trace-Compression Algorithms», IEEE Transactions on Computers
//! 54(11), 2005), reduced to what can be done without branching on unpredictable data. A
//! mispredicted branch takes as long as everything else together.
//!
//! **The model.** The part of a record that stays the same whenever an operation is repeated (pc,
//! kind, info) is a *site*, the operand (usually an address) its *value*; the extra (which counts
//! repeats, for plain accesses) belongs to neither. A site has a slot in a table of 2^14, by a
//! hash of its key (`pc << 16 | kind << 8 | info`, xor the thread's salt): the first slot, or its
//! neighbor (xor 1) if the first is taken; if both are, the site in the first is evicted. So each
//! thread has its own sites. A site keeps
//!
//! - the last two sites that followed it, as guesses for the next one,
//! - its last value and a stride: the last distance that occurred twice in a row. Their sum is
//!   one guess for the value,
//! - the last distance from the previous record's value: the other guess (fields of an object, a
//!   store after a load),
//! - its last extra, as a guess for the next.
//!
//! A payload record (a More without operand) is predicted from the last one after the same site,
//! with a stride. When the turn passes ([`Kind::Switch`](crate::record::Kind::Switch)), the
//! context of the thread that gets it (its last site and value) is restored. Everything starts at
//! zero; a salt is the thread's number times `0x9e3779b97f4a7c15`.
//!
//! **The block.** Each record has a code byte, and literals as the code specifies:
//! ```text
//! code     = how << 6 | other << 5 | near << 4 | n
//! how      = 0 the site that followed last | 1 the other one that followed before it
//!          | 2 by slot | 3 a new one
//! other    = 1 if the extra is not the last one
//! near     = 1 if the value is relative to that of the previous record
//! n        = bytes of the value, 0..=8
//! payload  = n << 4 | 15
//! literals = slot (u16) if how is 2, extra (u16) if other is 1, n bytes: zigzag of value - guess
//! columns  = codes, literals, keys of new sites (u64 without salt)
//! block    = (n_bytes (u32) n_stored (u32) stored)*, a column each, in this order
//! ```
//! A correctly predicted record has code 0 and no literals. A column is compressed with zstd
//! (then n_stored < n_bytes) if that makes it eight times shorter, which a sample tells in
//! advance: runs of code 0 shrink to almost nothing, and irregular data costs no time.
//!
//! **Choices.** Time matters more than space here: recording should not cost more than
//! ThreadSanitizer, and 3 bytes per event are little. The previous codec stored only
//! mispredictions and compressed all of them. Where mispredictions are frequent it took a third
//! to a quarter of the space and four times the time: 37 ns per record of
//! `benches/programs/sort`, where this one takes 9. The state is reset for each block, so blocks
//! can be read independently and in any order.
//!
//! Bytes per record, by `benches/codec`: sweep and matrix 0.001, time stamps 0.1,
//! work queue 0.2, quicksort 0.4, random turns 1.1, hash table 1.7, list 2.4, large code 2.8.
//!
//! **Limits.** A random access takes four to five bytes. Walking a list again costs as much as
//! the first time. In programs with more than about 10 000 sites per block of 2^18 records, many
//! sites are stored again, at nine bytes each.

mod column;
mod model;
mod pack;
mod unpack;

pub use column::ColumnCompressor;
pub use pack::Packer;
pub use unpack::Unpacker;

/// Why bytes could not be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// A column is truncated, or zstd rejects it.
    #[error("a column of packed records is damaged")]
    Column,
    /// A column ends before the records do.
    #[error("packed records end too early")]
    Short,
    /// An undefined code.
    #[error("packed records with unknown code {0}")]
    Code(u8),
    /// An unknown site.
    #[error("packed records name a site that is not there")]
    Site,
}

/// Maximum number of records in a block.
pub const RECORDS_MAX: usize = 1 << 18;

/// The columns of a block.
const CODES: usize = 0;
const LITERALS: usize = 1;
const SITES: usize = 2;
const N_COLUMNS: usize = 3;

/// Code, uppermost bits: how the site is encoded. 0 and 1 are the slots that followed.
const HOW_SHIFT: u32 = 6;
const NUMBERED: u8 = 2;
const NEW: u8 = 3;
/// Code: the extra is among the literals.
const OTHER_EXTRA: u8 = 0x20;
/// Code: the value is relative to that of the previous record.
const NEAR: u8 = 0x10;
/// Code, lower bits: size of the value in bytes, up to 8, or that this is payload.
const N_BYTES: u8 = 0x0f;
const PAYLOAD: u8 = 0x0f;

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
        packer.finish(&mut ColumnCompressor::new(), &mut block);
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

    /// The size of the packed block, without the 24 bytes that every block has.
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
    fn a_loop_over_an_array_packs_to_next_to_nothing() {
        let array: Vec<_> = (0..100_000).map(|i| read(1, 0x1000 + 8 * i)).collect();
        let n_bytes = n_bytes(&array);
        assert!(n_bytes < 100, "{n_bytes} bytes");
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
    fn a_scattered_access_takes_five_bytes_at_most() {
        let nodes: Vec<_> = (0..10_000).map(|i| read(1, scattered(i))).collect();
        let n_bytes = n_bytes(&nodes);
        assert!(n_bytes < 50_000, "{n_bytes} bytes");
    }

    #[test]
    fn more_sites_than_there_is_room_for_come_back() {
        let records: Vec<_> = (0..60_000).map(|i| read(scattered(i % 40_000), 8 * i)).collect();
        check(&records);
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
        let (mut packer, mut compressor) = (Packer::new(), ColumnCompressor::new());
        let mut blocks = [Vec::new(), Vec::new()];
        for block in &mut blocks {
            records.chunks(333).for_each(|chunk| packer.push(chunk));
            packer.finish(&mut compressor, block);
        }
        assert_eq!(blocks[0], blocks[1]);
    }

    /// A record as a program would leave it: few sites, and values close to each other.
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
