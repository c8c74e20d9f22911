//! What packer and unpacker predict.
//!
//! Both feed the same records to a [`Model`], so both predict the same.
//!
//! Values are kept shifted up by 16 bits, as in a word without kind and info: then differences of
//! 48-bit numbers wrap correctly without a mask.

use std::hint::select_unpredictable;

use super::UnpackError;
use crate::record::{Kind, Record};

/// Slots for sites: a large program has about 10 000 in a block. A small one touches only what it
/// uses.
const PLACES_BITS: u32 = 14;
const PLACES: usize = 1 << PLACES_BITS;
/// Slots for payload predictions.
const PAYLOADS: usize = 1 << 10;
/// Number of threads with separate contexts.
const THREADS: usize = 256;
/// Any odd number whose products differ in their upper bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The head of a payload record; a [`Kind::More`] with another one is treated as plain.
pub(super) const MORE_HEAD: u64 = (Kind::More as u64) << 56;
/// Heads without any of these bits need a closer look: [`Kind::More`], [`Kind::Switch`], and
/// two others that are rare.
pub(super) const PLAIN: u64 = 0xee << 56;
const _: () = assert!(MORE_HEAD & PLAIN == 0 && ((Kind::Switch as u64) << 56) & PLAIN == 0);

/// The part of a record that stays the same when an operation is repeated: pc, kind and info.
#[inline(always)]
pub(super) fn key(record: Record) -> u64 {
    record.tail << 16 | record.head >> 48
}

/// The operand, shifted.
#[inline(always)]
pub(super) fn value(record: Record) -> u64 {
    record.head << 16
}

/// The extra.
#[inline(always)]
pub(super) fn extra(record: Record) -> u16 {
    (record.tail >> 48) as u16
}

/// The record with these three parts.
#[inline(always)]
pub(super) fn record(key: u64, value: u64, extra: u16) -> Record {
    Record { head: key << 48 | value >> 16, tail: u64::from(extra) << 48 | key >> 16 }
}

/// What is known of a site, for one thread.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Site {
    // The site's key with the thread's salt. 0 means that the slot is free.
    key: u64,
    last: u64,
    // Added to `last`: the last distance that occurred twice in a row. So a loop that starts over
    // costs one misprediction and not two.
    stride: u64,
    distance: u64,
    // The last distance from the previous record's value.
    near: u64,
    // The slots of the sites that followed: the last one in the lower half, the one before in the
    // upper.
    followers: u32,
    extra: u16,
}

const _: () = assert!(size_of::<Site>() == 64);

/// Sites by slot.
pub(super) type Sites = [Site; PLACES];

impl Site {
    /// Its salted key.
    #[inline(always)]
    pub(super) fn key(&self) -> u64 {
        self.key
    }

    /// The value predicted from the site's last values.
    #[inline(always)]
    pub(super) fn own(&self) -> u64 {
        self.last.wrapping_add(self.stride)
    }

    /// The value predicted from the previous record's.
    #[inline(always)]
    pub(super) fn near(&self, before: u64) -> u64 {
        before.wrapping_add(self.near)
    }

    /// The extra of the last time.
    #[inline(always)]
    pub(super) fn extra(&self) -> u16 {
        self.extra
    }

    /// The places that may come next, the likelier one first.
    #[inline(always)]
    pub(super) fn followers(&self) -> [u16; 2] {
        [self.followers as u16, (self.followers >> 16) as u16]
    }

    /// Records that `place` followed.
    #[inline(always)]
    pub(super) fn lead_to(&mut self, place: usize) {
        let known = self.followers as u16 == place as u16;
        self.followers =
            select_unpredictable(known, self.followers, self.followers << 16 | place as u32);
    }

    /// Updates the site after an execution with this value and extra, where the previous record
    /// had the value `before`.
    #[inline(always)]
    pub(super) fn learn(&mut self, value: u64, extra: u16, before: u64) {
        let distance = value.wrapping_sub(self.last);
        self.stride = select_unpredictable(distance == self.distance, distance, self.stride);
        self.distance = distance;
        self.last = value;
        self.near = value.wrapping_sub(before);
        self.extra = extra;
    }
}

/// What is known of a payload.
#[derive(Clone, Copy, Default)]
pub(super) struct Payload {
    last: u64,
    stride: u64,
    distance: u64,
}

impl Payload {
    /// The predicted payload.
    pub(super) fn expected(&self) -> u64 {
        self.last.wrapping_add(self.stride)
    }

    fn learn(&mut self, payload: u64) {
        let distance = payload.wrapping_sub(self.last);
        if distance == self.distance {
            self.stride = distance;
        }
        self.distance = distance;
        self.last = payload;
    }
}

