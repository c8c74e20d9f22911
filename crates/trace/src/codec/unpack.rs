//! Unpacks a block.

use super::column::{Source, unzigzag};
use super::model::{Model, Number, Rule, Site};
use super::{
    BY_RULE, CODES, FROM_FIRST, FROM_LAST, GUESSED, HOW_SHIFT, LITERALS, LONG_RUN, N_COLUMNS, NEXT,
    NUMBERED, NUMBERS, OTHER_REPEATS, PAYLOAD, REPEATS, RUNS, SITES, USUAL, UnpackError,
};
use crate::record::Record;

/// Gives back the records of blocks, one block after the other.
pub struct Unpacker {
    model: Model,
    columns: [Source; N_COLUMNS],
    // Tail of the last new site.
    tail: u64,
    // Records as expected before the next surprise, and its code; none is left if there is
    // no code.
    run: u64,
    code: Option<u8>,
    n_left: usize,
}

/// Records per call of [`Unpacker::fill`]: they stay in the first-level cache until they
/// are used.
const CHUNK_RECORDS: usize = 1024;
/// A record adds fewer bytes than this to any column: a new site has 3 + 10.
const COLUMN_BYTES_PER_RECORD: usize = 16;

impl Default for Unpacker {
    fn default() -> Self {
        Self::new()
    }
}

impl Unpacker {
    /// An unpacker without a block.
    #[must_use]
    pub fn new() -> Self {
        Self {
            model: Model::new(),
            columns: Default::default(),
            tail: 0,
            run: 0,
            code: None,
            n_left: 0,
        }
    }

    /// Starts with a block of `n_records`, and leaves the one before.
    pub fn start(&mut self, mut block: &[u8], n_records: usize) -> Result<(), UnpackError> {
        self.n_left = 0;
        self.model.reset();
        self.tail = 0;
        for column in &mut self.columns {
            column.open(&mut block, n_records.saturating_mul(COLUMN_BYTES_PER_RECORD))?;
        }
        self.read_code()?;
        self.n_left = n_records;
        Ok(())
    }

    /// Appends the next records to `out`; the block has no more if it appends none.
    pub fn fill(&mut self, out: &mut Vec<Record>) -> Result<(), UnpackError> {
        let end = out.len() + self.n_left.min(CHUNK_RECORDS);
        self.n_left -= end - out.len();
        while out.len() < end {
            let n_max = self.run.min((end - out.len()) as u64) as usize;
            self.run -= self.take_expected(n_max, out) as u64;
            if out.len() == end {
                break;
            }
            if self.run > 0 {
                // As expected, but not an everyday matter.
                out.push(self.unpack(GUESSED << HOW_SHIFT | USUAL)?);
                self.run -= 1;
            } else {
                let code = self.code.ok_or(UnpackError::Short)?;
                out.push(self.unpack(code)?);
                self.read_code()?;
            }
        }
        Ok(())
    }

    fn read_code(&mut self) -> Result<(), UnpackError> {
        if self.columns[CODES].is_empty() {
            // All that is left comes as expected.
            self.code = None;
            self.run = u64::MAX;
            return Ok(());
        }
        let pair = self.columns[CODES].get(2)?;
        self.code = Some(pair as u8);
        self.run = pair >> 8;
        if self.run == LONG_RUN {
            self.run = self.columns[RUNS].get_varint()?;
        }
        Ok(())
    }

    /// Appends up to `n` records that come as expected. The path of most records.
    #[inline]
    fn take_expected(&mut self, n_max: usize, out: &mut Vec<Record>) -> usize {
        let start = out.len();
        out.resize(start + n_max, Record::default());
        let mut context = self.model.context;
        let mut n = 0;
        for place in &mut out[start..] {
            let Some(expected) = self.model.expected(&context) else { break };
            *place = expected.record;
            context = self.model.confirm(&context, &expected);
            n += 1;
        }
        self.model.context = context;
        out.truncate(start + n);
        n
    }

    /// Unpacks a record that may be a surprise.
    #[inline(never)]
    fn unpack(&mut self, code: u8) -> Result<Record, UnpackError> {
        let (has_repeats, code) = (code & OTHER_REPEATS != 0, code & !OTHER_REPEATS);
        let number = self.site(code)?;
        let site = self.model.sites[number.index()];
        if has_repeats {
            *self.model.repeats(number) = self.columns[REPEATS].get_varint()? << 48;
        }
        let repeats = *self.model.repeats(number) & site.repeats;
        let value = self.value(code, number)? & site.mask;
        let what = code & ((1 << HOW_SHIFT) - 1);
        if what == USUAL {
            self.model.keep(number, value);
        } else {
            let rule = what.checked_sub(BY_RULE).and_then(|rule| Rule::ALL.get(usize::from(rule)));
            self.model.learn(number, value, rule.copied());
        }
        self.model.advance(number, value);
        let record = site.record(value);
        Ok(Record { tail: record.tail | repeats, ..record })
    }

    fn site(&mut self, code: u8) -> Result<Number, UnpackError> {
        let number = match code >> HOW_SHIFT {
            GUESSED => {
                self.model.affirm();
                return Ok(self.model.guess());
            }
            NEXT => self.model.next(),
            NUMBERED => {
                let index = self.columns[NUMBERS].get_varint()?;
                let index = usize::try_from(index).map_err(|_| UnpackError::Site)?;
                *self.model.numbers.get(index).ok_or(UnpackError::Site)?
            }
            super::NEW => {
                let site = self.new_site()?;
                self.model.add(site)
            }
            _ => return Err(UnpackError::Code(code)),
        };
        self.model.correct(number);
        Ok(number)
    }

    fn new_site(&mut self) -> Result<Site, UnpackError> {
        let column = &mut self.columns[SITES];
        let head = column.get(3)?;
        if head == PAYLOAD {
            return Ok(Site::PAYLOAD);
        }
        if head > PAYLOAD {
            return Err(UnpackError::Site);
        }
        self.tail = self.tail.wrapping_add(unzigzag(column.get_varint()?));
        Ok(Site::plain(head << 48, self.tail))
    }

    fn value(&mut self, code: u8, site: Number) -> Result<u64, UnpackError> {
        let what = code & ((1 << HOW_SHIFT) - 1);
        let [last, first] = self.model.bases(site);
        let (base, n) = match what {
            USUAL => return Ok(self.model.usual_of(site)),
            BY_RULE..=FROM_LAST => {
                return Ok(self.model.by_rule(site)[usize::from(what - BY_RULE)]);
            }
            _ if what <= FROM_FIRST => (last, what - FROM_LAST),
            _ => (first, what - FROM_FIRST),
        };
        if n > 8 {
            return Err(UnpackError::Code(code));
        }
        let n = usize::from(n);
        Ok(base.wrapping_add(unzigzag(self.columns[LITERALS + n].get(n)?)))
    }
}
