//! Cases of graphs, by their machine code.

use iced_x86::code_asm::*;
use proptest::prelude::*;

use super::*;
use crate::image::{Callee, LandingPad, Target};
use crate::sketch::{BASE, Code};

/// Assembles a function and lists its blocks with their successors, by address from the
/// function's first byte; `?` after the last one if edges are missing.
fn check(build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>, expect: &str) {
    let code = Code::assemble(build);
    check_code(&code, expect);
}

fn check_code(code: &Code, expect: &str) {
    let cfg = code.cfg();
    let mut text: Vec<String> = cfg
        .blocks()
        .map(|(block, Block { start, .. })| {
            let to = cfg.successors(block).iter().map(|&to| cfg.block(to).start - BASE);
            let to: Vec<String> = to.map(|to| format!("{to:x}")).collect();
            format!("{:x}>{}", start - BASE, to.join(","))
        })
        .collect();
    if !cfg.is_complete() {
        text.push("?".to_owned());
    }
    assert_eq!(text.join(" "), expect);
}

#[test]
fn a_call_ends_its_block() {
    check(
        |a| {
            a.call(Code::CALLBACK)?;
            a.ret()
        },
        "0>5 5>",
    );
}

#[test]
fn a_branch_leads_to_two_places() {
    check(
        |a| {
            let mut end = a.create_label();
            a.test(edi, edi)?; // 0
            a.je(end)?; // 2
            a.nop()?; // 4
            a.set_label(&mut end)?;
            a.ret() // 5
        },
        "0>4,5 4>5 5>",
    );
}

#[test]
fn nothing_follows_a_call_that_does_not_return() {
    check(
        |a| {
            let mut end = a.create_label();
            a.test(edi, edi)?; // 0
            a.je(end)?; // 2
            a.call(Code::ABORT)?; // 4
            a.set_label(&mut end)?;
            a.ret() // 9
        },
        "0>4,9 4> 9>",
    );
}

#[test]
fn a_call_at_the_end_does_not_return() {
    check(|a| a.call(Code::OTHER), "0>");
}

/// Found by fuzzing: 3 used to swallow 5, so that no edge led from 0 to the loop of both.
#[test]
fn instructions_that_overlap_lead_to_the_same_block() {
    // 0: mov eax, 0x90660000, of which the last two bytes are 3: nop; 5: jmp 3.
    let code = Code::of_bytes(vec![0xb8, 0x00, 0x00, 0x66, 0x90, 0xeb, 0xfc]);
    check_code(&code, "0>5 3>5 5>3 ?");
    let loops = crate::loops::Loops::find(&code.cfg());
    assert_eq!(loops.iter().map(|(_, found)| found.entry - BASE).collect::<Vec<_>>(), [5]);
}

#[test]
fn a_function_that_only_aborts_does_not_return() {
    let may_return = |build: fn(&mut CodeAssembler) -> Result<(), IcedError>| {
        let code = Code::assemble(build);
        code.cfg().may_return()
    };
    assert!(!may_return(|a| {
        a.call(Code::OTHER)?;
        a.call(Code::ABORT)
    }));
    assert!(!may_return(|a| a.jmp(Code::ABORT)));
    assert!(may_return(|a| a.jmp(Code::OTHER)));
    assert!(may_return(|a| {
        a.je(Code::OTHER)?;
        a.ud2()
    }));
    assert!(may_return(|a| a.ret()));
    assert!(may_return(|a| a.jmp(rax)));
}

#[test]
fn nothing_follows_ud2() {
    check(
        |a| {
            a.call(Code::OTHER)?;
            a.ud2()?;
            a.ret()
        },
        // The call does not throw to the `ret` either, but that is not known.
        "0>5,7 5> 7>",
    );
}

#[test]
fn what_is_never_reached_is_not_there() {
    check(
        |a| {
            a.call(Code::CALLBACK)?;
            a.ret()?;
            a.nop()?;
            a.mov(eax, 1)?;
            a.ret()
        },
        "0>5 5>",
    );
}

#[test]
fn exceptions_land_where_no_jump_leads() {
    check(
        |a| {
            let mut back = a.create_label();
            a.call(Code::OTHER)?; // 0
            a.set_label(&mut back)?;
            a.ret()?; // 5
            a.nop()?; // 6
            a.mov(eax, 1)?; // 7
            a.jmp(back) // c
        },
        "0>5,7 5> 7>5",
    );
}

