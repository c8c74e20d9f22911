//! A reference for how suppression spreads: an interpreter of a small language that knows of
//! no instruction, held against [`crate::flow`] on the machine code of the same program.

use iced_x86::code_asm::{
    AsmRegister8, AsmRegister64, CodeAssembler, byte_ptr, qword_ptr, r8, r8b, r9, r9b, r10, r10b,
    r11, r11b, rbp, xmm0, xmm1, xmmword_ptr,
};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use proptest::prelude::*;
use raddle_code::body::Body;
use raddle_code::unwind::RBP;

use crate::code::Function;
use crate::flow::{Treatment, flow, pass_branch, uses_suppressed};
use crate::frame::{Frame, number};
use crate::shadow::{Bytes, Shadow};

const N_REGISTERS: usize = 4;
const N_CELLS: usize = 6;
const REGISTERS: [AsmRegister64; N_REGISTERS] = [r8, r9, r10, r11];
const NARROW: [AsmRegister8; N_REGISTERS] = [r8b, r9b, r10b, r11b];
/// Where the program is.
const BASE: u64 = 0x1000;
/// Where the cells are.
const MEMORY: u64 = 0x10_0000;

/// A statement on registers, cells of eight bytes, and two vectors of sixteen.
#[derive(Clone, Debug)]
enum Statement {
    Constant(usize, i32),
    Move(usize, usize),
    Add(usize, usize),
    Multiply(usize, usize),
    Zero(usize),
    Load(usize, usize),
    Store(usize, usize),
    AddTo(usize, usize),
    StoreByte(usize, usize, usize),
    LoadVector(bool, usize),
    StoreVector(usize, bool),
    If(usize, Vec<Statement>),
}

fn statement() -> impl Strategy<Value = Statement> {
    let r = 0..N_REGISTERS;
    let c = 0..N_CELLS;
    let simple = prop_oneof![
        (r.clone(), any::<i32>()).prop_map(|(r, n)| Statement::Constant(r, n)),
        (r.clone(), r.clone()).prop_map(|(a, b)| Statement::Move(a, b)),
        (r.clone(), r.clone()).prop_map(|(a, b)| Statement::Add(a, b)),
        (r.clone(), r.clone()).prop_map(|(a, b)| Statement::Multiply(a, b)),
        r.clone().prop_map(Statement::Zero),
        (r.clone(), c.clone()).prop_map(|(r, c)| Statement::Load(r, c)),
        (c.clone(), r.clone()).prop_map(|(c, r)| Statement::Store(c, r)),
        (c.clone(), r.clone()).prop_map(|(c, r)| Statement::AddTo(c, r)),
        (c, 0..8usize, r.clone()).prop_map(|(c, at, r)| Statement::StoreByte(c, at, r)),
        (any::<bool>(), 0..N_CELLS - 1).prop_map(|(v, c)| Statement::LoadVector(v, c)),
        (0..N_CELLS - 1, any::<bool>()).prop_map(|(c, v)| Statement::StoreVector(c, v)),
    ];
    simple.prop_recursive(2, 12, 4, move |inner| {
        (0..N_REGISTERS, prop::collection::vec(inner, 0..4))
            .prop_map(|(r, body)| Statement::If(r, body))
    })
}

/// A byte, and whether it is suppressed.
type Byte = (u8, bool);

/// The machine of the reference: everything is bytes.
#[derive(Clone)]
struct Machine {
    registers: [[Byte; 8]; N_REGISTERS],
    vectors: [[Byte; 16]; 2],
    cells: [Byte; 8 * N_CELLS],
}

fn is_suppressed(bytes: &[Byte]) -> bool {
    bytes.iter().any(|(_, suppressed)| *suppressed)
}

fn value(bytes: &[Byte]) -> u64 {
    bytes.iter().rev().fold(0, |value, (byte, _)| value << 8 | u64::from(*byte))
}

