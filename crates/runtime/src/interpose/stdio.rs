//! libc's files.
//!
//! libc blocks in the kernel while it holds a file's lock. Under control, a file whose descriptor
//! may block is therefore read in pieces: what its buffer holds is taken from it; when that is
//! empty, the thread waits for the descriptor as for a lock, and libc fills the buffer with one
//! read that does not block. Meanwhile the file is locked in the scheduler's model only. Files on
//! disk and in memory do not block, and libc reads them as a whole.
//!
//! A thread that holds a file's lock by `flockfile` keeps the turn, unless it blocks: others would
//! block on it inside libc, where we cannot see them.
//!
//! Limits: `scanf`, output to a full pipe, and reads of wide characters wait in the kernel. A signal
//! handler that leaves a read for good, by `pthread_exit` or an exception, leaves the file locked in
//! the model.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ffi::c_void;

use libc::{c_int, size_t};
use raddle_trace::record::Lock;

use super::descriptor::{self, IN, Ready};
use super::{channel, ends, fortified, memory, randomness};
use crate::export::{export, export_cancellable, export_noted, export_noted_variadic};
use crate::real::{address, real};
use crate::sched::SCHED;
use crate::sched::object::NOBODY;
use crate::sched::thread::{NEVER, Wait};
use crate::{hook, shared, sys, tls};

export! {
    funlockfile => unlock;
}

export! { unsafe OTHER:
    flockfile => lock;
}

export_noted! { unsafe OTHER:
    fflush => flush;
    fclose => close;
    putchar => print_byte;
    putc => print_byte_to;
    fputc => print_byte_into;
    perror => print_error;
}

export_noted_variadic! { unsafe OTHER:
    printf => print_standard;
    vprintf => print_standard_list;
    __printf_chk => print_standard_checked;
    __vprintf_chk => print_standard_list_checked;
    fprintf => print;
    vfprintf => print_list;
    __fprintf_chk => print_checked;
    __vfprintf_chk => print_list_checked;
}

export_cancellable! { unsafe OTHER:
    fgets => line;
    fgets_unlocked => line_unlocked;
    fread => block;
    fread_unlocked => block_unlocked;
    fgetc => byte;
    getc => byte;
    _IO_getc => byte;
    fgetc_unlocked => byte_unlocked;
    getc_unlocked => byte_unlocked;
    __uflow => byte_unlocked;
    getchar => standard_byte;
    getchar_unlocked => standard_byte;
    getline => long_line;
    getdelim => long_part;
    __getdelim => long_part;
    __fgets_chk => line_checked;
    __fgets_unlocked_chk => line_unlocked_checked;
    __fread_chk => block_checked;
    __fread_unlocked_chk => block_unlocked_checked;
}

/// A `FILE`. Its first fields are part of libc's interface: `getc_unlocked` is compiled into
/// programs.
type File = *mut c_void;

const FLAGS: usize = 0;
const READ_POINTER: usize = 8;
const READ_END: usize = 16;
const DESCRIPTOR: usize = 112;

const END_SEEN: c_int = 0x10;
const ERROR_SEEN: c_int = 0x20;
const EOF: c_int = -1;

fn field<T: Copy>(file: File, offset: usize) -> T {
    // SAFETY: the program's open file, which has a field of this type there.
    unsafe { *file.byte_add(offset).cast::<T>() }
}

/// The descriptor of a file.
pub(super) fn descriptor_of(file: File) -> c_int {
    field(file, DESCRIPTOR)
}

/// The bytes in a file's buffer that have not been read.
fn buffered<'a>(file: File) -> &'a [u8] {
    let (start, end): (*const u8, *const u8) = (field(file, READ_POINTER), field(file, READ_END));
    if start >= end {
        return &[];
    }
    // SAFETY: libc's buffer between these pointers, which only the thread with the turn uses.
    unsafe { core::slice::from_raw_parts(start, end as usize - start as usize) }
}

/// A file that is read in pieces, while no other thread reads it.
struct Source {
    file: File,
    descriptor: c_int,
    me: u32,
    pc: u64,
    /// Whether its bytes are random, and so come from the seed.
    is_random: bool,
    /// Whether reading failed, other than by an end or by a descriptor that must not block.
    failed: Cell<bool>,
}

