//! What the kernel tells about processes, in its files.

use crate::sys::{self, Path};

/// Bytes that are read at a time; a thread's stack may be small.
const PIECE_BYTES: usize = 512;

/// Passes on the bytes of a file, piece by piece; none if it cannot be read.
fn each_piece(path: &Path, mut take: impl FnMut(&[u8])) {
    let file = sys::open(path, libc::O_RDONLY);
    if file < 0 {
        return;
    }
    let mut piece = [0; PIECE_BYTES];
    loop {
        let n = sys::read(file, &mut piece);
        if n == 0 {
            break;
        }
        take(&piece[..n]);
    }
    sys::close(file);
}

/// Numbers that blanks separate, decimal or hexadecimal, up to the first word that is none.
struct Numbers<F> {
    take: F,
    /// The word so far: its value, its base, and how many digits it has.
    value: u64,
    base: u64,
    n_digits: u32,
    is_over: bool,
}

impl<F: FnMut(u64)> Numbers<F> {
    fn new(take: F) -> Self {
        Self { take, value: 0, base: 10, n_digits: 0, is_over: false }
    }

    fn push(&mut self, byte: u8) {
        let digit = (byte as char).to_digit(self.base as u32).map(u64::from);
        match (byte, digit) {
            _ if self.is_over => {}
            (_, Some(digit)) => {
                self.value = self.value.wrapping_mul(self.base).wrapping_add(digit);
                self.n_digits += 1;
            }
            (b'x', None) if self.n_digits == 1 && self.value == 0 => {
                (self.base, self.n_digits) = (16, 0);
            }
            (b' ' | b'\n', None) => self.end_word(),
            (_, None) => self.is_over = true,
        }
    }

    fn end_word(&mut self) {
        if self.n_digits > 0 {
            (self.take)(self.value);
        }
        (self.value, self.base, self.n_digits) = (0, 10, 0);
    }
}

/// Passes on the numbers in a file, up to the first word that is none.
pub(crate) fn each_number(path: &Path, take: impl FnMut(u64)) {
    let mut numbers = Numbers::new(take);
    each_piece(path, |piece| piece.iter().for_each(|&byte| numbers.push(byte)));
    if !numbers.is_over {
        numbers.end_word();
    }
}

/// Passes on the entries of a directory that are numbers.
pub(crate) fn each_entry(path: &Path, mut take: impl FnMut(u32)) {
    let directory = sys::open(path, libc::O_RDONLY | libc::O_DIRECTORY);
    if directory < 0 {
        return;
    }
    // `struct linux_dirent64`: the length of an entry is at 16, and its name at 19.
    let mut piece = [0u64; PIECE_BYTES / 8];
    loop {
        let n = sys::syscall!(libc::SYS_getdents64, directory, piece.as_mut_ptr(), PIECE_BYTES);
        let Some(n) = usize::try_from(n).ok().filter(|&n| n > 0) else { break };
        // SAFETY: the words are the bytes that the kernel has stored.
        let bytes = unsafe { core::slice::from_raw_parts(piece.as_ptr().cast::<u8>(), n) };
        let mut at = 0;
        while let Some(entry) = bytes.get(at..).filter(|entry| entry.len() > 19) {
            let length = usize::from(u16::from_le_bytes([entry[16], entry[17]]));
            let name = &entry[19..length.clamp(19, entry.len())];
            let mut numbers = Numbers::new(|number| take(number as u32));
            name.iter().take_while(|&&byte| byte != 0).for_each(|&byte| numbers.push(byte));
            if !numbers.is_over {
                numbers.end_word();
            }
            at += length.max(1);
        }
    }
    sys::close(directory);
}

/// The state in a `stat` file, as the kernel's letter; `?` if it cannot be read.
pub(crate) fn state(path: &Path) -> u8 {
    let file = sys::open(path, libc::O_RDONLY);
    if file < 0 {
        return b'?';
    }
    let mut text = [0u8; 256];
    let n = sys::read(file, &mut text);
    sys::close(file);
    // The state follows the name, which is in parentheses and may contain anything.
    text[..n]
        .iter()
        .rposition(|&byte| byte == b')')
        .and_then(|at| text.get(at + 2))
        .copied()
        .unwrap_or(b'?')
}

/// The state of one of our threads, as the kernel's letter; `?` if unknown.
pub(crate) fn thread_state(thread: u32) -> u8 {
    state(&Path::new(b"/proc/self/task/").number(u64::from(thread)).text(b"/stat"))
}

/// Whether a child process has changed in one of the ways that `options` names, or there is no
/// such child. The child remains to be waited for.
pub(crate) fn child_changed(kind: u32, id: u32, options: libc::c_int) -> bool {
    let (status, info) = look(kind, id, options);
    status < 0 || info.si_signo != 0
}

/// What SIGCHLD tells about a child that has ended.
pub(crate) fn child_info(id: u32) -> libc::siginfo_t {
    look(libc::P_PID, id, libc::WEXITED).1
}

fn look(kind: u32, id: u32, options: libc::c_int) -> (i64, libc::siginfo_t) {
    // SAFETY: all zeros is a valid siginfo.
    let mut info: libc::siginfo_t = unsafe { core::mem::zeroed() };
    let options = options | libc::WNOHANG | libc::WNOWAIT;
    let status = sys::syscall!(libc::SYS_waitid, kind, id, &raw mut info, options, 0);
    info.si_signo = if status < 0 { libc::SIGCHLD } else { info.si_signo };
    (status, info)
}

/// Whether the process is a child of ours that has not been waited for.
pub(crate) fn is_child(id: u32) -> bool {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    sys::syscall!(libc::SYS_waitid, libc::P_PID, id, 0, options, 0) >= 0
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn numbers(text: &str) -> Vec<u64> {
        let mut all = Vec::new();
        let mut numbers = Numbers::new(|number| all.push(number));
        text.bytes().for_each(|byte| numbers.push(byte));
        if !numbers.is_over {
            numbers.end_word();
        }
        all
    }

    #[test]
    fn numbers_are_read_up_to_what_is_none() {
        assert_eq!(numbers("21404 21440 "), [21404, 21440]);
        assert_eq!(numbers("230 0x0 0x7fff39341360\n"), [230, 0, 0x7fff_3934_1360]);
        assert!(numbers("running\n").is_empty());
        assert!(numbers("-1 0x7ffe 0x7f24\n").is_empty());
    }

    #[test]
    fn threads_and_states_are_read() {
        let mut all = Vec::new();
        each_entry(&Path::new(b"/proc/self/task"), |thread| all.push(thread));
        assert!(all.contains(&sys::gettid()), "{all:?}");
        let path = Path::new(b"/proc/self/task/").number(u64::from(sys::gettid())).text(b"/stat");
        assert_eq!(state(&path), b'R');
        assert_eq!(state(&Path::new(b"/proc/none")), b'?');
    }
}
