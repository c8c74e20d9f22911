//! Names the part of a value that an access touches.
//!
//! We descend from the variable's type as long as one member or element contains all bytes of the
//! access: `queue.len`, `table[3].next`. An access to several members of a record, such as a copy
//! or the word that bit-fields share, is `flags.ready..closed`; several elements are
//! `table[3..7]`, both ends included. Bytes without a name are an offset: `queue+12` is padding.
//!
//! Where members overlap, in a union, the first one with exactly this offset and size is chosen,
//! or else the first one. The active variant of a Rust enum is unknown, so a member is named only
//! if no other variant has one there.
//!
//! Base classes and anonymous records add no name. Neither do wrappers that exist for the
//! compiler ([`WRAPPERS`]): a static `AtomicUsize` is `COUNT`, not `COUNT.v.value`. Members of a
//! Rust tuple are `.0` and `.1`, as in the source.

use std::ops::Range;
use std::rc::Rc;

use super::dies::Die;
use super::types::{Member, Shape, Type};

/// What is to be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Query {
    /// The part touched by an access of this many bytes.
    Bytes(u64),
    /// The lock itself, and not the member that holds its state.
    Lock,
}

/// A part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Its path: `.limits.max`, `[3].next`, `+12`, or empty for the whole value.
    pub(super) path: String,
    /// Its size, if known.
    pub(super) bytes: Option<u64>,
    /// Whether it has exactly the requested offset and size.
    is_exact: bool,
}

/// Maximum nesting depth of members and elements. Nobody writes types that deep; damaged DWARF
/// may have one that contains itself.
const DEPTH_MAX: usize = 48;
/// Maximum number of members tried in one search. Nested unions could otherwise take forever.
const TRIES_MAX: usize = 10_000;

/// Types that exist for the compiler: the name of their only member is of no interest.
const WRAPPERS: &[&str] = &[
    "UnsafeCell",
    "SyncUnsafeCell",
    "Cell",
    "ManuallyDrop",
    "MaybeUninit",
    "MaybeDangling",
    "CachePadded",
    "Wrapping",
    "atomic",
    "__atomic_base",
    "__atomic_float",
    "__atomic_impl",
    "__cxx_atomic_impl",
    "__cxx_atomic_base_impl",
];
/// The names of that member.
const WRAPPED: &[&str] =
    &["value", "v", "__0", "_M_i", "_M_b", "_M_p", "_M_base", "_M_fp", "__a_", "__a_value"];
/// Types that are locks as a whole. Compared in lower case, without type parameters.
const LOCKS: &[&str] = &[
    "mutex",
    "recursive_mutex",
    "timed_mutex",
    "recursive_timed_mutex",
    "shared_mutex",
    "shared_timed_mutex",
    "condition_variable",
    "condition_variable_any",
    "once_flag",
    "counting_semaphore",
    "binary_semaphore",
    "barrier",
    "latch",
    "rwlock",
    "condvar",
    "once",
    "oncelock",
    "lazylock",
    "reentrantlock",
    "reentrantmutex",
    "fairmutex",
    "spinlock",
    "semaphore",
    "mtx_t",
    "cnd_t",
    "sem_t",
];
/// The names that Rust locks give to the protected data, which is not part of the lock.
const PROTECTED: &[&str] = &["data", "value"];

/// Names the part at `offset` of a value. `type_of` looks up types.
pub(super) fn part(
    type_of: &dyn Fn(Die) -> Rc<Type>,
    type_: Die,
    offset: u64,
    query: Query,
) -> Part {
    let n_bytes = match query {
        Query::Bytes(bytes) => bytes.max(1),
        Query::Lock => 1,
    };
    let mut search = Search { type_of, query, n_tries: 0 };
    search.part(type_, offset..offset.saturating_add(n_bytes), 0)
}

struct Search<'a> {
    type_of: &'a dyn Fn(Die) -> Rc<Type>,
    query: Query,
    n_tries: usize,
}

