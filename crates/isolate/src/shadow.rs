//! Which bytes of registers and memory are suppressed.

use std::collections::BTreeMap;

use iced_x86::Register;

use crate::frame::{is_high_byte, number};

/// A thread's registers: a bit for each byte that is suppressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shadow {
    general: [u8; 16],
    vectors: [u64; 32],
    /// By flag, as the processor numbers them for whoever asks it.
    pub(crate) flags: u32,
    /// All other registers together.
    others: bool,
}

/// Which general or vector register, and which bytes of it.
enum Part {
    General(usize, u8),
    Vector(usize, u64),
    Others,
    /// Never suppressed: segments, the instruction pointer, the stack pointer.
    Nothing,
}

fn part(register: Register) -> Part {
    let full = register.full_register();
    if full == Register::RSP {
        // Without a stack pointer nothing goes on; whoever corrupts it is beyond help.
        return Part::Nothing;
    }
    if let Some(number) = number(register) {
        let mask = match register.size() {
            8 => 0xff,
            4 => 0x0f,
            2 => 0x03,
            _ if is_high_byte(register) => 0x02,
            _ => 0x01,
        };
        return Part::General(number, mask);
    }
    if full.is_vector_register() {
        let bytes = register.size().min(64);
        let mask = if bytes == 64 { u64::MAX } else { (1 << bytes) - 1 };
        return Part::Vector(full.number(), mask);
    }
    let is_nothing = register == Register::None
        || register.is_segment_register()
        || full == Register::RIP
        || full == Register::EIP;
    if is_nothing { Part::Nothing } else { Part::Others }
}

impl Shadow {
    /// Whether nothing is suppressed.
    pub(crate) fn is_clean(&self) -> bool {
        *self == Self::default()
    }

    /// The suppressed bytes of a register, from its own first byte on.
    pub(crate) fn get(&self, register: Register) -> u64 {
        match part(register) {
            Part::General(number, 0x02) => u64::from(self.general[number] >> 1 & 1),
            Part::General(number, mask) => u64::from(self.general[number] & mask),
            Part::Vector(number, mask) => self.vectors[number] & mask,
            Part::Others => u64::from(self.others),
            Part::Nothing => 0,
        }
    }

    /// Sets which bytes of a register are suppressed, from its own first byte on.
    pub(crate) fn set(&mut self, register: Register, bytes: u64) {
        match part(register) {
            Part::General(number, 0x02) => {
                self.general[number] = self.general[number] & !2 | (bytes as u8 & 1) << 1;
            }
            Part::General(number, mask) => {
                self.general[number] = self.general[number] & !mask | bytes as u8 & mask;
            }
            Part::Vector(number, mask) => {
                self.vectors[number] = self.vectors[number] & !mask | bytes & mask;
            }
            // What shares its bit with others is never known to be clean.
            Part::Others => self.others |= bytes != 0,
            Part::Nothing => {}
        }
    }

    /// The registers with suppressed bytes, as [`crate::code::bit`]s.
    pub(crate) fn registers(&self) -> u64 {
        let general = (0..16).filter(|&n| self.general[n] != 0).fold(0, |set, n| set | 1 << n);
        let vectors =
            (0..32).filter(|&n| self.vectors[n] != 0).fold(0, |set, n| set | 1 << (16 + n));
        let flags = if self.flags != 0 { crate::code::FLAGS } else { 0 };
        general | vectors | flags
    }

    /// Forgets registers, given as [`crate::code::bit`]s.
    pub(crate) fn forget(&mut self, registers: u64) {
        for n in 0..16 {
            if registers >> n & 1 == 1 {
                self.general[n] = 0;
            }
        }
        for n in 0..32 {
            if registers >> (16 + n) & 1 == 1 {
                self.vectors[n] = 0;
            }
        }
        if registers & crate::code::FLAGS != 0 {
            self.flags = 0;
        }
        if registers & !KNOWN != 0 {
            self.others = false;
        }
    }

    /// Marks whole registers, given as [`crate::code::bit`]s.
    pub(crate) fn mark(&mut self, registers: u64) {
        for n in (0..16).filter(|n| registers >> n & 1 == 1 && *n != 4) {
            self.general[n] = 0xff;
        }
        for n in (0..32).filter(|n| registers >> (16 + n) & 1 == 1) {
            self.vectors[n] = u64::MAX;
        }
    }
}

