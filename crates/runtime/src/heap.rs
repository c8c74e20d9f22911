//! The runtime's own allocator, for `alloc`.
//!
//! Power-of-two size classes with free lists, cut from pages of the kernel. Larger blocks come
//! directly from the kernel and are never returned: they are tables that double. Used on slow
//! paths only, under one lock.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;

use crate::guarded::Guarded;
use crate::sys;

/// The allocator.
pub(crate) struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

const CLASSES: usize = 40;
const CHUNK: usize = 1 << 20;

struct State {
    free: [usize; CLASSES],
    next: usize,
    end: usize,
}

static STATE: Guarded<State> = Guarded::new(State { free: [0; CLASSES], next: 0, end: 0 });

fn class(layout: Layout) -> usize {
    layout.size().max(layout.align()).max(16).next_power_of_two().trailing_zeros() as usize
}

// SAFETY: blocks are disjoint parts of mappings that are never unmapped; a block of class c
// is 2^c bytes and aligned to as much (up to a page), which covers size and alignment.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = class(layout);
        if class >= CLASSES {
            return ptr::null_mut();
        }
        let bytes = 1usize << class;
        let mut state = STATE.lock();
        let head = state.free[class];
        if head != 0 {
            // SAFETY: a free block's first word holds the next one's address.
            state.free[class] = unsafe { *(head as *const usize) };
            return head as *mut u8;
        }
        if bytes >= CHUNK / 4 {
            return sys::map_anonymous(bytes);
        }
        let start = state.next.next_multiple_of(bytes.min(4096));
        if state.next == 0 || start + bytes > state.end {
            let chunk = sys::map_anonymous(CHUNK) as usize;
            if chunk == 0 {
                return ptr::null_mut();
            }
            (state.next, state.end) = (chunk + bytes, chunk + CHUNK);
            return chunk as *mut u8;
        }
        state.next = start + bytes;
        start as *mut u8
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let class = class(layout);
        let mut state = STATE.lock();
        // SAFETY: the block is at least 16 bytes, aligned, and no longer in use.
        unsafe { *block.cast::<usize>() = state.free[class] };
        state.free[class] = block as usize;
    }
}
