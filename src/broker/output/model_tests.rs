//! Random appends and reads, held against a naive model: every byte, chunk, line and tail must agree.

use super::reload::Remains;
use super::tests::{Dice, Flaky, Model, Scratch, plain, wait};
use super::{Bounds, Log, Output, Overflow, Room, Scribe};
use crate::broker::answer::Stream;
use crate::broker::request::Filter;
use std::sync::Arc;
use std::time::SystemTime;

const FILTERS: [Filter; 3] = [Filter::All, Filter::Stdout, Filter::Stderr];

fn pick(dice: &mut Dice) -> (Stream, Vec<u8>) {
    let stream = if dice.below(3) == 0 { Stream::Stderr } else { Stream::Stdout };
    let len = match dice.below(20) {
        0 => dice.below(60_000),
        1..4 => dice.below(5_000),
        _ => 1 + dice.below(120),
    };
    let newlines = [4, 60, 5_000][dice.below(3) as usize];
    let byte = |dice: &mut Dice| if dice.below(newlines) == 0 { b'\n' } else { dice.below(256) as u8 };
    (stream, (0..len).map(|_| byte(dice)).collect())
}

fn grow(output: &Arc<Output>, model: &mut Model, dice: &mut Dice) {
    let (stream, bytes) = pick(dice);
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        wait(output.has_room());
        let (part, more) = rest.split_at(rest.len().min(output.room()));
        assert_ne!(output.append(stream, part), Room::Exceeded);
        model.append(stream, part);
        rest = more;
    }
}

fn oldest(model: &Model, bounds: Bounds) -> usize {
    let by_bytes = model.bytes.len().saturating_sub(bounds.kept as usize);
    let Some(shown) = bounds.lines else { return by_bytes };
    let numbers = model.numbers();
    let last = numbers.last().copied().unwrap_or(0);
    by_bytes.max(numbers.partition_point(|number| *number <= last.saturating_sub(shown)))
}

fn check_totals(output: &Output, model: &Model, oldest: usize) {
    let totals = output.totals();
    assert_eq!(totals.total_bytes, model.bytes.len() as u64);
    assert_eq!(totals.stdout_bytes, model.filtered(0, Filter::Stdout).len() as u64);
    assert_eq!(totals.stderr_bytes, model.filtered(0, Filter::Stderr).len() as u64);
    assert_eq!(totals.total_lines, model.numbers().last().copied().unwrap_or(0));
    assert_eq!(totals.dropped_bytes, oldest as u64);
}

fn check_bytes(output: &Output, model: &Model, oldest: usize, dice: &mut Dice) {
    let from = dice.below(model.bytes.len() as u64 + 1);
    let max = 1 + dice.below(100_000) as usize;
    let filter = FILTERS[dice.below(3) as usize];
    let expected = model.filtered((from as usize).max(oldest), filter);
    let (bytes, next) = output.bytes(from, max, filter);
    assert!(bytes == expected[..expected.len().min(max)], "bytes from {from}, max {max}, {filter:?}");
    let (rest, _) = output.bytes(next, usize::MAX, filter);
    assert!(rest == expected[expected.len().min(max)..], "the rest from {next}");
    let page = output.read(from, max, filter);
    assert_eq!((page.next, page.skipped), (next, (oldest as u64).saturating_sub(from)));
    let mut joined = Vec::new();
    for chunk in &page.chunks {
        let at = chunk.seq as usize;
        assert_eq!(chunk.data, model.bytes[at..at + chunk.data.len()]);
        assert!(model.streams[at..at + chunk.data.len()].iter().all(|stream| *stream == chunk.stream));
        joined.extend_from_slice(&chunk.data);
    }
    assert!(joined == bytes);
}

fn check_lines(output: &Output, model: &Model, oldest: usize, dice: &mut Dice) {
    let filter = FILTERS[dice.below(3) as usize];
    let lines = model.lines(oldest, filter);
    let count = 1 + dice.below(50) as usize;
    let from = dice.below(model.numbers().last().copied().unwrap_or(0) + 2);
    let expected: Vec<_> = lines.iter().filter(|line| line.0 >= from).take(count).cloned().collect();
    let found = output.lines(from, count, filter, usize::MAX);
    let bare = |lines: &[(u64, Stream, u64, Vec<u8>)]| -> Vec<_> {
        lines.iter().map(|line| (line.0, line.1, line.3.clone())).collect()
    };
    assert!(
        found.lines.iter().map(plain).collect::<Vec<_>>() == bare(&expected),
        "{count} lines from {from} {filter:?}"
    );
    let read_on = output.lines(from + expected.len() as u64, 1, filter, usize::MAX);
    assert!(read_on.lines.len() <= 1);
    let tail = &lines[lines.len().saturating_sub(count)..];
    let found = output.tail_lines(count, filter, usize::MAX);
    assert!(found.lines.iter().map(plain).collect::<Vec<_>>() == bare(tail), "tail of {count} {filter:?}");
    if let Some(first) = tail.first() {
        assert_eq!(found.start, first.2);
    }
    assert_eq!(found.next, model.bytes.len() as u64);
}

