//! The checksum of everything that raddle stores: the lower half of XXH64 with seed 0.
//!
//! It detects bytes changed by a disk or a transfer; it does not withstand an attacker. 32 bits
//! miss one damaged block in four billion. XXH64 instead of a CRC, since it needs no table and
//! processes eight bytes per multiplication.

use twox_hash::XxHash64;

/// The checksum of `bytes`.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    XxHash64::oneshot(0, bytes) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published values of XXH64; files hold the lower half.
    #[test]
    fn files_hold_the_lower_half_of_xxh64() {
        assert_eq!(checksum(b""), 0x51d8_e999);
        assert_eq!(checksum(b"a"), 0xa98c_6e5b);
        assert_eq!(checksum(b"abc"), 0xad77_0999);
        assert_eq!(checksum(b"Nobody inspects the spammish repetition"), 0x8a37_8bf1);
    }
}