fn put(bytes: &mut [Byte], value: Option<u64>) {
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = match value {
            Some(value) => ((value >> (8 * at)) as u8, false),
            None => (byte.0, true),
        };
    }
}

/// Copies byte by byte: what is suppressed stays what it was.
fn copy(from: &[Byte], to: &mut [Byte]) {
    for (from, to) in from.iter().zip(to) {
        *to = if from.1 { (to.0, true) } else { *from };
    }
}

impl Machine {
    fn run(&mut self, program: &[Statement]) {
        for statement in program {
            self.perform(statement);
        }
    }

    fn perform(&mut self, statement: &Statement) {
        let sum = |a: &[Byte], b: &[Byte], of: fn(u64, u64) -> u64| {
            (!is_suppressed(a) && !is_suppressed(b)).then(|| of(value(a), value(b)))
        };
        match *statement {
            Statement::Constant(r, n) => put(&mut self.registers[r], Some(n as i64 as u64)),
            Statement::Zero(r) => put(&mut self.registers[r], Some(0)),
            Statement::Move(a, b) => {
                let from = self.registers[b];
                copy(&from, &mut self.registers[a]);
            }
            Statement::Add(a, b) => {
                let new = sum(&self.registers[a], &self.registers[b], u64::wrapping_add);
                put(&mut self.registers[a], new);
            }
            Statement::Multiply(a, b) => {
                let new = sum(&self.registers[a], &self.registers[b], u64::wrapping_mul);
                put(&mut self.registers[a], new);
            }
            Statement::Load(r, c) => copy(&self.cells[8 * c..8 * c + 8], &mut self.registers[r]),
            Statement::Store(c, r) => {
                copy(&self.registers[r], &mut self.cells[8 * c..8 * c + 8]);
            }
            Statement::AddTo(c, r) => {
                let cell = 8 * c..8 * c + 8;
                let new = sum(&self.cells[cell.clone()], &self.registers[r], u64::wrapping_add);
                put(&mut self.cells[cell], new);
            }
            Statement::StoreByte(c, at, r) => {
                copy(&self.registers[r][..1], &mut self.cells[8 * c + at..8 * c + at + 1]);
            }
            Statement::LoadVector(v, c) => {
                copy(&self.cells[8 * c..8 * c + 16], &mut self.vectors[usize::from(v)]);
            }
            Statement::StoreVector(c, v) => {
                copy(&self.vectors[usize::from(v)], &mut self.cells[8 * c..8 * c + 16]);
            }
            Statement::If(r, ref body) => {
                if is_suppressed(&self.registers[r]) {
                    self.suppress(body);
                } else if value(&self.registers[r]) != 0 {
                    self.run(body);
                }
            }
        }
    }

    /// Suppresses all that these statements could write.
    fn suppress(&mut self, body: &[Statement]) {
        for statement in body {
            match *statement {
                Statement::Constant(r, _)
                | Statement::Move(r, _)
                | Statement::Add(r, _)
                | Statement::Multiply(r, _)
                | Statement::Zero(r)
                | Statement::Load(r, _) => put(&mut self.registers[r], None),
                Statement::Store(c, _) | Statement::AddTo(c, _) => {
                    put(&mut self.cells[8 * c..8 * c + 8], None);
                }
                Statement::StoreByte(c, at, _) => {
                    put(&mut self.cells[8 * c + at..8 * c + at + 1], None);
                }
                Statement::LoadVector(v, _) => put(&mut self.vectors[usize::from(v)], None),
                Statement::StoreVector(c, _) => put(&mut self.cells[8 * c..8 * c + 16], None),
                Statement::If(_, ref body) => self.suppress(body),
            }
        }
    }
}

/// The same program in machine code.
fn assemble(program: &[Statement]) -> Vec<u8> {
    let mut assembler = CodeAssembler::new(64).expect("64 bits");
    emit(&mut assembler, program);
    assembler.ret().expect("an instruction");
    assembler.assemble(BASE).expect("a program")
}

