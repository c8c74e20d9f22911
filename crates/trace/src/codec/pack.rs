//! Packs a block.

use super::column::{Column, Press, zigzag};
use super::model::{Model, Number, Rule, Site};
use super::{
    BY_RULE, CODES, FROM_FIRST, FROM_LAST, GUESSED, HOW_SHIFT, LITERALS, LONG_RUN, N_COLUMNS, NEW,
    NEXT, NUMBERED, NUMBERS, OTHER_REPEATS, PAYLOAD, RECORDS_MAX, REPEATS, RUNS, SITES, USUAL,
};
use crate::record::Record;

/// Packs records into a block.
pub struct Packer {
    model: Model,
    index: Index,
    columns: [Column; N_COLUMNS],
    // Tail of the last new site.
    tail: u64,
    // Records as expected since the last surprise.
    run: u64,
    n_records: usize,
}

impl Default for Packer {
    fn default() -> Self {
        Self::new()
    }
}

impl Packer {
    /// An empty block.
    #[must_use]
    pub fn new() -> Self {
        Self {
            model: Model::new(),
            index: Index::new(),
            columns: Default::default(),
            tail: 0,
            run: 0,
            n_records: 0,
        }
    }

    /// How many records the block holds so far.
    #[must_use]
    pub fn n_records(&self) -> usize {
        self.n_records
    }

    /// Adds records to the block, which takes [`RECORDS_MAX`] in all.
    pub fn push(&mut self, records: &[Record]) {
        assert!(
            self.n_records + records.len() <= RECORDS_MAX,
            "a block takes {RECORDS_MAX} records"
        );
        let mut left = records;
        loop {
            left = &left[self.skip_expected(left)..];
            let Some((&record, behind)) = left.split_first() else { break };
            self.pack(record);
            left = behind;
        }
        self.n_records += records.len();
    }

    /// Appends the packed block to `out` and starts a new one.
    pub fn finish(&mut self, press: &mut Press, out: &mut Vec<u8>) {
        for column in &mut self.columns {
            press.press(column, out);
            column.clear();
        }
        self.model.reset();
        self.index.clear();
        self.tail = 0;
        self.run = 0;
        self.n_records = 0;
    }

    /// How many of the records come as expected. The path of most records.
    #[inline]
    fn skip_expected(&mut self, records: &[Record]) -> usize {
        let mut context = self.model.context;
        let mut n = 0;
        for &record in records {
            let Some(expected) = self.model.expected(&context) else { break };
            // One comparison, so that there is one branch to be predicted.
            let difference =
                expected.record.head ^ record.head | expected.record.tail ^ record.tail;
            if difference != 0 {
                break;
            }
            context = self.model.confirm(&context, &expected);
            n += 1;
        }
        self.model.context = context;
        self.run += n as u64;
        n
    }

    /// Packs a record that may be a surprise.
    #[inline(never)]
    fn pack(&mut self, record: Record) {
        let (how, site) = self.tell_site(record);
        let value = self.model.sites[site.index()].value(record);
        let repeats = self.tell_repeats(site, record);
        let what = self.tell_value(site, value);
        if (how, what, repeats) == (GUESSED, USUAL, 0) {
            self.run += 1;
        } else {
            let code = u64::from(repeats | how << HOW_SHIFT | what);
            if self.run < LONG_RUN {
                self.columns[CODES].put(self.run << 8 | code, 2);
            } else {
                self.columns[CODES].put(LONG_RUN << 8 | code, 2);
                self.columns[RUNS].put_varint(self.run);
            }
            self.run = 0;
        }
        self.model.advance(site, value);
    }

    fn tell_site(&mut self, record: Record) -> (u8, Number) {
        let model = &mut self.model;
        let guess = model.guess();
        if fits(model, guess, record) {
            model.affirm();
            return (GUESSED, guess);
        }
        let next = model.next();
        let (how, number) = if fits(model, next, record) {
            (NEXT, next)
        } else {
            let site = Site::of(record);
            match self.index.find(model, &site) {
                Some(number) => {
                    self.columns[NUMBERS].put_varint(number.index() as u64);
                    (NUMBERED, number)
                }
                None => (NEW, self.add(site)),
            }
        };
        self.model.correct(number);
        (how, number)
    }