impl Source {
    /// The file as such a source, if the thread is under control and the file may block.
    fn new(file: File, pc: u64) -> Option<Self> {
        let me = hook::me()?;
        let descriptor: c_int = field(file, DESCRIPTOR);
        if descriptor < 0 || !may_block(descriptor) {
            return None;
        }
        acquire(me, file, pc);
        let is_random = randomness::is_device(descriptor);
        Some(Self { file, descriptor, me, pc, is_random, failed: Cell::new(false) })
    }

    /// The next byte, or [`EOF`]. Waits for it if the buffer is empty.
    fn byte(&self) -> c_int {
        if self.is_random {
            return c_int::from(randomness::byte());
        }
        let ended = field::<c_int>(self.file, FLAGS) & END_SEEN != 0;
        let empty = buffered(self.file).is_empty();
        let ready = if empty && !ended {
            descriptor::until_ready(self.pc, self.descriptor, IN)
        } else {
            Ready::Go
        };
        if let Ready::Failed(error) = ready {
            // SAFETY: the flags of the program's open file, as libc sets them.
            unsafe { *self.file.cast::<c_int>() |= ERROR_SEEN };
            self.failed.set(error != libc::EAGAIN);
            return super::fail(error);
        }
        let byte = real!(fgetc_unlocked(self.file => File) -> c_int);
        if byte == EOF && field::<c_int>(self.file, FLAGS) & END_SEEN == 0 {
            // SAFETY: libc's thread-local variable.
            self.failed.set(unsafe { *libc::__errno_location() } != libc::EAGAIN);
        }
        if empty && !self.failed.get() {
            channel::receive(self.descriptor, self.pc);
        }
        byte
    }

    /// Reads up to `room` bytes, at least one unless the file has ended, and none after `last`.
    fn some(&self, into: *mut u8, room: usize, last: Option<u8>) -> usize {
        let held = buffered(self.file);
        let held = &held[..held.len().min(room)];
        let n = last
            .and_then(|last| held.iter().position(|&byte| byte == last))
            .map_or(held.len(), |at| at + 1);
        if n > 0 {
            return real!(fread_unlocked(into => *mut u8, 1 => size_t, n => size_t, self.file => File) -> size_t);
        }
        match self.byte() {
            EOF => 0,
            byte => {
                // SAFETY: the caller has room for at least one byte.
                unsafe { *into = byte as u8 };
                1
            }
        }
    }

    /// Reads `room` bytes, or up to and including `last`, or up to the end.
    fn all(&self, into: *mut u8, room: usize, last: Option<u8>) -> usize {
        let mut n = 0;
        while n < room {
            // SAFETY: within the caller's buffer.
            let rest = unsafe { into.add(n) };
            let more = self.some(rest, room - n, last);
            n += more;
            // SAFETY: the byte that was stored last.
            if more == 0 || last == Some(unsafe { *into.add(n - 1) }) {
                break;
            }
        }
        n
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        release(self.me, self.file);
    }
}

/// Whether reading may block: not from files on disk.
fn may_block(descriptor: c_int) -> bool {
    // SAFETY: zeroes are a valid value of this plain struct.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    let status = sys::syscall!(libc::SYS_fstat, descriptor, &raw mut about);
    let kind = about.st_mode & libc::S_IFMT;
    status == 0 && [libc::S_IFIFO, libc::S_IFSOCK, libc::S_IFCHR].contains(&kind)
}

/// Locks a file in the model.
fn acquire(me: u32, file: File, pc: u64) {
    let at = file as u64;
    let is_own = |owner: u32| owner == me;
    if !SCHED.lock().objects.get(&at).is_some_and(|object| is_own(object.owner)) {
        hook::sync(me, pc, Wait::Lock(at), NEVER);
    }
    let mut sched = SCHED.lock();
    let object = sched.object(at, Lock::Annotated);
    (object.owner, object.owner_pc) = (me, pc);
    object.depth += 1;
}

/// Unlocks a file in the model.
fn release(me: u32, file: File) {
    let mut sched = SCHED.lock();
    let object = sched.objects.get_mut(&(file as u64)).filter(|object| object.owner == me);
    if let Some(object) = object {
        object.depth -= 1;
        if object.depth == 0 {
            object.owner = NOBODY;
        }
        sched.poke(me);
    }
}

extern "C" fn lock(file: File) {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        acquire(me, file, pc);
    }
    real!(flockfile(file => File));
    if shared::controlled() {
        tls::set(tls::FILES, tls::get(tls::FILES) + 1);
    }
}

