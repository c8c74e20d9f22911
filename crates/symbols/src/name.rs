//! Names any address, from all sources of names.
//!
//! The first match counts: a global variable; a live heap block; a thread's stack; a freed heap
//! block; an offset in a module; the bare address. Stacks come before freed blocks because a
//! thread's stack may be mapped where a large block was.

use std::fmt;
use std::rc::Rc;

use raddle_trace::event::Event;
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trace::run::Run;

use super::block::{Block, Cause, HeapMap};
use super::calls::Calls;
use super::site::SiteName;
use super::stack::StackMap;
use super::variable::Variable;
use super::{Cache, Symbols, file_name};

/// Everything that can name an address of a run.
pub struct Namer {
    symbols: Symbols,
    heap: HeapMap,
    stacks: StackMap,
    calls: Calls,
    threads: Vec<(ThreadId, String)>,
    /// Number of the last event.
    now: u64,
}

/// What is at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A global variable, or a part of one.
    Global(Rc<Variable>),
    /// An offset in a heap block.
    Heap {
        /// Where the block was allocated.
        allocated: String,
        /// Where it was freed, if it was.
        freed: Option<String>,
        /// Offset from the block's start.
        offset: u64,
    },
    /// An offset on a stack.
    Stack {
        /// The thread's name.
        thread: String,
        /// Distance from the stack's upper end.
        below_top: u64,
    },
    /// An unnamed address in a module.
    Image {
        /// The module's file name.
        module: String,
        /// Offset from its load address.
        offset: u64,
    },
    /// Anywhere else.
    Unknown(Addr),
}

impl Namer {
    /// A namer for a run, before its first event.
    #[must_use]
    pub fn new(run: &Run, cache: &Cache) -> Self {
        Self::with_symbols(run, Symbols::new(&run.modules, cache))
    }

    /// Like [`Namer::new`], with existing symbols.
    #[must_use]
    pub fn with_symbols(run: &Run, symbols: Symbols) -> Self {
        Self {
            symbols,
            heap: HeapMap::default(),
            stacks: StackMap::new(&run.threads),
            calls: Calls::default(),
            threads: run.threads.iter().map(|thread| (thread.id, thread.name.clone())).collect(),
            now: 0,
        }
    }

    /// Adds event number `seq` of the trace. Events come in order.
    pub fn push(&mut self, seq: u64, event: &Event) {
        self.now = seq;
        self.calls.push(event);
        self.stacks.push(seq, event);
        self.heap.push(seq, event, self.calls.callers(event.thread));
    }

    /// The names in the modules.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The heap as of the last event.
    #[must_use]
    pub fn heap(&self) -> &HeapMap {
        &self.heap
    }

    /// The call stacks as of the last event.
    #[must_use]
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// A thread's name by spawn path.
    #[must_use]
    pub fn thread(&self, id: ThreadId) -> String {
        // Threads are listed by number, so the first lookup finds it.
        let by_number = self.threads.get(id.0 as usize).filter(|(known, _)| *known == id);
        by_number
            .or_else(|| self.threads.iter().find(|(known, _)| *known == id))
            .map_or_else(|| format!("thread {}", id.0), |(_, name)| name.clone())
    }

    /// The longest name of a thread, in characters.
    #[must_use]
    pub fn thread_name_chars_max(&self) -> usize {
        self.threads.iter().map(|(_, name)| name.chars().count()).max().unwrap_or(0)
    }

    /// The site of a code address.
    #[must_use]
    pub fn site(&self, pc: Pc) -> Rc<SiteName> {
        self.symbols.site(pc)
    }

    /// The site of a code address in the program's own code: if the address itself is in a
    /// library, that of the innermost caller that is not. `callers` come innermost first.
    #[must_use]
    pub fn own_site(&self, pc: Pc, callers: impl IntoIterator<Item = Pc>) -> String {
        std::iter::once(pc)
            .chain(callers)
            .find_map(|pc| self.site(pc).own_frame().map(ToString::to_string))
            .unwrap_or_else(|| self.site(pc).to_string())
    }

    /// What an access touches, as of the last event.
    #[must_use]
    pub fn location(&self, addr: Addr, bytes: u64) -> String {
        self.place(addr, bytes).to_string()
    }

    /// The name of a lock, as of the last event.
    #[must_use]
    pub fn lock(&self, addr: Addr) -> String {
        self.lock_place(addr).to_string()
    }

    /// What an access touches, as of the last event.
    #[must_use]
    pub fn place(&self, addr: Addr, bytes: u64) -> Place {
        self.place_at(addr, bytes, self.now)
    }

    /// What an access touched at event `seq`.
    #[must_use]
    pub fn place_at(&self, addr: Addr, bytes: u64, seq: u64) -> Place {
        self.symbols
            .accessed(addr, bytes)
            .map_or_else(|| self.place_outside(addr, seq), Place::Global)
    }

    /// Where a lock is, as of the last event.
    #[must_use]
    pub fn lock_place(&self, addr: Addr) -> Place {
        self.lock_place_at(addr, self.now)
    }

    /// Where a lock was at event `seq`.
    #[must_use]
    pub fn lock_place_at(&self, addr: Addr, seq: u64) -> Place {
        self.symbols.lock(addr).map_or_else(|| self.place_outside(addr, seq), Place::Global)
    }

    /// The block that contained an address, if it has been freed.
    #[must_use]
    pub fn freed_place(&self, addr: Addr) -> Option<Place> {
        let block = self.heap.block_at(addr, self.now)?;
        block.freed.as_ref()?;
        Some(self.heap_place(block, addr, self.now))
    }

    /// Names an address that is in no variable.
    fn place_outside(&self, addr: Addr, seq: u64) -> Place {
        let block = self.heap.block_at(addr, seq);
        if let Some(block) = block.filter(|block| !block.is_freed_at(seq)) {
            return self.heap_place(block, addr, seq);
        }
        if let Some(stack) = self.stacks.stack_at(addr, seq) {
            let thread = self.thread(stack.thread);
            return Place::Stack { thread, below_top: stack.high.0 - addr.0 };
        }
        if let Some(block) = block {
            return self.heap_place(block, addr, seq);
        }
        match self.symbols.module(addr.0) {
            Some(module) => Place::Image {
                module: file_name(&module.path).to_owned(),
                offset: addr.0.wrapping_sub(module.base),
            },
            None => Place::Unknown(addr),
        }
    }

    fn heap_place(&self, block: &Block, addr: Addr, seq: u64) -> Place {
        let site = |cause: &Cause| self.own_site(cause.pc, cause.callers.iter().copied());
        Place::Heap {
            allocated: site(&block.allocated),
            freed: block.freed.as_ref().filter(|freed| freed.seq <= seq).map(site),
            offset: addr.0 - block.addr.0,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global(variable) => f.write_str(&variable.name),
            Self::Heap { allocated, freed, offset } => {
                write!(f, "heap block allocated at {allocated}")?;
                if let Some(freed) = freed {
                    write!(f, ", freed at {freed}")?;
                }
                if *offset > 0 { write!(f, " (+{offset})") } else { Ok(()) }
            }
            Self::Stack { thread, below_top } => write!(f, "stack of {thread} (-{below_top})"),
            Self::Image { module, offset } => write!(f, "{module}+{offset:#x}"),
            Self::Unknown(addr) => write!(f, "{addr}"),
        }
    }
}
