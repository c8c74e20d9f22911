//! Any bytes are a run that `raddle localize` has kept, or an error that says why not. What was
//! read can be compared.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_analysis::localize::procedures::{often, suspects};
use raddle_analysis::localize::rank::{Formula, rank};
use raddle_analysis::localize::runs::Runs;
use raddle_lab::sample::Sample;
use raddle_trace::checksum::checksum;

/// Bytes before the length of the body, and before the body.
const LENGTH: usize = 12;
const HEAD: usize = LENGTH + 8;

fuzz_target!(|bytes: &[u8]| {
    let Ok(sample) = Sample::from_bytes(&repaired(bytes)) else { return };
    let facts = std::slice::from_ref(&sample.facts);
    let mut other = sample.facts.clone();
    other.pairs.truncate(other.pairs.len() / 2);
    let runs = Runs { failed: facts, passed: &[other] };
    let mut found = suspects(&sample.facts, &runs);
    found.extend(often(&sample.facts, &runs, Formula::Jaccard));
    let _ = rank(&runs, Formula::Jaccard, &found);
});

/// The file with a length and a checksum that fit, which a fuzzer could not guess.
fn repaired(bytes: &[u8]) -> Vec<u8> {
    let mut file = bytes.to_vec();
    let Some(n_bytes) = file.len().checked_sub(HEAD + 4) else { return file };
    file[LENGTH..HEAD].copy_from_slice(&(n_bytes as u64).to_le_bytes());
    let (body, end) = file[HEAD..].split_at_mut(n_bytes);
    end.copy_from_slice(&checksum(body).to_le_bytes());
    file
}
