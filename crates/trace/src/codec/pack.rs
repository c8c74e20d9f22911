//! Packs a block.

use std::hint::select_unpredictable;

use super::column::{Column, ColumnCompressor, zigzag};
use super::model::{Context, MORE_HEAD, Model, PLAIN, Sites, extra, home, key, site, value};
use super::{
    CODES, HOW_SHIFT, LITERALS, N_COLUMNS, NEAR, NEW, NUMBERED, OTHER_EXTRA, PAYLOAD, RECORDS_MAX,
    SITES,
};
use crate::record::Record;

/// Packs records into a block.
pub struct Packer {
    model: Model,
    columns: [Column; N_COLUMNS],
    n_records: usize,
}

/// Records that room is made for at once: as many as fit in the first-level cache.
const CHUNK_RECORDS: usize = 1024;
/// Maximum number of literal bytes per record: number, extra, value.
const LITERAL_BYTES_MAX: usize = 2 + 2 + 8;

impl Default for Packer {
    fn default() -> Self {
        Self::new()
    }
}

impl Packer {
    /// An empty block.
    #[must_use]
    pub fn new() -> Self {
        Self { model: Model::new(), columns: Default::default(), n_records: 0 }
    }

    /// Number of records in the block so far.
    #[must_use]
    pub fn n_records(&self) -> usize {
        self.n_records
    }

    /// Adds records to the block, which holds at most [`RECORDS_MAX`].
    pub fn push(&mut self, records: &[Record]) {
        assert!(
            self.n_records + records.len() <= RECORDS_MAX,
            "a block takes {RECORDS_MAX} records"
        );
        for chunk in records.chunks(CHUNK_RECORDS) {
            self.columns[CODES].make_room(chunk.len());
            self.columns[LITERALS].make_room(chunk.len() * LITERAL_BYTES_MAX);
            let mut left = chunk;
            loop {
                left = &left[self.pack_known(left)..];
                let Some((&record, behind)) = left.split_first() else { break };
                self.pack(record);
                left = behind;
            }
        }
        self.n_records += records.len();
    }

    /// Appends the packed block to `out` and starts a new one.
    pub fn finish(&mut self, compressor: &mut ColumnCompressor, out: &mut Vec<u8>) {
        for column in &mut self.columns {
            compressor.append(column, self.n_records, out);
            column.clear();
        }
        self.model.reset();
        self.n_records = 0;
    }

    /// Packs plain records of known sites up to the first other one, and returns how many. Most
    /// records take this path: whether a prediction is correct is as unpredictable as the
    /// program, so there is no branch on it. Two passes, each of which fits in the registers.
    fn pack_known(&mut self, records: &[Record]) -> usize {
        let mut places = [0; CHUNK_RECORDS];
        let Model { sites, context, .. } = &mut self.model;
        let [codes, literals, _] = &mut self.columns;
        let codes_room = codes.room();
        let n = encode_sites(sites, context, records, codes_room, &mut places);
        let (codes_room, places) = (&mut codes_room[..n], &places[..n]);
        let n_bytes = encode_values(sites, context, records, places, codes_room, literals.room());
        codes.advance(n);
        literals.advance(n_bytes);
        if n > 0 {
            self.model.after_plain();
        }
        n
    }

    /// Packs a record of any kind.
    #[inline(never)]
    fn pack(&mut self, record: Record) {
        if record.head == MORE_HEAD {
            return self.pack_payload(record.tail);
        }
        let model = &mut self.model;
        let before = model.context.place;
        let (how, place) = match model.find(key(record)) {
            Some(place) => {
                let followers = model.site(before).followers();
                let follows = followers.iter().position(|&follower| usize::from(follower) == place);
                let how = follows.map_or(NUMBERED, |position| position as u8);
                if how == NUMBERED {
                    self.columns[LITERALS].put(place as u64, 2);
                }
                (how, place)
            }
            None => {
                self.columns[SITES].put(key(record), 8);
                (NEW, model.add(key(record)))
            }
        };
        model.site(before).lead_to(place);
        let (value, extra, value_before) = (value(record), extra(record), model.context.value);
        let site = model.site(place);
        let mut code = how << HOW_SHIFT;
        if extra != site.extra() {
            code |= OTHER_EXTRA;
            self.columns[LITERALS].put(u64::from(extra), 2);
        }
        let [own, near] = [site.own(), site.near(value_before)].map(|guess| literal(value, guess));
        if near < own {
            code |= NEAR;
        }
        let literal = own.min(near);
        self.columns[LITERALS].put(literal, n_bytes(literal));
        self.columns[CODES].put(u64::from(code | n_bytes(literal) as u8), 1);
        site.learn(value, extra, value_before);
        (model.context.place, model.context.value) = (place, value);
        model.update(record);
    }

