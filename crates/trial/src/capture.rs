//! What the target prints, kept in memory.
//!
//! Into a memory file rather than a pipe: a write to it never blocks, so the order of
//! threads does not depend on how fast somebody reads. A target that prints without end
//! costs no more than [`BYTES_MAX`]: what lies behind is given back while it runs.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsFd as _;
use std::process::Stdio;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

/// What is kept of an output.
pub const BYTES_MAX: u64 = 16 << 20;

/// An output that is being captured.
#[derive(Debug)]
pub struct Capture {
    file: File,
}

/// What the target has printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first [`BYTES_MAX`] bytes.
    pub bytes: Vec<u8>,
    /// How many bytes there were.
    pub n_bytes: u64,
}

impl Captured {
    /// Whether nothing was left out.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.bytes.len() as u64 == self.n_bytes
    }
}

impl Capture {
    /// An empty one.
    pub fn new() -> io::Result<Self> {
        let file = memfd_create("raddle-output", MemfdFlags::CLOEXEC)?;
        Ok(Self { file: file.into() })
    }

    /// The target's end.
    pub fn stdio(&self) -> io::Result<Stdio> {
        Ok(self.file.try_clone()?.into())
    }

    /// Gives back what lies behind [`BYTES_MAX`].
    pub fn trim(&self) -> io::Result<()> {
        let n_bytes = self.file.metadata()?.len();
        if n_bytes > BYTES_MAX {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(self.file.as_fd(), flags, BYTES_MAX, n_bytes - BYTES_MAX)?;
        }
        Ok(())
    }

    /// What was printed.
    pub fn finish(mut self) -> io::Result<Captured> {
        let n_bytes = self.file.metadata()?.len();
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.take(BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(Captured { bytes, n_bytes })
    }
}

/// A standard input that holds these bytes.
pub fn input(bytes: &[u8]) -> io::Result<Stdio> {
    let mut file = File::from(memfd_create("raddle-input", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let capture = Capture::new().expect("a memory file");
        Command::new("cat")
            .stdin(input(b"one\ntwo\n").expect("a memory file"))
            .stdout(capture.stdio().expect("a descriptor"))
            .status()
            .expect("cat");
        let captured = capture.finish().expect("readable");
        assert_eq!(captured.bytes, b"one\ntwo\n");
        assert!(captured.is_complete());
    }

    #[test]
    fn a_flood_is_cut_off() {
        let capture = Capture::new().expect("a memory file");
        Command::new("head")
            .args(["-c", "17000000", "/dev/zero"])
            .stdout(capture.stdio().expect("a descriptor"))
            .status()
            .expect("head");
        capture.trim().expect("a hole");
        let captured = capture.finish().expect("readable");
        assert_eq!(captured.bytes.len() as u64, BYTES_MAX);
        assert_eq!(captured.n_bytes, 17_000_000);
        assert!(!captured.is_complete());
    }
}