impl Search<'_> {
    /// The part of a value of `type_` that contains the bytes `at`.
    fn part(&mut self, type_: Die, at: Range<u64>, depth: usize) -> Part {
        let type_ = (self.type_of)(type_);
        self.n_tries += 1;
        if depth > DEPTH_MAX || self.n_tries > TRIES_MAX {
            return whole(&type_, &at);
        }
        match &type_.shape {
            Shape::Leaf => whole(&type_, &at),
            Shape::Record(members) => self.in_record(&type_, members, at, depth),
            Shape::Array { element, stride, counts } => {
                self.in_array(&type_, *element, *stride, counts, at, depth)
            }
        }
    }

    fn in_record(
        &mut self,
        type_: &Type,
        members: &[Member],
        at: Range<u64>,
        depth: usize,
    ) -> Part {
        let bits = at.start.saturating_mul(8)..at.end.saturating_mul(8);
        let holds = |m: &&Member| m.bits.start <= bits.start && bits.end <= m.bits.end;
        let holding: Vec<&Member> = members.iter().filter(holds).collect();
        if self.query == Query::Lock && is_lock(type_) && !holding.iter().any(|m| is_protected(m)) {
            return Part { path: String::new(), bytes: type_.bytes, is_exact: true };
        }
        let hide = is_wrapper(type_, members);
        let parts: Vec<(&Member, Part)> = holding
            .into_iter()
            .map(|member| (member, self.in_member(member, hide, &at, depth)))
            .collect();
        let is_enum = members.iter().any(|member| member.variant.is_some());
        match choose(parts, is_enum) {
            Some(part) => part,
            None if is_enum => whole(type_, &at),
            None => stretch(members, &bits).unwrap_or_else(|| whole(type_, &at)),
        }
    }

    fn in_member(&mut self, member: &Member, hide: bool, at: &Range<u64>, depth: usize) -> Part {
        let start = member.bits.start / 8;
        let mut part = if member.is_bit_field {
            let bytes = Some(member.bits.end.div_ceil(8) - start);
            Part { path: String::new(), bytes, is_exact: false }
        } else {
            self.part(member.type_, at.start - start..at.end - start, depth + 1)
        };
        if let Some(name) = member.name.as_deref().filter(|_| !hide) {
            part.path = format!(".{}{}", shown(name), part.path);
        }
        part
    }

    fn in_array(
        &mut self,
        type_: &Type,
        element: Die,
        stride: u64,
        counts: &[Option<u64>],
        at: Range<u64>,
        depth: usize,
    ) -> Part {
        let (first, last) = (at.start / stride, (at.end - 1) / stride);
        if first == last {
            let start = first * stride;
            let mut part = self.part(element, at.start - start..at.end - start, depth + 1);
            part.path = format!("{}{}", subscript(first, counts), part.path);
            return part;
        }
        let is_all = at.start == 0 && type_.bytes.is_some_and(|bytes| at.end >= bytes);
        if is_all {
            return whole(type_, &at);
        }
        let path = if counts.len() == 1 {
            format!("[{first}..{last}]")
        } else {
            format!("{}..{}", subscript(first, counts), subscript(last, counts))
        };
        let bytes = (last - first).checked_add(1).and_then(|n| n.checked_mul(stride));
        Part { path, bytes, is_exact: false }
    }
}

/// The whole value, or an offset in it.
fn whole(type_: &Type, at: &Range<u64>) -> Part {
    let is_exact = at.start == 0 && type_.bytes == Some(at.end);
    let path = if at.start == 0 { String::new() } else { format!("+{}", at.start) };
    Part { path, bytes: type_.bytes, is_exact }
}

/// The best of the parts that contain the bytes.
fn choose(parts: Vec<(&Member, Part)>, is_enum: bool) -> Option<Part> {
    if is_enum {
        // The tag has no name, and a variant without members matches everywhere.
        let mut named = parts.into_iter().filter(|(member, part)| {
            member.variant.is_some() && part.is_exact && !part.path.is_empty()
        });
        return named.next().filter(|_| named.next().is_none()).map(|(_, part)| part);
    }
    let exact = parts.iter().position(|(_, part)| part.is_exact).unwrap_or(0);
    parts.into_iter().nth(exact).map(|(_, part)| part)
}

/// Several members of a record, or a member and what follows it.
fn stretch(members: &[Member], bits: &Range<u64>) -> Option<Part> {
    let touches = |m: &&Member| m.bits.start < bits.end && bits.start < m.bits.end;
    let mut touched: Vec<&Member> = members.iter().filter(touches).collect();
    let is_all = members.iter().filter(|m| !m.bits.is_empty()).count() == touched.len();
    touched.sort_by_key(|member| member.bits.start);
    let (first, last) = (touched.first()?, touched.last()?);
    let (first_name, last_name) = (first.name.as_deref()?, last.name.as_deref()?);
    if is_all && touched.len() > 1 {
        return None;
    }
    let path = if first == last {
        format!(".{}", shown(first_name))
    } else {
        format!(".{}..{}", shown(first_name), shown(last_name))
    };
    let bytes = last.bits.end.div_ceil(8).checked_sub(first.bits.start / 8);
    Some(Part { path, bytes, is_exact: false })
}

/// The subscripts of the n-th element, the last dimension varying fastest.
fn subscript(mut number: u64, counts: &[Option<u64>]) -> String {
    let mut subscripts = Vec::new();
    for count in counts.iter().skip(1).rev() {
        let count = count.unwrap_or(1).max(1);
        subscripts.push(number % count);
        number /= count;
    }
    subscripts.push(number);
    subscripts.iter().rev().map(|n| format!("[{n}]")).collect()
}

/// A member's name as in the source.
fn shown(name: &str) -> &str {
    if let Some(number) = name.strip_prefix("__")
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        return number;
    }
    if name.starts_with("_vptr") { "vptr" } else { name }
}