#[test]
fn exceptions_land_where_the_image_says() {
    let mut code = Code::assemble(|a| {
        a.call(Code::OTHER)?; // 0
        a.call(Code::OTHER)?; // 5
        a.ret()?; // a
        a.nop()?; // b
        a.ret() // c
    });
    code.pads = Some(vec![LandingPad { calls: BASE + 5..BASE + 10, at: BASE + 11 }]);
    check_code(&code, "0>5 5>a,b a> b>");
    // A pad elsewhere, of which nothing is known.
    code.pads = Some(vec![LandingPad { calls: BASE + 5..BASE + 10, at: BASE + 1000 }]);
    check_code(&code, "0>5 5>a a> ?");
}

#[test]
fn an_unknown_jump_is_admitted() {
    check(|a| a.jmp(rax), "0> ?");
}

#[test]
fn a_function_that_returns_twice_is_admitted() {
    check(
        |a| {
            a.call(Code::SETJMP)?;
            a.ret()
        },
        "0>5 5> ?",
    );
}

#[test]
fn a_jump_into_an_instruction_is_admitted_and_followed() {
    // je +1; mov eax, 0xc3c3c3c3; ret
    let code = Code::of_bytes(vec![0x74, 0x01, 0xb8, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3]);
    check_code(&code, "0>2,3 2>7 3> 7> ?");
}

#[test]
fn garbage_is_admitted() {
    assert!(!Code::of_bytes(vec![0x06]).cfg().is_complete());
    assert!(!Code::of_bytes(vec![]).cfg().is_complete());
}

proptest! {
    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let cfg = Code::of_bytes(bytes.clone()).cfg();
        for (block, found) in cfg.blocks() {
            prop_assert!(bytes.is_empty() || cfg.block_at(found.start).is_none_or(|b| b == block));
        }
    }
}

/// The table contains 14, 16 and 14, then something that is not in the function.
fn relative_table() -> Vec<u8> {
    let to = |n: i64| i32::try_from(BASE as i64 + n - Code::TABLE as i64).expect("near");
    [to(0x14), to(0x16), to(0x14), 7].iter().flat_map(|entry| entry.to_le_bytes()).collect()
}

#[test]
fn a_switch_is_followed_through_its_table() {
    let mut code = Code::assemble(|a| {
        a.cmp(edi, 2)?; // 0
        Code::lea_table(a)?; // 3
        a.movsxd(rax, dword_ptr(rdx + rdi * 4))?; // a
        a.add(rax, rdx)?; // e
        a.jmp(rax)?; // 11
        a.nop()?; // 13
        a.nop()?; // 14
        a.ret()?; // 15
        a.ret() // 16
    });
    code.table = relative_table();
    check_code(&code, "0>14,16 14> 16>");
}

#[test]
fn a_table_is_found_if_its_address_was_made_long_before() {
    let mut code = Code::assemble(|a| {
        let mut again = a.create_label();
        Code::lea_table(a)?; // 0
        a.set_label(&mut again)?;
        a.dec(edi)?; // 7
        a.je(again)?; // 9
        a.movsxd(rax, dword_ptr(rdx + rdi * 4))?; // b
        a.add(rax, rdx)?; // f
        a.jmp(rax)?; // 12
        a.ret()?; // 14
        a.nop()?; // 15
        a.ret() // 16
    });
    code.table = relative_table();
    check_code(&code, "0>7 7>7,b b>14,16 14> 16>");
}

#[test]
fn a_table_of_addresses_is_followed() {
    let mut code = Code::assemble(|a| {
        a.jmp(qword_ptr(rdi * 8 + i32::try_from(Code::TABLE).expect("low")))?; // 0
        a.ret()?; // 7
        a.ret() // 8
    });
    code.table = [BASE + 8, BASE + 7, 0].iter().flat_map(|to| to.to_le_bytes()).collect();
    check_code(&code, "0>7,8 7> 8>");
}

#[test]
fn sites_are_found_by_their_return_address() {
    let code = Code::assemble(|a| {
        a.call(Code::CALLBACK)?;
        a.call(Code::OTHER)
    });
    let cfg = code.cfg();
    let callee = |pc| Some(cfg.block(cfg.block_calling(pc)?).call?.callee);
    assert_eq!(callee(BASE + 5), Some(Callee::Callback));
    assert_eq!(callee(BASE + 10), Some(Callee::Other));
    assert_eq!(callee(BASE + 4), None);
}

#[test]
fn a_stub_is_looked_through() {
    // At 0x400 past the function: endbr64; jmp [rip + 0x100].
    let mut code = Code::assemble(|a| a.call(Code::STUB));
    code.stub = vec![0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x00, 0x01, 0x00, 0x00];
    let cfg = code.cfg();
    let call = cfg.block(cfg.entry()).call.expect("a call");
    assert_eq!(call.target, Target::Slot(Code::STUB + 10 + 0x100));
}
