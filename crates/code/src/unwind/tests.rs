//! Handmade stacks, in a module with a handmade table.

use proptest::prelude::*;

use super::table::Section;
use super::*;

/// Where the module is loaded.
const BASE: u64 = 0x40_0000;
const RSP_START: u64 = 0x7f00_0000;

/// Call frame instructions and operations of DWARF, version 4, sections 7.7 and 7.23.
const DEF_CFA: u8 = 0x0c;
const DEF_CFA_EXPRESSION: u8 = 0x0f;
const EXPRESSION: u8 = 0x10;
const UNDEFINED: u8 = 0x07;
const OFFSET: u8 = 0x80;
const DEREF: u8 = 0x06;
const BREG_RSP: u8 = 0x77;

/// DWARF's register numbers.
const DWARF_RBX: u8 = 3;
const DWARF_RBP: u8 = 6;
const DWARF_RSP: u8 = 7;
const DWARF_RIP: u8 = 16;

/// Our register number.
const RBX: usize = 3;

/// Functions of 0x100 bytes each, at these addresses of the file.
const LEAF: u64 = 0x1000;
const SAVES_RBX: u64 = 0x1100;
const FRAME_POINTER: u64 = 0x1200;
const START: u64 = 0x1300;
const TRAMPOLINE: u64 = 0x1400;
const PLT: u64 = 0x1500;
const NO_ENTRY: u64 = 0x1600;

fn entry(bytes: &mut Vec<u8>, body: &[u8]) {
    let n_bytes = body.len().next_multiple_of(4);
    bytes.extend((n_bytes as u32).to_le_bytes());
    bytes.extend(body);
    bytes.extend(vec![0; n_bytes - body.len()]);
}

/// A common entry: a function has only its return address on the stack.
fn common(bytes: &mut Vec<u8>, augmentation: &str) -> u32 {
    let at = bytes.len() as u32;
    let mut body = vec![0, 0, 0, 0, 1];
    body.extend(augmentation.as_bytes());
    // The end of the augmentation, factors 1 and -8, the return address; absolute addresses.
    body.extend([0, 1, 0x78, DWARF_RIP, 1, 0]);
    body.extend([DEF_CFA, DWARF_RSP, 8, OFFSET | DWARF_RIP, 1]);
    entry(bytes, &body);
    at
}

fn function(bytes: &mut Vec<u8>, common: u32, start: u64, instructions: &[u8]) {
    let at = bytes.len() as u32 + 4;
    let mut body = (at - common).to_le_bytes().to_vec();
    body.extend(start.to_le_bytes());
    body.extend(0x100u64.to_le_bytes());
    body.push(0);
    body.extend(instructions);
    entry(bytes, &body);
}

