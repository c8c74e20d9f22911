//! What has happened to memory so far, location by location.

use rustc_hash::FxHashMap;

use crate::localize::pairs::LastAccesses;
use crate::localize::window::{Entry, Window};

/// The accesses to a location that still matter.
pub(super) enum Place {
    /// Only one thread so far: its first access, last write, and last read.
    Own {
        first: SeenAccess,
        write: Option<SeenAccess>,
        read: Option<SeenAccess>,
    },
    Shared(Box<(Window<SeenAccess>, LastAccesses<SeenAccess>)>),
}

/// One access. Kept small because there are many: whatever repeats is in its class.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenAccess {
    pub(super) seq: u64,
    pub(super) class: u32,
    /// Number of its loop nest; 0 if it is in no loop.
    pub(super) nest: u32,
    pub(super) thread: u16,
    /// First and last byte within the granule.
    pub(super) from: u8,
    pub(super) to: u8,
    pub(super) writes: bool,
}

const _: () = assert!(size_of::<Option<SeenAccess>>() == 24);

impl SeenAccess {
    /// A bit for each byte of the granule.
    pub(super) fn bytes(&self) -> u8 {
        (u8::MAX >> (7 - self.to + self.from)) << self.from
    }
}

impl Entry for SeenAccess {
    fn thread(&self) -> u32 {
        u32::from(self.thread)
    }

    fn writes(&self) -> bool {
        self.writes
    }
}

/// Cells by granule; a granule usually has none or one.
#[derive(Default)]
pub(super) struct Cells {
    pages: FxHashMap<u64, Box<[u32]>>,
    pub(super) cells: Vec<Cell>,
    free: Vec<u32>,
}

/// Bytes of a granule with the same history, and the number of the granule's next cell, plus one.
pub(super) struct Cell {
    pub(super) next: u32,
    /// A bit for each byte.
    pub(super) bytes: u8,
    pub(super) place: Place,
}

/// Granules of a page.
const PAGE: u64 = 512;

impl Cells {
    /// The number of a granule's first cell, plus one; 0 for none.
    pub(super) fn first(&mut self, granule: u64) -> &mut u32 {
        let page = self.pages.entry(granule / PAGE);
        let page = page.or_insert_with(|| vec![0; PAGE as usize].into());
        &mut page[(granule % PAGE) as usize]
    }

    /// Adds a cell to a granule.
    pub(super) fn add(&mut self, granule: u64, bytes: u8, place: Place) -> u32 {
        let next = *self.first(granule);
        let cell = Cell { next, bytes, place };
        let number = match self.free.pop() {
            Some(number) => {
                self.cells[number as usize] = cell;
                number + 1
            }
            None => {
                self.cells.push(cell);
                self.cells.len() as u32
            }
        };
        *self.first(granule) = number;
        number
    }

    /// Visits every access to a granule that is still kept.
    pub(super) fn each(&mut self, granule: u64, mut visit: impl FnMut(&mut SeenAccess)) {
        let mut number = *self.first(granule);
        while number != 0 {
            let cell = &mut self.cells[number as usize - 1];
            cell.place.each(&mut visit);
            number = cell.next;
        }
    }

    /// Removes all cells of a granule.
    pub(super) fn remove(&mut self, granule: u64, mut taken: impl FnMut(Place)) {
        let Some(page) = self.pages.get_mut(&(granule / PAGE)) else { return };
        let mut number = std::mem::take(&mut page[(granule % PAGE) as usize]);
        while number != 0 {
            let index = number - 1;
            let cell = &mut self.cells[index as usize];
            number = cell.next;
            let none =
                SeenAccess { seq: 0, class: 0, nest: 0, thread: 0, from: 0, to: 0, writes: false };
            let nothing = Place::Own { first: none, write: None, read: None };
            taken(std::mem::replace(&mut cell.place, nothing));
            self.free.push(index);
        }
    }

    /// The granules of a range that may have cells, by page.
    pub(super) fn granules(&self, first: u64, last: u64) -> Vec<u64> {
        let pages = first / PAGE..=last / PAGE;
        let within = |page: u64| (page * PAGE).max(first)..=(page * PAGE + PAGE - 1).min(last);
        if last / PAGE - first / PAGE > self.pages.len() as u64 {
            let pages = self.pages.keys().copied().filter(|page| pages.contains(page));
            pages.flat_map(within).collect()
        } else {
            pages.filter(|page| self.pages.contains_key(page)).flat_map(within).collect()
        }
    }
}

impl Place {
    /// Visits every access that is still kept.
    pub(super) fn each(&mut self, mut visit: impl FnMut(&mut SeenAccess)) {
        match self {
            Self::Own { first, write, read } => {
                visit(first);
                write.iter_mut().chain(read).for_each(visit);
            }
            Self::Shared(shared) => {
                shared.0.each(&mut visit);
                shared.1.each(&mut visit);
            }
        }
    }

    pub(super) fn copy(&self) -> Self {
        match self {
            Self::Own { first, write, read } => {
                Self::Own { first: *first, write: *write, read: *read }
            }
            Self::Shared(shared) => Self::Shared(shared.clone()),
        }
    }
}