fn emit(a: &mut CodeAssembler, program: &[Statement]) {
    let cell = |c: usize, at: usize| rbp + (8 * c + at) as i32;
    for statement in program {
        let result = match *statement {
            Statement::Constant(r, n) => a.mov(REGISTERS[r], i64::from(n)),
            Statement::Move(x, y) => a.mov(REGISTERS[x], REGISTERS[y]),
            Statement::Add(x, y) => a.add(REGISTERS[x], REGISTERS[y]),
            Statement::Multiply(x, y) => a.imul_2(REGISTERS[x], REGISTERS[y]),
            Statement::Zero(r) => a.xor(REGISTERS[r], REGISTERS[r]),
            Statement::Load(r, c) => a.mov(REGISTERS[r], qword_ptr(cell(c, 0))),
            Statement::Store(c, r) => a.mov(qword_ptr(cell(c, 0)), REGISTERS[r]),
            Statement::AddTo(c, r) => a.add(qword_ptr(cell(c, 0)), REGISTERS[r]),
            Statement::StoreByte(c, at, r) => a.mov(byte_ptr(cell(c, at)), NARROW[r]),
            Statement::LoadVector(v, c) => {
                a.movups(if v { xmm1 } else { xmm0 }, xmmword_ptr(cell(c, 0)))
            }
            Statement::StoreVector(c, v) => {
                a.movups(xmmword_ptr(cell(c, 0)), if v { xmm1 } else { xmm0 })
            }
            Statement::If(r, ref body) => {
                let mut end = a.create_label();
                a.test(REGISTERS[r], REGISTERS[r]).expect("an instruction");
                a.je(end).expect("an instruction");
                emit(a, body);
                a.set_label(&mut end).expect("a label");
                // Two labels cannot share a place.
                a.nop()
            }
        };
        result.expect("an instruction");
    }
}

/// Executes machine code, as far as it is not suppressed.
struct Processor {
    frame: Frame,
    vectors: [[u8; 16]; 2],
    cells: [u8; 8 * N_CELLS],
    zero: bool,
    shadow: Shadow,
    bytes: Bytes,
}

impl Processor {
    fn run(&mut self, code: &[u8]) {
        let function = Function::new(Body::from_bytes(code, BASE)).expect("a function");
        let instructions = function.instructions();
        let mut factory = InstructionInfoFactory::new();
        let mut at = 0;
        while let Some(instruction) = instructions.get(at) {
            let (shadow, bytes) = (&mut self.shadow, &mut self.bytes);
            match instruction.flow_control() {
                FlowControl::Return => return,
                FlowControl::ConditionalBranch => {
                    let ip =
                        if uses_suppressed(instruction, &self.frame, shadow, bytes, &mut factory) {
                            pass_branch(&function, at, &self.frame, shadow, bytes, &mut factory)
                                .expect("all ways meet")
                        } else if self.zero {
                            instruction.near_branch_target()
                        } else {
                            instruction.next_ip()
                        };
                    at = function.index(ip).expect("an instruction");
                    continue;
                }
                _ => {}
            }
            let fate = flow(instruction, &self.frame, shadow, bytes, &mut factory);
            if fate != Treatment::Skipped {
                self.execute(instruction);
            }
            at += 1;
        }
    }

    fn get(&self, register: Register) -> u64 {
        self.frame.value(register).expect("a known register")
    }