fn table() -> Table {
    let mut bytes = Vec::new();
    let plain = common(&mut bytes, "zR");
    let signal = common(&mut bytes, "zRS");
    function(&mut bytes, plain, LEAF, &[]);
    let saves_rbx = [DEF_CFA, DWARF_RSP, 16, OFFSET | DWARF_RBX, 2];
    function(&mut bytes, plain, SAVES_RBX, &saves_rbx);
    let frame_pointer = [DEF_CFA, DWARF_RBP, 16, OFFSET | DWARF_RBP, 2];
    function(&mut bytes, plain, FRAME_POINTER, &frame_pointer);
    function(&mut bytes, plain, START, &[UNDEFINED, DWARF_RIP]);
    // The context of a signal: stack pointer, instruction pointer and rbx at the stack pointer.
    let trampoline = [
        &[DEF_CFA_EXPRESSION, 3, BREG_RSP, 0, DEREF][..],
        &[EXPRESSION, DWARF_RIP, 2, BREG_RSP, 8],
        &[EXPRESSION, DWARF_RBX, 2, BREG_RSP, 16],
    ];
    function(&mut bytes, signal, TRAMPOLINE, &trampoline.concat());
    // The usual entry of linkers: 8 more bytes from the 11th byte of each 16 on.
    let plt = [DEF_CFA_EXPRESSION, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    function(&mut bytes, plain, PLT, &plt);
    let code = std::iter::once(LEAF..NO_ENTRY + 0x100).collect();
    Table::new(code, Section { address: 0x8000, bytes }, Section::default())
}

struct Process {
    table: Table,
    /// Each word with its address.
    memory: Vec<(u64, u64)>,
}

impl Loaded for Process {
    fn table(&self, address: u64) -> Option<(&Table, u64)> {
        (BASE..BASE + 0x1_0000).contains(&address).then_some((&self.table, BASE))
    }
}

impl Memory for Process {
    fn number(&self, address: u64, n_bytes: usize) -> Option<u64> {
        assert_eq!(n_bytes, 8);
        self.memory.iter().find(|(at, _)| *at == address).map(|(_, word)| *word)
    }
}

/// The stack of a thread at `pc`, with these words from the stack pointer on, and others
/// elsewhere.
fn frames(pc: u64, rbp: u64, words: &[u64], elsewhere: &[(u64, u64)]) -> Vec<Frame> {
    let mut memory: Vec<_> = (0..).zip(words).map(|(n, word)| (RSP_START + 8 * n, *word)).collect();
    memory.extend(elsewhere);
    let process = Process { table: table(), memory };
    let mut registers = [0; N_REGISTERS];
    registers[RIP] = BASE + pc;
    registers[RSP] = RSP_START;
    registers[RBP] = rbp;
    registers[RBX] = 0xb;
    stack(Frame::innermost(registers, [0; 2]), &process, &process, 16)
}

/// Checks the frames of such a thread, as addresses of the file.
fn check(pc: u64, rbp: u64, words: &[u64], expect: &[u64]) -> Vec<Frame> {
    let frames = frames(pc, rbp, words, &[]);
    let pcs: Vec<u64> = frames.iter().map(|frame| frame.pc() - BASE).collect();
    assert_eq!(pcs, expect);
    frames
}

#[test]
fn callers_are_found_to_the_outermost() {
    let rbp = RSP_START + 40;
    let words = [
        BASE + SAVES_RBX + 9,
        // rbx of the caller.
        0xbb,
        BASE + FRAME_POINTER + 9,
        // Stale: the return address of a finished call.
        BASE + SAVES_RBX + 50,
        0,
        0x1234,
        BASE + START + 9,
    ];
    let frames = check(LEAF, rbp, &words, &[LEAF, SAVES_RBX + 9, FRAME_POINTER + 9, START + 9]);
    assert_eq!(frames[1].get(RBX), Some(0xb), "as a leaf leaves it");
    assert_eq!(frames[2].get(RBX), Some(0xbb), "as it was saved");
    assert_eq!(frames[3].get(RBP), Some(0x1234));
    assert_eq!(frames[1].get(0), None, "a call may change rax");
    assert!(frames[0].is_exact && !frames[1].is_exact);
}

#[test]
fn a_call_that_does_not_return_belongs_to_its_function() {
    // The return address is the first byte of the next function.
    check(LEAF, 0, &[BASE + SAVES_RBX + 0x100, 0, 0], &[LEAF, SAVES_RBX + 0x100]);
    let words = [BASE + SAVES_RBX + 0x100, 0xbb, BASE + START + 1];
    check(LEAF, 0, &words, &[LEAF, SAVES_RBX + 0x100, START + 1]);
}

#[test]
fn what_a_signal_interrupted_may_be_on_a_lower_stack() {
    let lower = RSP_START - 0x10_0000;
    // The entry of a trampoline begins a byte before it, since nobody calls it.
    let words = [BASE + TRAMPOLINE + 1, lower, BASE + SAVES_RBX, 0x5b];
    let interrupted = [(lower, 0xbb), (lower + 8, BASE + START + 7)];
    let frames = frames(LEAF, 0, &words, &interrupted);
    let pcs: Vec<u64> = frames.iter().map(|frame| frame.pc() - BASE).collect();
    // Interrupted at its first instruction, which is looked up as is.
    assert_eq!(pcs, [LEAF, TRAMPOLINE + 1, SAVES_RBX, START + 7]);
    assert!(frames[2].is_exact);
    assert_eq!(frames[2].get(RBX), Some(0x5b));
    assert_eq!(frames[3].get(RBX), Some(0xbb));
}

#[test]
fn a_linkage_table_has_pushed_a_number_from_its_eleventh_byte_on() {
    check(PLT, 0, &[BASE + START + 1], &[PLT, START + 1]);
    check(PLT + 11, 0, &[5, BASE + START + 1], &[PLT + 11, START + 1]);
}

#[test]
fn code_without_an_entry_is_a_leaf_or_has_a_frame_pointer() {
    check(NO_ENTRY, 0, &[BASE + START + 1], &[NO_ENTRY, START + 1]);
    let rbp = RSP_START + 16;
    check(NO_ENTRY, rbp, &[1, 2, 3, BASE + START + 1], &[NO_ENTRY, START + 1]);
    check(NO_ENTRY, RSP_START - 8, &[1, 2, 3, BASE + START + 1], &[NO_ENTRY]);
}

#[test]
fn a_call_through_a_wild_pointer_has_a_caller() {
    check(0x100_0000, 0, &[BASE + START + 1], &[0x100_0000, START + 1]);
}

#[test]
fn a_stack_ends_where_its_memory_does() {
    check(LEAF, 0, &[BASE + SAVES_RBX + 9, 0xbb], &[LEAF, SAVES_RBX + 9]);
    check(LEAF, 0, &[], &[LEAF]);
}

#[test]
fn a_stack_that_does_not_grow_ends() {
    let words = [BASE + FRAME_POINTER + 9, 0, 0];
    check(LEAF, RSP_START - 0x100, &words, &[LEAF, FRAME_POINTER + 9]);
}

#[test]
fn what_is_no_code_is_no_caller() {
    check(LEAF, 0, &[0x1234_5678], &[LEAF]);
    check(LEAF, 0, &[BASE + 0x9000], &[LEAF]);
}

#[test]
fn an_index_finds_the_same_entries() {
    let program = std::env::current_exe().expect("this program");
    let indexed = Table::parse(&*std::fs::read(&program).expect("a file")).expect("an ELF file");
    let plain = indexed.without_index();
    let functions = indexed.functions();
    assert!(functions.len() > 100 && indexed.is_code(functions[0].start));
    for function in functions.iter().step_by(functions.len() / 100) {
        for at in [function.start, function.end - 1] {
            assert_eq!(indexed.entry_start(at), Some(function.start));
            assert_eq!(plain.entry_start(at), Some(function.start));
        }
    }
}

proptest! {
    /// A damaged file yields a wrong stack or none, but no panic.
    #[test]
    fn damage_does_no_harm(at in 0usize..400, byte: u8, pc in LEAF..NO_ENTRY) {
        let mut damaged = table();
        let bytes = damaged.bytes_mut();
        let n_bytes = bytes.len();
        bytes[at % n_bytes] = byte;
        let words = [BASE + SAVES_RBX + 9, RSP_START + 8, BASE + PLT + 9, RSP_START, BASE + START];
        let memory = (0..).zip(words).map(|(n, word)| (RSP_START + 8 * n, word)).collect();
        let process = Process { table: damaged, memory };
        let mut registers = [RSP_START; N_REGISTERS];
        registers[RIP] = BASE + pc;
        let innermost = Frame::innermost(registers, [0; 2]);
        let memory = AnySize(&process);
        prop_assert!(!stack(innermost, &process, &memory, 16).is_empty());
    }
}

/// The same memory for readers of less than a word.
struct AnySize<'a>(&'a Process);

impl Memory for AnySize<'_> {
    fn number(&self, address: u64, _: usize) -> Option<u64> {
        self.0.number(address, 8)
    }
}