/// The position of a thread.
#[derive(Clone, Copy, Default)]
pub(super) struct Context {
    // The slot of its last site, below PLACES.
    pub(super) place: usize,
    // Its last value.
    pub(super) value: u64,
    // Distinguishes its sites from those of other threads.
    pub(super) salt: u64,
    thread: u32,
}

/// The state of packer and unpacker.
pub(super) struct Model {
    pub(super) sites: Box<Sites>,
    // The slots of added sites.
    added: Vec<u16>,
    payloads: Box<[Payload; PAYLOADS]>,
    threads: Box<[Context; THREADS]>,
    pub(super) context: Context,
    // Number of payload records since the last other record.
    n_payloads: usize,
    // The thread named by the last record, a switch.
    to: Option<u32>,
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            sites: table(),
            added: Vec::new(),
            payloads: table(),
            threads: table(),
            context: Context::default(),
            n_payloads: 0,
            to: None,
        }
    }

    /// Resets the model.
    pub(super) fn reset(&mut self) {
        // Nothing else writes to a free slot, except for the first two: see `is_known`.
        for place in self.added.drain(..).chain([0, 1]) {
            self.sites[usize::from(place) % PLACES] = Site::default();
        }
        self.payloads.fill(Payload::default());
        self.threads.fill(Context::default());
        self.context = Context::default();
        self.n_payloads = 0;
        self.to = None;
    }

    /// The site in this slot.
    #[inline(always)]
    pub(super) fn site(&mut self, place: usize) -> &mut Site {
        site(&mut self.sites, place)
    }

    /// The key of the site in this slot, for the running thread.
    #[inline(always)]
    pub(super) fn key_at(&self, place: usize) -> u64 {
        self.sites[place % PLACES].key ^ self.context.salt
    }

    /// The slot of the key's site, if it is known.
    pub(super) fn find(&self, key: u64) -> Option<usize> {
        let salted = key ^ self.context.salt;
        let home = home(salted);
        [home, home ^ 1].into_iter().find(|&place| self.sites[place].key == salted)
    }

    /// Adds a site. If both of its slots are taken, the site in the first is evicted.
    pub(super) fn add(&mut self, key: u64) -> usize {
        let salted = key ^ self.context.salt;
        let home = home(salted);
        let free = [home, home ^ 1].into_iter().find(|&place| self.sites[place].key == 0);
        let place = free.unwrap_or(home);
        self.sites[place] = Site { key: salted, ..Site::default() };
        if free.is_some() {
            self.added.push(place as u16);
        }
        place
    }

    /// Whether a packer could name the site in this slot. The salted key 0 is known from the
    /// start, in the first two slots.
    pub(super) fn is_known(&self, place: usize) -> bool {
        place < 2 || self.sites.get(place).is_some_and(|site| site.key != 0)
    }

    /// Continues after a record other than payload that needed a closer look.
    pub(super) fn update(&mut self, record: Record) {
        self.n_payloads = 0;
        let is_switch = record.kind() == Some(Kind::Switch);
        self.to = is_switch.then_some(record.operand() as u32);
    }

    /// Continues after plain records.
    #[inline(always)]
    pub(super) fn after_plain(&mut self) {
        self.n_payloads = 0;
        self.to = None;
    }

    /// The prediction of the next payload.
    pub(super) fn payload(&mut self) -> &mut Payload {
        let number = self.context.place.wrapping_mul(3).wrapping_add(self.n_payloads);
        &mut self.payloads[number % PAYLOADS]
    }

    /// Continues after a payload. That of a switch is the last record of its thread.
    pub(super) fn after_payload(&mut self, payload: u64) {
        self.payload().learn(payload);
        self.n_payloads += 1;
        if let Some(to) = self.to.take() {
            self.threads[self.context.thread as usize % THREADS] = self.context;
            self.context = Context {
                salt: u64::from(to).wrapping_mul(SPREAD),
                thread: to,
                ..self.threads[to as usize % THREADS]
            };
        }
    }

    /// The slot that a code's number names.
    pub(super) fn place(&self, number: u64) -> Result<usize, UnpackError> {
        let place = usize::try_from(number).map_err(|_| UnpackError::Site)?;
        if self.is_known(place) { Ok(place) } else { Err(UnpackError::Site) }
    }
}

/// The site in this slot.
#[inline(always)]
pub(super) fn site(sites: &mut Sites, place: usize) -> &mut Site {
    &mut sites[place % PLACES]
}

/// The first slot to search for a site, by its salted key.
#[inline(always)]
pub(super) fn home(salted: u64) -> usize {
    (salted.wrapping_mul(SPREAD) >> (u64::BITS - PLACES_BITS)) as usize
}

fn table<T: Copy + Default, const N: usize>() -> Box<[T; N]> {
    match vec![T::default(); N].into_boxed_slice().try_into() {
        Ok(table) => table,
        Err(_) => unreachable!("a vector of N elements makes a slice of N"),
    }
}