fn check_bounded_lines(output: &Output, model: &Model, oldest: usize, dice: &mut Dice) {
    let max = 1 + dice.below(2_000) as usize;
    let from = 1 + dice.below(model.numbers().last().copied().unwrap_or(0) + 1);
    let found = output.lines(from, usize::MAX, Filter::All, max);
    let size = (found.next - found.start) as usize;
    assert!(size <= max || found.lines.is_empty(), "{size} of {max}");
    let part = &model.bytes[found.start as usize..found.next as usize];
    let texts: Vec<u8> = found.lines.iter().flat_map(|line| line.text.clone()).collect();
    assert!(texts == part.iter().copied().filter(|byte| *byte != b'\n').collect::<Vec<_>>());
    let reached = found.next as usize == model.bytes.len() || !found.lines.is_empty();
    assert!(reached, "a read of lines gets on");
    let tail = output.tail_lines(usize::MAX, Filter::All, max);
    let end = &model.bytes[tail.start as usize..];
    assert!(tail.start as usize >= oldest && end.len() <= max + 1);
    let texts: Vec<u8> = tail.lines.iter().flat_map(|line| line.text.clone()).collect();
    assert!(texts == end.iter().copied().filter(|byte| *byte != b'\n').collect::<Vec<_>>());
}

fn check_all(output: &Output, model: &Model, bounds: Bounds, dice: &mut Dice) {
    let oldest = oldest(model, bounds);
    check_totals(output, model, oldest);
    for _ in 0..4 {
        check_bytes(output, model, oldest, dice);
        check_lines(output, model, oldest, dice);
        check_bounded_lines(output, model, oldest, dice);
    }
}

fn reopen(scratch: &Scratch) -> Arc<Output> {
    let (folder, segments) = (scratch.folder(), scratch.segments("p_1"));
    Output::recovered(Remains { folder, proc_id: "p_1".into(), segments, known: None, active: SystemTime::now() })
}

fn play(seed: u64, bounds: Bounds, sip: Option<usize>) {
    let scratch = Scratch::new("model");
    let scribe = Scribe::start().unwrap();
    let log = match sip {
        Some(sip) => Log::on(Flaky::new(scratch.folder(), sip), "p_1"),
        None => Log::new(scratch.folder(), "p_1"),
    };
    let output = Output::new(bounds, Some(log), &scribe);
    let (mut model, mut dice) = (Model::default(), Dice(seed));
    for round in 0..80 {
        grow(&output, &mut model, &mut dice);
        match dice.below(8) {
            0 => wait(output.persisted(u64::MAX)),
            1..4 => drop(output.flush_small()),
            _ => {}
        }
        if round % 16 == 15 {
            check_all(&output, &model, bounds, &mut dice);
        }
    }
    wait(output.persisted(u64::MAX));
    output.close();
    assert_eq!((output.trouble(), output.held().ring.bytes()), (None, 0));
    check_all(&output, &model, bounds, &mut dice);
    check_all(&reopen(&scratch), &model, bounds, &mut dice);
    let generous = 2 * bounds.kept + (1 << 21);
    assert!(scratch.bytes() < generous, "{} bytes on disk for {}", scratch.bytes(), bounds.kept);
}

#[test]
fn reads_agree_with_the_model_whatever_the_bounds() {
    for (seed, kept) in [(1, 1 << 30), (2, 300_000), (3, 100_000), (4, 20_000), (5, 100)] {
        play(seed, Bounds { kept, lines: None, overflow: Overflow::DropOldest }, None);
    }
}

#[test]
fn a_bound_of_lines_hides_what_is_older() {
    for (seed, lines) in [(11, 1), (12, 10), (13, 3_000)] {
        play(seed, Bounds { kept: 1 << 20, lines: Some(lines), overflow: Overflow::DropOldest }, None);
    }
}

#[test]
fn short_and_interrupted_writes_change_nothing() {
    play(21, Bounds { kept: 300_000, lines: None, overflow: Overflow::DropOldest }, Some(1000));
}

#[test]
fn without_a_log_the_newest_bytes_stay_and_the_rest_is_counted() {
    let bounds = Bounds { kept: 1 << 30, lines: None, overflow: Overflow::DropOldest };
    let output = Output::new(bounds, None, &Scribe::start().unwrap());
    let (mut model, mut dice) = (Model::default(), Dice(31));
    for round in 0..500 {
        grow(&output, &mut model, &mut dice);
        if round % 25 != 24 {
            continue;
        }
        let dropped = output.totals().dropped_bytes as usize;
        let kept = model.bytes.len() - dropped;
        assert!(kept <= 1 << 20 && (dropped == 0 || kept > 400_000), "{kept} kept");
        check_bytes(&output, &model, dropped, &mut dice);
        check_totals(&output, &model, dropped);
    }
    assert!(output.totals().dropped_bytes > 0 && output.flush_small());
}
