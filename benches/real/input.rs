//! What compressors read.

/// Words in a random order: compressible, but no two blocks are the same.
pub(crate) fn text() -> Vec<u8> {
    const BYTES: usize = 120_000;
    let mut random = Random(1);
    let words: Vec<Vec<u8>> = (0..400)
        .map(|_| (0..2 + random.below(8)).map(|_| b'a' + random.below(26) as u8).collect())
        .collect();
    let mut text = Vec::new();
    while text.len() < BYTES {
        text.extend(&words[random.below(words.len() as u64) as usize]);
        text.push(b' ');
    }
    text.truncate(BYTES);
    text
}

/// Text with long gaps: large, and still quickly compressed.
pub(crate) fn sparse() -> Vec<u8> {
    const GAP_BYTES: usize = 500_000;
    let text = text();
    let (start, end) = text.split_at(text.len() / 4);
    [start, &[0; GAP_BYTES], &end[..end.len() / 2]].concat()
}

/// A generator of Lehmer's kind. It is the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0 * 48_271 % 0x7fff_ffff;
        self.0 % n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_made_of_many_words() {
        let text = text();
        let mut words: Vec<_> = text.split(|&byte| byte == b' ').collect();
        words.sort_unstable();
        words.dedup();
        assert!(words.len() > 300, "{}", words.len());
        assert!(sparse().len() > 512 << 10);
    }
}
