//! Unpacks a block.

use super::column::{Source, unzigzag};
use super::model::{MORE_HEAD, Model, PLAIN, record};
use super::{
    CODES, HOW_SHIFT, LITERALS, N_BYTES, N_COLUMNS, NEAR, NEW, NUMBERED, OTHER_EXTRA, PAYLOAD,
    SITES, UnpackError,
};
use crate::record::Record;

/// Unpacks blocks, one after the other.
pub struct Unpacker {
    model: Model,
    columns: [Source; N_COLUMNS],
    n_left: usize,
}

/// Records per call of [`Unpacker::fill`]: they stay in the first-level cache until used.
const CHUNK_RECORDS: usize = 1024;
/// Maximum number of bytes that a record adds to any column.
const COLUMN_BYTES_PER_RECORD: usize = 12;

impl Default for Unpacker {
    fn default() -> Self {
        Self::new()
    }
}

impl Unpacker {
    /// An unpacker without a block.
    #[must_use]
    pub fn new() -> Self {
        Self { model: Model::new(), columns: Default::default(), n_left: 0 }
    }

    /// Starts a block of `n_records`, abandoning the previous one.
    pub fn start(&mut self, mut block: &[u8], n_records: usize) -> Result<(), UnpackError> {
        self.n_left = 0;
        self.model.reset();
        for column in &mut self.columns {
            column.open(&mut block, n_records.saturating_mul(COLUMN_BYTES_PER_RECORD))?;
        }
        self.n_left = n_records;
        Ok(())
    }

    /// Appends the next records to `out`; appends none at the end of the block.
    pub fn fill(&mut self, out: &mut Vec<Record>) -> Result<(), UnpackError> {
        let n = self.n_left.min(CHUNK_RECORDS);
        self.n_left -= n;
        out.reserve(n);
        for _ in 0..n {
            let code = self.columns[CODES].get(1)? as u8;
            out.push(if code & N_BYTES == PAYLOAD {
                self.payload(code >> 4)?
            } else {
                self.plain(code)?
            });
        }
        Ok(())
    }

    #[inline]
    fn plain(&mut self, code: u8) -> Result<Record, UnpackError> {
        let model = &mut self.model;
        let literals = &mut self.columns[LITERALS];
        let before = model.context.place;
        let n_bytes = usize::from(code & N_BYTES);
        let place = match code >> HOW_SHIFT {
            NUMBERED => model.place(literals.get(2)?)?,
            NEW => model.add(self.columns[SITES].get(8)?),
            how => usize::from(model.site(before).followers()[usize::from(how)]),
        };
        if n_bytes > 8 {
            return Err(UnpackError::Code(code));
        }
        model.site(before).lead_to(place);
        let key = model.key_at(place);
        let value_before = model.context.value;
        let site = model.site(place);
        let literals = &mut self.columns[LITERALS];
        let extra = if code & OTHER_EXTRA != 0 { literals.get(2)? as u16 } else { site.extra() };
        let guess = if code & NEAR != 0 { site.near(value_before) } else { site.own() };
        let distance = unzigzag(literals.get(n_bytes)?) << 16;
        let value = guess.wrapping_add(distance);
        site.learn(value, extra, value_before);
        (model.context.place, model.context.value) = (place, value);
        let record = record(key, value, extra);
        if record.head & PLAIN == 0 {
            model.update(record);
        } else {
            model.after_plain();
        }
        Ok(record)
    }

    fn payload(&mut self, n_bytes: u8) -> Result<Record, UnpackError> {
        if n_bytes > 8 {
            return Err(UnpackError::Code(n_bytes << 4 | PAYLOAD));
        }
        let literal = self.columns[LITERALS].get(usize::from(n_bytes))?;
        let payload = self.model.payload().expected().wrapping_add(unzigzag(literal));
        self.model.after_payload(payload);
        Ok(Record { head: MORE_HEAD, tail: payload })
    }
}