extern "C" fn unlock(file: File) {
    real!(funlockfile(file => File));
    if let Some(me) = hook::me() {
        release(me, file);
    }
    tls::set(tls::FILES, tls::get(tls::FILES).saturating_sub(1));
}

/// The thread is about to write to a file, or to let go what libc holds back. When it leaves libc
/// is not known, so each of these counts.
pub(super) fn sends(file: File) {
    if !hook::tracing() || file.is_null() {
        return;
    }
    let descriptor: c_int = field(file, DESCRIPTOR);
    if descriptor >= 0 {
        channel::send(descriptor, false, hook::caller());
    }
}

extern "C" fn flush(file: File) -> usize {
    sends(file);
    address!(fflush)
}

extern "C" fn close(file: File) -> usize {
    let descriptor: c_int = field(file, DESCRIPTOR);
    if descriptor >= 0 {
        ends::closes(descriptor, hook::caller());
    }
    address!(fclose)
}

extern "C" fn print_standard() -> usize {
    address!(printf)
}

extern "C" fn print_standard_list() -> usize {
    address!(vprintf)
}

extern "C" fn print_standard_checked() -> usize {
    address!(__printf_chk)
}

extern "C" fn print_standard_list_checked() -> usize {
    address!(__vprintf_chk)
}

extern "C" fn print_byte() -> usize {
    address!(putchar)
}

extern "C" fn print_byte_to(_: c_int, file: File) -> usize {
    sends(file);
    address!(putc)
}

extern "C" fn print_byte_into(_: c_int, file: File) -> usize {
    sends(file);
    address!(fputc)
}

extern "C" fn print_error() -> usize {
    address!(perror)
}

extern "C" fn print(file: File) -> usize {
    sends(file);
    address!(fprintf)
}

extern "C" fn print_list(file: File) -> usize {
    sends(file);
    address!(vfprintf)
}

extern "C" fn print_checked(file: File) -> usize {
    sends(file);
    address!(__fprintf_chk)
}

extern "C" fn print_list_checked(file: File) -> usize {
    sends(file);
    address!(__vfprintf_chk)
}

fn wrote(into: *const u8, bytes: usize, pc: u64) {
    hook::range(into as u64, bytes as u64, true, pc);
}

extern "C" fn line(into: *mut u8, room: c_int, file: File) -> *mut u8 {
    read_line(
        into,
        room,
        file,
        || real!(fgets(into => *mut u8, room => c_int, file => File) -> *mut u8),
    )
}

extern "C" fn line_unlocked(into: *mut u8, room: c_int, file: File) -> *mut u8 {
    read_line(
        into,
        room,
        file,
        || real!(fgets_unlocked(into => *mut u8, room => c_int, file => File) -> *mut u8),
    )
}

fn read_line(into: *mut u8, room: c_int, file: File, whole: impl FnOnce() -> *mut u8) -> *mut u8 {
    let pc = hook::caller();
    let Some(source) = Source::new(file, pc).filter(|_| room > 1) else {
        let read = whole();
        if !read.is_null() {
            wrote(into, super::string::real_length(into.cast()) + 1, pc);
        }
        return read;
    };
    let n = source.all(into, room as usize - 1, Some(b'\n'));
    if n == 0 || source.failed.get() {
        return core::ptr::null_mut();
    }
    // SAFETY: one byte was left for the end.
    unsafe { *into.add(n) = 0 };
    drop(source);
    wrote(into, n + 1, pc);
    into
}

extern "C" fn block(into: *mut u8, size: size_t, n: size_t, file: File) -> size_t {
    read_block(
        into,
        size,
        n,
        file,
        || real!(fread(into => *mut u8, size => size_t, n => size_t, file => File) -> size_t),
    )
}

extern "C" fn block_unlocked(into: *mut u8, size: size_t, n: size_t, file: File) -> size_t {
    read_block(
        into,
        size,
        n,
        file,
        || real!(fread_unlocked(into => *mut u8, size => size_t, n => size_t, file => File) -> size_t),
    )
}

fn read_block(
    into: *mut u8,
    size: size_t,
    n: size_t,
    file: File,
    whole: impl FnOnce() -> size_t,
) -> size_t {
    let pc = hook::caller();
    let bytes = size.saturating_mul(n);
    let Some(source) = Source::new(file, pc).filter(|_| bytes > 0) else {
        let read = whole();
        wrote(into, read * size, pc);
        return read;
    };
    let read = source.all(into, bytes, None);
    drop(source);
    wrote(into, read, pc);
    read / size
}