/// Registers with bits of their own, and the flags.
const KNOWN: u64 = (1 << 49) - 1;

/// Memory: which bytes are suppressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes {
    /// By number of the word of eight bytes, a bit for each byte.
    /// invariant: no entry is 0.
    words: BTreeMap<u64, u8>,
}

impl Bytes {
    /// Whether any of these bytes is suppressed.
    pub(crate) fn any(&self, address: u64, n_bytes: u64) -> bool {
        let last = address.saturating_add(n_bytes.max(1) - 1);
        self.words.range(address >> 3..=last >> 3).any(|(&word, &mask)| {
            (0..8).any(|byte| {
                mask >> byte & 1 == 1 && (address..=last).contains(&((word << 3) + byte))
            })
        })
    }

    /// The suppressed ones of up to 64 bytes.
    pub(crate) fn get(&self, address: u64, n_bytes: u64) -> u64 {
        if self.words.is_empty() {
            return 0;
        }
        (0..n_bytes.min(64)).fold(0, |set, at| {
            let byte = address.wrapping_add(at);
            let mask = self.words.get(&(byte >> 3)).copied().unwrap_or(0);
            set | u64::from(mask >> (byte & 7) & 1) << at
        })
    }

    /// Sets which of up to 64 bytes are suppressed.
    pub(crate) fn set(&mut self, address: u64, n_bytes: u64, bytes: u64) {
        for at in 0..n_bytes.min(64) {
            self.put(address.wrapping_add(at), bytes >> at & 1 == 1);
        }
    }

    /// Suppresses all of these bytes, or none.
    pub(crate) fn fill(&mut self, address: u64, n_bytes: u64, suppressed: bool) {
        for at in 0..n_bytes {
            self.put(address.wrapping_add(at), suppressed);
        }
    }

    fn put(&mut self, byte: u64, suppressed: bool) {
        let bit = 1 << (byte & 7);
        if suppressed {
            *self.words.entry(byte >> 3).or_insert(0) |= bit;
        } else if let Some(mask) = self.words.get_mut(&(byte >> 3)) {
            *mask &= !bit;
            if *mask == 0 {
                self.words.remove(&(byte >> 3));
            }
        }
    }

    /// The addresses of the words that have a suppressed byte.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.words.keys().map(|word| word << 3)
    }

    /// How many words have a suppressed byte.
    pub(crate) fn n_words(&self) -> usize {
        self.words.len()
    }

    /// Forgets what lies in this range.
    pub(crate) fn forget(&mut self, from: u64, to: u64) {
        let gone: Vec<u64> = self.words.range(from >> 3..to >> 3).map(|(&word, _)| word).collect();
        for word in gone {
            self.words.remove(&word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_register_are_told_apart() {
        let mut shadow = Shadow::default();
        shadow.set(Register::AH, 1);
        assert_eq!(shadow.get(Register::RAX), 0b10);
        assert_eq!((shadow.get(Register::AL), shadow.get(Register::AH)), (0, 1));
        shadow.set(Register::RAX, 0xff);
        shadow.set(Register::AX, 0);
        assert_eq!(shadow.get(Register::EAX), 0b1100);
        shadow.set(Register::XMM3, 0xffff);
        assert_eq!(shadow.get(Register::YMM3), 0xffff);
        assert_eq!(shadow.registers(), 1 | 1 << 19);
    }

    #[test]
    fn bytes_across_words() {
        let mut bytes = Bytes::default();
        bytes.fill(0x1006, 4, true);
        assert_eq!(bytes.get(0x1004, 8), 0b0011_1100);
        assert!(bytes.any(0x1000, 7) && !bytes.any(0x1000, 6) && bytes.any(0x1009, 1));
        assert_eq!(bytes.words().collect::<Vec<_>>(), [0x1000, 0x1008]);
        bytes.set(0x1006, 4, 0b0001);
        assert_eq!(bytes.n_words(), 1);
        bytes.forget(0x1000, 0x2000);
        assert!(bytes.n_words() == 0);
    }
}