    fn execute(&mut self, i: &Instruction) {
        let cell = (i.memory_displacement64()) as usize;
        let vector = |register: Register| register.number();
        let loaded =
            |cells: &[u8]| u64::from_le_bytes(cells[cell..cell + 8].try_into().expect("8"));
        match (i.mnemonic(), i.op0_kind(), i.op1_kind()) {
            (Mnemonic::Nop, ..) => {}
            (Mnemonic::Test, ..) => self.zero = self.get(i.op0_register()) == 0,
            (Mnemonic::Movups, OpKind::Register, _) => {
                self.vectors[vector(i.op0_register())]
                    .copy_from_slice(&self.cells[cell..cell + 16]);
            }
            (Mnemonic::Movups, ..) => {
                self.cells[cell..cell + 16]
                    .copy_from_slice(&self.vectors[vector(i.op1_register())]);
            }
            (mnemonic, OpKind::Memory, _) => {
                let source = self.get(i.op1_register());
                let n = i.memory_size().size();
                let new = match mnemonic {
                    Mnemonic::Add => loaded(&self.cells).wrapping_add(source),
                    _ => source,
                };
                self.cells[cell..cell + n].copy_from_slice(&new.to_le_bytes()[..n]);
            }
            (mnemonic, ..) => {
                let source = match i.op1_kind() {
                    OpKind::Memory => loaded(&self.cells),
                    OpKind::Register => self.get(i.op1_register()),
                    _ => i.immediate(1),
                };
                let old = self.get(i.op0_register());
                let new = match mnemonic {
                    Mnemonic::Mov => source,
                    Mnemonic::Add => old.wrapping_add(source),
                    Mnemonic::Imul => old.wrapping_mul(source),
                    Mnemonic::Xor => old ^ source,
                    other => panic!("{other:?} is not part of the language"),
                };
                let number = number(i.op0_register()).expect("a general register");
                self.frame.set(number, Some(new));
            }
        }
    }
}

fn compare(program: &[Statement], cells: [u8; 8 * N_CELLS], suppressed: u64) {
    let mut machine = Machine {
        registers: [[(0, false); 8]; N_REGISTERS],
        vectors: [[(0, false); 16]; 2],
        cells: std::array::from_fn(|at| (cells[at], suppressed >> at & 1 == 1)),
    };
    machine.run(program);

    let mut frame = Frame::default();
    for number in 0..16 {
        frame.set(number, Some(0));
    }
    frame.set(RBP, Some(MEMORY));
    let mut bytes = Bytes::default();
    bytes.set(MEMORY, 8 * N_CELLS as u64, suppressed);
    let vectors = [[0; 16]; 2];
    let mut processor =
        Processor { frame, vectors, cells, zero: false, shadow: Shadow::default(), bytes };
    processor.run(&assemble(program));

    let check = |what: &str, expected: &[Byte], mask: u64, values: &[u8]| {
        for (at, (value, suppressed)) in expected.iter().enumerate() {
            assert_eq!(mask >> at & 1 == 1, *suppressed, "suppression of byte {at} of {what}");
            assert!(*suppressed || values[at] == *value, "value of byte {at} of {what}");
        }
    };
    let names = [Register::R8, Register::R9, Register::R10, Register::R11];
    for (at, name) in names.into_iter().enumerate() {
        let values = processor.get(name).to_le_bytes();
        check(&format!("{name:?}"), &machine.registers[at], processor.shadow.get(name), &values);
    }
    for (at, name) in [Register::XMM0, Register::XMM1].into_iter().enumerate() {
        let mask = processor.shadow.get(name);
        check(&format!("{name:?}"), &machine.vectors[at], mask, &processor.vectors[at]);
    }
    let mask = processor.bytes.get(MEMORY, 8 * N_CELLS as u64);
    check("memory", &machine.cells, mask, &processor.cells);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn machine_code_spreads_suppression_as_the_reference_does(
        program in prop::collection::vec(statement(), 1..24),
        cells in prop::array::uniform32(any::<u8>()),
        suppressed in any::<u64>(),
        sparse in any::<u64>(),
    ) {
        let all = std::array::from_fn(|at| cells[at % 32] & if at % 8 == 0 { 3 } else { 0 });
        compare(&program, all, suppressed & sparse & ((1 << (8 * N_CELLS)) - 1));
    }
}