extern "C" fn byte(file: File) -> c_int {
    read_byte(file, || real!(fgetc(file => File) -> c_int))
}

extern "C" fn byte_unlocked(file: File) -> c_int {
    read_byte(file, || real!(fgetc_unlocked(file => File) -> c_int))
}

fn read_byte(file: File, whole: impl FnOnce() -> c_int) -> c_int {
    // What the buffer holds costs no step, unless another thread is reading.
    if !buffered(file).is_empty() && !is_locked(file) {
        return whole();
    }
    match Source::new(file, hook::caller()) {
        Some(source) => source.byte(),
        None => whole(),
    }
}

/// Whether a file is locked in the model.
fn is_locked(file: File) -> bool {
    shared::controlled()
        && SCHED.lock().objects.get(&(file as u64)).is_some_and(|object| !object.is_free())
}

extern "C" fn standard_byte() -> c_int {
    unsafe extern "C" {
        static stdin: File;
    }
    // SAFETY: libc's variable, which is set before any code of the program runs.
    byte(unsafe { stdin })
}

extern "C" fn long_line(into: *mut *mut u8, room: *mut size_t, file: File) -> isize {
    long_part(into, room, c_int::from(b'\n'), file)
}

extern "C" fn long_part(into: *mut *mut u8, room: *mut size_t, last: c_int, file: File) -> isize {
    let pc = hook::caller();
    let is_valid = !into.is_null() && !room.is_null();
    let Some(source) = Source::new(file, pc).filter(|_| is_valid) else {
        let n = real!(getdelim(into => *mut *mut u8, room => *mut size_t, last => c_int, file => File) -> isize);
        if n >= 0 {
            // SAFETY: libc has stored its buffer there.
            wrote(unsafe { *into }, n as usize + 1, pc);
        }
        return n;
    };
    let mut read = Vec::new();
    loop {
        let mut piece = [0; 128];
        let n = source.some(piece.as_mut_ptr(), piece.len(), u8::try_from(last).ok());
        read.extend_from_slice(&piece[..n]);
        if n == 0 || read.last().is_some_and(|&byte| c_int::from(byte) == last) {
            break;
        }
    }
    let failed = source.failed.get();
    drop(source);
    if read.is_empty() || failed {
        return EOF as isize;
    }
    // SAFETY: the contract of `getdelim`: a block of this size, or none yet.
    let (block, room) = unsafe { (&mut *into, &mut *room) };
    if block.is_null() || *room <= read.len() {
        let wanted = (read.len() + 1).max(2 * *room).max(LINE_BYTES_MIN);
        let new = memory::realloc_inner(block.cast(), wanted);
        if new.is_null() {
            return EOF as isize;
        }
        (*block, *room) = (new.cast(), wanted);
    }
    read.push(0);
    // SAFETY: the block has room for it, and is apart from our own memory.
    unsafe { core::ptr::copy_nonoverlapping(read.as_ptr(), *block, read.len()) };
    wrote(*block, read.len(), pc);
    read.len() as isize - 1
}

/// What libc allocates for a first line.
const LINE_BYTES_MIN: usize = 120;

extern "C" fn line_checked(into: *mut u8, size: size_t, room: c_int, file: File) -> *mut u8 {
    fortified::check(usize::try_from(room).unwrap_or(0), size);
    line(into, room, file)
}

extern "C" fn line_unlocked_checked(
    into: *mut u8,
    size: size_t,
    room: c_int,
    file: File,
) -> *mut u8 {
    fortified::check(usize::try_from(room).unwrap_or(0), size);
    line_unlocked(into, room, file)
}

extern "C" fn block_checked(
    into: *mut u8,
    room: size_t,
    size: size_t,
    n: size_t,
    file: File,
) -> size_t {
    fortified::check(size.saturating_mul(n), room);
    block(into, size, n, file)
}

extern "C" fn block_unlocked_checked(
    into: *mut u8,
    room: size_t,
    size: size_t,
    n: size_t,
    file: File,
) -> size_t {
    fortified::check(size.saturating_mul(n), room);
    block_unlocked(into, size, n, file)
}
