// SPDX-License-Identifier: Apache-2.0
//! Circular arithmetic modulo 2^48 (RFC 4340 sections 3.1 and 7.6).

use netjoule_dccp::Seq48;
use proptest::prelude::*;

const CIRCLE: u64 = 1 << 48;

fn any_seq() -> impl Strategy<Value = Seq48> {
    // The edges of the circle are where mistakes live.
    prop_oneof![0..CIRCLE, 0..4_u64, CIRCLE - 4..CIRCLE, CIRCLE / 2 - 2..CIRCLE / 2 + 2].prop_map(Seq48::new)
}

#[test]
fn numbers_wrap_at_48_bits() {
    let last = Seq48::new(CIRCLE - 1);
    assert_eq!(last.add(1), Seq48::new(0));
    assert_eq!(Seq48::new(0).sub(1), last);
    assert_eq!(Seq48::new(CIRCLE + 5), Seq48::new(5));
    assert!(last.is_before(Seq48::new(0)) && !Seq48::new(0).is_before(last));
    assert_eq!(last.latest(Seq48::new(3)), Seq48::new(3));
    assert_eq!(Seq48::new(3).latest(last), Seq48::new(3));
}

#[test]
fn opposite_numbers_are_neither_before_nor_after() {
    let (here, opposite) = (Seq48::new(7), Seq48::new(7 + CIRCLE / 2));
    assert_eq!(here.distance_to(opposite), -(1 << 47));
    assert!(!here.is_before(opposite) && !opposite.is_before(here));
}

#[test]
fn windows_may_lie_across_the_wrap() {
    let (low, high) = (Seq48::new(CIRCLE - 2), Seq48::new(1));
    for inside in [CIRCLE - 2, CIRCLE - 1, 0, 1] {
        assert!(Seq48::new(inside).is_within(low, high), "{inside}");
    }
    for outside in [CIRCLE - 3, 2, CIRCLE / 2] {
        assert!(!Seq48::new(outside).is_within(low, high), "{outside}");
    }
}

#[test]
fn short_numbers_extend_across_the_wrap_of_24_bits() {
    let extend = |short, reference| Seq48::extend(short, Seq48::new(reference)).value();
    assert_eq!(extend(0x00_0001, 0x05ff_ffff), 0x0600_0001);
    assert_eq!(extend(0xff_ffff, 0x0600_0001), 0x05ff_ffff);
    assert_eq!(extend(0x00_0005, 0x0600_0001), 0x0600_0005);
    assert_eq!(extend(0x00_0000, CIRCLE - 1), 0);
    assert_eq!(extend(0xff_ffff, 0), CIRCLE - 1);
    // Exactly half a circle away: the pseudocode goes up when the low bits are smaller, down when they are greater.
    assert_eq!(extend(0x00_0000, 0x0580_0000), 0x0600_0000);
    assert_eq!(extend(0x80_0000, 0x0500_0000), 0x0480_0000);
    // Bits above the 24 do not count.
    assert_eq!(extend(0xab00_0005, 0x0600_0001), 0x0600_0005);
}

proptest! {
    #[test]
    fn distance_undoes_addition(start in any_seq(), steps in -(1_i64 << 47)..1 << 47) {
        let end = if steps < 0 { start.sub(steps.unsigned_abs()) } else { start.add(steps.unsigned_abs()) };
        prop_assert_eq!(start.distance_to(end), steps);
        prop_assert_eq!(start.is_before(end), steps > 0);
        prop_assert!(end.value() < CIRCLE);
    }

    #[test]
    fn comparison_does_not_depend_on_where_the_circle_starts(a in any_seq(), b in any_seq(), turn in 0..CIRCLE) {
        prop_assert_eq!(a.is_before(b), a.add(turn).is_before(b.add(turn)));
        prop_assert_eq!(a.distance_to(b), a.add(turn).distance_to(b.add(turn)));
        prop_assert_eq!(a.add(turn).sub(turn), a);
    }

    #[test]
    fn a_window_holds_as_many_numbers_as_its_ends_say(low in any_seq(), width in 0..CIRCLE, offset in 0..CIRCLE) {
        prop_assert_eq!(low.add(offset).is_within(low, low.add(width)), offset <= width);
    }

    #[test]
    fn extension_finds_every_number_less_than_half_a_circle_away(
        reference in any_seq(),
        steps in -(1_i64 << 23) + 1..1 << 23,
    ) {
        let wanted = if steps < 0 { reference.sub(steps.unsigned_abs()) } else { reference.add(steps.unsigned_abs()) };
        let short = (wanted.value() & 0xff_ffff) as u32;
        prop_assert_eq!(Seq48::extend(short, reference), wanted);
    }

    #[test]
    fn extension_keeps_the_low_bits_and_stays_near(reference in any_seq(), short in 0..1_u32 << 24) {
        let extended = Seq48::extend(short, reference);
        prop_assert_eq!(extended.value() & 0xff_ffff, u64::from(short));
        prop_assert!(reference.distance_to(extended).abs() <= 1 << 23);
    }
}