fn is_wrapper(type_: &Type, members: &[Member]) -> bool {
    let mut sized = members.iter().filter(|member| !member.bits.is_empty());
    let only = sized.next().filter(|_| sized.next().is_none());
    only.and_then(|member| member.name.as_deref()).is_some_and(|name| WRAPPED.contains(&name))
        && type_.names.iter().any(|name| {
            let name = without_parameters(name);
            WRAPPERS.contains(&name) || name.starts_with("Atomic")
        })
}

fn is_lock(type_: &Type) -> bool {
    type_.names.iter().any(|name| {
        let name = without_parameters(name);
        LOCKS.contains(&name.to_ascii_lowercase().as_str())
            || name.starts_with("pthread_") && name.ends_with("_t")
    })
}

fn is_protected(member: &Member) -> bool {
    member.name.as_deref().is_some_and(|name| PROTECTED.contains(&name))
}

fn without_parameters(name: &str) -> &str {
    name.split('<').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types by number: the `offset` of their die.
    fn die(number: usize) -> Die {
        Die { unit: 0, offset: number }
    }

    fn number(bytes: u64) -> Type {
        Type { bytes: Some(bytes), ..Type::default() }
    }

    fn record(name: &str, bytes: u64, members: Vec<Member>) -> Type {
        let names = vec![name.to_owned()];
        Type { names, bytes: Some(bytes), shape: Shape::Record(members) }
    }

    fn member(name: &str, bytes: Range<u64>, type_: usize) -> Member {
        Member {
            name: (!name.is_empty()).then(|| name.to_owned()),
            bits: bytes.start * 8..bytes.end * 8,
            type_: die(type_),
            is_bit_field: false,
            variant: None,
        }
    }

    fn variant(name: &str, bytes: Range<u64>, type_: usize, variant: usize) -> Member {
        Member { variant: Some(variant), ..member(name, bytes, type_) }
    }

    fn check(types: &[Type], offset: u64, query: Query, expect: &str) {
        let types: Vec<Rc<Type>> = types.iter().cloned().map(Rc::new).collect();
        let type_of = |die: Die| types.get(die.offset).map(Rc::clone).unwrap_or_default();
        assert_eq!(part(&type_of, die(0), offset, query).path, expect);
    }

    #[test]
    fn nothing_is_known_of_an_unknown_type() {
        check(&[], 0, Query::Bytes(4), "");
        check(&[], 8, Query::Bytes(4), "+8");
    }

    #[test]
    fn a_member_that_two_variants_have_is_not_named() {
        let members = vec![member("", 0..4, 2), variant("A", 0..8, 1, 0), variant("B", 0..8, 1, 1)];
        let inside = record("A", 8, vec![member("__0", 4..8, 2)]);
        check(&[record("E", 8, members), inside, number(4)], 4, Query::Bytes(4), "+4");
    }

    #[test]
    fn a_member_that_one_variant_has_is_named() {
        let members =
            vec![member("", 0..4, 2), variant("None", 0..8, 3, 0), variant("Some", 0..8, 1, 1)];
        let some = record("Some", 8, vec![member("__0", 4..8, 2)]);
        let none = record("None", 8, Vec::new());
        check(&[record("E", 8, members), some, number(4), none], 4, Query::Bytes(4), ".Some.0");
    }

    #[test]
    fn a_record_called_as_a_wrapper_keeps_its_members() {
        let cell = record("Cell", 4, vec![member("alive", 0..4, 1)]);
        check(&[cell, number(4)], 0, Query::Bytes(4), ".alive");
        let cell = record("Cell<u32>", 4, vec![member("value", 0..4, 1)]);
        check(&[cell, number(4)], 0, Query::Bytes(4), "");
    }

    #[test]
    fn a_lock_in_the_data_of_a_lock_is_another_lock() {
        let outer =
            record("Mutex<T>", 16, vec![member("inner", 0..8, 1), member("data", 8..16, 2)]);
        let inner =
            record("Mutex<u32>", 8, vec![member("inner", 0..4, 3), member("data", 4..8, 3)]);
        let types = [outer, number(8), inner, number(4)];
        check(&types, 0, Query::Lock, "");
        check(&types, 8, Query::Lock, ".data");
    }

    #[test]
    fn a_record_in_itself_is_no_harm() {
        let forever = record("R", 8, vec![member("again", 0..8, 0)]);
        check(&[forever], 0, Query::Bytes(8), &".again".repeat(DEPTH_MAX + 1));
    }

    #[test]
    fn unions_in_unions_take_no_forever() {
        let level =
            |n: usize| record("U", 9, vec![member("a", 0..9, n + 1), member("b", 0..9, n + 1)]);
        let types: Vec<Type> = (0..40).map(level).collect();
        check(&types, 0, Query::Bytes(8), &".a".repeat(40));
    }

    #[test]
    fn an_offset_at_the_end_of_all_numbers_is_no_harm() {
        let table = Type {
            shape: Shape::Array { element: die(1), stride: 4, counts: vec![None] },
            ..Type::default()
        };
        check(&[table, number(4)], u64::MAX - 1, Query::Bytes(8), "[4611686018427387903]+2");
    }
}