    fn add(&mut self, site: Site) -> Number {
        let number = self.model.add(site);
        let column = &mut self.columns[SITES];
        if site.is_payload() {
            column.put(PAYLOAD, 3);
        } else {
            column.put(site.head >> 48, 3);
            column.put_varint(zigzag(site.tail.wrapping_sub(self.tail)));
            self.tail = site.tail;
            self.index.insert(&self.model, number);
        }
        number
    }

    fn tell_repeats(&mut self, site: Number, record: Record) -> u8 {
        let mask = self.model.sites[site.index()].repeats;
        let repeats = record.tail & mask;
        let expected = self.model.repeats(site);
        if repeats == *expected & mask {
            return 0;
        }
        *expected = repeats;
        self.columns[REPEATS].put_varint(repeats >> 48);
        OTHER_REPEATS
    }

    fn tell_value(&mut self, site: Number, value: u64) -> u8 {
        let model = &mut self.model;
        if model.usual_of(site) == value {
            model.keep(site, value);
            return USUAL;
        }
        let right = model.by_rule(site).map(|guess| guess == value);
        let (what, rule) = match right.iter().position(|&right| right) {
            Some(rule) => (BY_RULE + rule as u8, Some(Rule::ALL[rule])),
            None => {
                let [last, first] = model.bases(site).map(|base| zigzag(value.wrapping_sub(base)));
                let (from, literal) =
                    if first < last { (FROM_FIRST, first) } else { (FROM_LAST, last) };
                let n = 8 - (literal | 1).leading_zeros() as usize / 8;
                self.columns[LITERALS + n].put(literal, n);
                (from + n as u8, None)
            }
        };
        model.learn(site, value, rule);
        what
    }
}

/// Whether the record is one of this site.
fn fits(model: &Model, number: Number, record: Record) -> bool {
    let site = &model.sites[number.index()];
    let without = Record { tail: record.tail & !site.repeats, ..record };
    number != Number::NONE && site.record(site.value(record)) == without
}

/// Finds plain sites by what they are. Open addressing, half full at most.
struct Index {
    places: Vec<Number>,
}

const INDEX_PLACES_MIN: usize = 1024;

impl Index {
    fn new() -> Self {
        Self { places: vec![Number::NONE; INDEX_PLACES_MIN] }
    }

    fn clear(&mut self) {
        self.places.truncate(INDEX_PLACES_MIN);
        self.places.fill(Number::NONE);
    }

    fn find(&self, model: &Model, site: &Site) -> Option<Number> {
        if site.is_payload() {
            return None;
        }
        let mut place = self.first_place(site);
        loop {
            let number = self.places[place];
            if number == Number::NONE {
                return None;
            }
            let known = &model.sites[number.index()];
            if (known.head, known.tail) == (site.head, site.tail) {
                return Some(number);
            }
            place = self.next_place(place);
        }
    }

    /// Adds the last of the model's sites.
    fn insert(&mut self, model: &Model, number: Number) {
        if self.places.len() < 2 * model.sites.len() {
            self.places.resize(self.places.len() * 2, Number::NONE);
            self.places.fill(Number::NONE);
            for (&number, site) in model.numbers.iter().zip(&model.sites).skip(1) {
                if !site.is_payload() {
                    self.put(site, number);
                }
            }
        } else {
            self.put(&model.sites[number.index()], number);
        }
    }

    fn put(&mut self, site: &Site, number: Number) {
        let mut place = self.first_place(site);
        while self.places[place] != Number::NONE {
            place = self.next_place(place);
        }
        self.places[place] = number;
    }

    fn first_place(&self, site: &Site) -> usize {
        let hash = (site.tail ^ site.head).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & (self.places.len() - 1)
    }

    fn next_place(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }
}