    fn pack_payload(&mut self, payload: u64) {
        let expected = self.model.payload().expected();
        let literal = zigzag(payload.wrapping_sub(expected));
        let n_bytes = (u64::BITS - literal.leading_zeros()).div_ceil(8) as usize;
        self.columns[LITERALS].put(literal, n_bytes);
        self.columns[CODES].put(u64::from(PAYLOAD | (n_bytes as u8) << 4), 1);
        self.model.after_payload(payload);
    }
}

/// Starts the codes of plain records of known sites, up to the first other one. Stores the slots
/// of the sites and returns how many there were.
#[inline(never)]
fn encode_sites(
    sites: &mut Sites,
    context: &mut Context,
    records: &[Record],
    codes: &mut [u8],
    places: &mut [u16; CHUNK_RECORDS],
) -> usize {
    let (mut before, salt) = (context.place, context.salt);
    let mut n = 0;
    for ((&record, code), place_out) in records.iter().zip(codes).zip(places) {
        let salted = key(record) ^ salt;
        let place = home(salted);
        if record.head & PLAIN == 0 || sites[place].key() != salted {
            break;
        }
        let site = site(sites, before);
        let [first, second] = site.followers();
        let is_other = first != place as u16;
        let is_neither = is_other & (second != place as u16);
        site.lead_to(place);
        *code = (u8::from(is_other) << HOW_SHIFT) << u8::from(is_neither);
        *place_out = place as u16;
        before = place;
        n += 1;
    }
    context.place = before;
    n
}

/// Completes the codes of records whose sites are in `places`, and returns the number of literal
/// bytes.
#[inline(never)]
fn encode_values(
    sites: &mut Sites,
    context: &mut Context,
    records: &[Record],
    places: &[u16],
    codes: &mut [u8],
    literals: &mut [u8],
) -> usize {
    let mut before = context.value;
    let n_bytes_before = literals.len();
    let mut rest = literals;
    for ((&record, &place), code) in records.iter().zip(places).zip(codes) {
        let (value, extra) = (value(record), extra(record));
        let site = site(sites, usize::from(place));
        let own = literal(value, site.own());
        let near = literal(value, site.near(before));
        let is_near = usize::from(near < own);
        let literal = select_unpredictable(near < own, near, own);
        let n_bytes = n_bytes(literal);
        let is_other = usize::from(extra != site.extra());
        site.learn(value, extra, before);
        before = value;

        // Everything is stored, and counted only if needed.
        let Some(out) = rest.first_chunk_mut::<LITERAL_BYTES_MAX>() else {
            unreachable!("there is room for a chunk")
        };
        out[..2].copy_from_slice(&place.to_le_bytes());
        // The site is given by slot or as a follower, so one bit suffices.
        let from = usize::from(*code >> (NUMBERED.ilog2() + HOW_SHIFT)) * 2;
        out[from..from + 2].copy_from_slice(&extra.to_le_bytes());
        let from = from + 2 * is_other;
        out[from..from + 8].copy_from_slice(&literal.to_le_bytes());
        rest = &mut rest[from + n_bytes..];
        let told = n_bytes | is_near << NEAR.ilog2() | is_other << OTHER_EXTRA.ilog2();
        *code |= told as u8;
    }
    context.value = before;
    n_bytes_before - rest.len()
}

/// The distance of a value from a guess, both shifted by 16 bits, in zigzag encoding.
#[inline(always)]
fn literal(value: u64, guess: u64) -> u64 {
    let distance = value.wrapping_sub(guess) as i64;
    (distance >> 15 ^ distance >> 63) as u64
}

/// Number of bytes for a number of up to 62 bits.
#[inline(always)]
fn n_bytes(literal: u64) -> usize {
    // The ones keep the logarithm defined.
    ((literal << 1 | 1).ilog2() as usize + 7) >> 3
}
