//! What reaches the disk, what a kill leaves there, and what a disk that fails does to the rest.

use super::reload::Remains;
use super::tests::{Flaky, Model, Scratch, keep, output, persist, plain, wait};
use super::{Bounds, Log, Output, Overflow, Room, Scribe, Totals};
use crate::broker::answer::Stream;
use crate::broker::request::Filter;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

const ALL: Filter = Filter::All;

fn reopen(scratch: &Scratch, known: Option<Totals>) -> Arc<Output> {
    let (folder, segments) = (scratch.folder(), scratch.segments("p_1"));
    Output::recovered(Remains { folder, proc_id: "p_1".into(), segments, known, active: SystemTime::now() })
}

#[test]
fn every_byte_value_comes_back_and_the_file_is_private() {
    let scratch = Scratch::new("values");
    let scribe = Scribe::start().unwrap();
    let output = output(&scratch.0, keep(1 << 20), &scribe);
    let values: Vec<u8> = (0..=255).collect();
    assert_eq!(output.append(Stream::Stdout, &values), Room::Left((512 << 10) - 256));
    persist(&output);
    output.close();
    assert_eq!(output.bytes(0, 1000, ALL), (values.clone(), 256));
    assert_eq!(reopen(&scratch, None).bytes(0, 1000, ALL), (values, 256));
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(scratch.0.join("p_1.0.log")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_flood_of_single_bytes_costs_little_more_than_its_bytes() {
    let scratch = Scratch::new("single");
    let scribe = Scribe::start().unwrap();
    let output = output(&scratch.0, keep(1 << 20), &scribe);
    for _ in 0..100_000 {
        wait_for_room(&output);
        assert_ne!(output.append(Stream::Stdout, b"x"), Room::Exceeded);
    }
    wait(output.persisted(u64::MAX));
    assert!(scratch.bytes() < 150_000, "{} bytes on disk", scratch.bytes());
    assert_eq!(output.bytes(0, usize::MAX, ALL).0, vec![b'x'; 100_000]);
}

fn wait_for_room(output: &Output) {
    if output.room() == 0 {
        wait(output.has_room());
    }
}

#[test]
fn two_streams_taking_turns_byte_by_byte_stay_bounded_and_what_goes_is_counted() {
    let scratch = Scratch::new("turns");
    let scribe = Scribe::start().unwrap();
    let output = output(&scratch.0, keep(64 << 10), &scribe);
    for turn in 0..100_000 {
        wait_for_room(&output);
        let stream = if turn % 2 == 0 { Stream::Stdout } else { Stream::Stderr };
        assert_ne!(output.append(stream, b"x"), Room::Exceeded);
    }
    wait(output.persisted(u64::MAX));
    output.close();
    assert!(scratch.bytes() < 2 << 20, "{} bytes on disk", scratch.bytes());
    let totals = output.totals();
    let left = output.bytes(0, usize::MAX, ALL).0.len() as u64;
    assert_eq!((totals.total_bytes, totals.total_lines), (100_000, 100_000));
    assert_eq!(totals.dropped_bytes + left, 100_000);
    assert_eq!(output.tail_lines(3, Filter::Stderr, 100).lines.iter().map(|line| line.number).max(), Some(100_000));
}

#[test]
fn a_log_cut_at_any_byte_of_its_last_frame_yields_what_is_there() {
    let scratch = Scratch::new("torn");
    let scribe = Scribe::start().unwrap();
    let output = output(&scratch.0, keep(1 << 20), &scribe);
    let mut model = Model::default();
    for (stream, bytes) in
        [(Stream::Stdout, &b"first\nsecond"[..]), (Stream::Stderr, b"oh\nno\n"), (Stream::Stdout, b"a\nb\ncd")]
    {
        assert_ne!(output.append(stream, bytes), Room::Full);
        persist(&output);
        model.append(stream, bytes);
    }
    let path = scratch.0.join("p_1.0.log");
    let whole = std::fs::read(&path).unwrap();
    for cut in 0..=whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let read = reopen(&scratch, None);
        let (bytes, next) = read.bytes(0, 1000, ALL);
        assert!(model.bytes.starts_with(&bytes), "cut at {cut}");
        assert_eq!((next, read.totals().total_bytes), (bytes.len() as u64, bytes.len() as u64));
        let back = whole.len() - cut;
        assert!(back >= 6 || bytes.len() == model.bytes.len() - back, "cut at {cut}: {} bytes", bytes.len());
        let lines: Vec<_> = read.lines(1, 100, ALL, 1000).lines.iter().map(plain).collect();
        let mut shorter = model.clone();
        shorter.bytes.truncate(bytes.len());
        let expected: Vec<_> = shorter.lines(0, ALL).into_iter().map(|line| (line.0, line.1, line.3)).collect();
        assert_eq!(lines, expected);
        assert_eq!(read.totals().total_lines, expected.len() as u64);
    }
}

#[test]
fn corrupt_bytes_anywhere_never_panic_and_never_show_more_than_was_written() {
    let scratch = Scratch::new("corrupt");
    let scribe = Scribe::start().unwrap();
    let output = output(&scratch.0, keep(1 << 20), &scribe);
    for turn in 0..6 {
        let stream = if turn % 2 == 0 { Stream::Stdout } else { Stream::Stderr };
        assert_ne!(output.append(stream, b"some\nbytes"), Room::Full);
    }
    persist(&output);
    let path = scratch.0.join("p_1.0.log");
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            std::fs::write(&path, &bytes).unwrap();
            let known = Totals { total_bytes: 60, total_lines: 12, ..Totals::default() };
            let read = reopen(&scratch, Some(known));
            let page = read.read(0, 1000, ALL);
            let shown: usize = page.chunks.iter().map(|chunk| chunk.data.len()).sum();
            assert!(shown as u64 + page.skipped == page.next && page.next >= 60, "byte {at}: {page:?}");
            assert!(read.tail_lines(100, ALL, 1000).lines.len() <= 200);
        }
    }
}

#[test]
fn what_a_reply_shows_is_on_disk_when_flush_says_so() {
    let scratch = Scratch::new("flush");
    let scribe = Scribe::start().unwrap();
    let output = output(&scratch.0, keep(1 << 20), &scribe);
    for turn in 1..200_u64 {
        assert_ne!(output.append(Stream::Stdout, b"tick\n"), Room::Full);
        if !output.flush_small() {
            wait(output.persisted(5 * turn));
        }
        assert_eq!(reopen(&scratch, None).totals().total_bytes, 5 * turn);
    }
}

#[test]
fn a_full_disk_keeps_the_newest_in_memory_and_heals() {
    let scratch = Scratch::new("full");
    let scribe = Scribe::start().unwrap();
    let flaky = Flaky::new(scratch.folder(), 1 << 20);
    let output = Output::new(keep(8 << 20), Some(Log::on(flaky.clone(), "p_1")), &scribe);
    let block: Vec<u8> = (0..50_000_u32).map(|at| (at % 251) as u8).collect();
    let mut model = Model::default();
    let mut feed = |count: usize| {
        for _ in 0..count {
            wait(output.has_room());
            assert_ne!(output.append(Stream::Stdout, &block), Room::Exceeded);
            model.append(Stream::Stdout, &block);
        }
    };
    feed(10);
    wait(output.persisted(u64::MAX));
    flaky.is_full.store(true, Ordering::SeqCst);
    let before = flaky.attempts.load(Ordering::SeqCst);
    feed(1);
    wait(output.persisted(u64::MAX));
    assert!(output.trouble().unwrap().contains("No space left"), "{:?}", output.trouble());
    assert!(!output.flush_small());
    feed(30);
    wait(output.persisted(u64::MAX));
    assert!(flaky.attempts.load(Ordering::SeqCst) - before < 100, "it does not try without rest");
    let dropped = output.totals().dropped_bytes;
    assert!(dropped > 500_000, "{dropped} dropped");
    flaky.is_full.store(false, Ordering::SeqCst);
    wait(async {
        while output.trouble().is_some() {
            output.written.notified().await;
        }
    });
    wait(output.persisted(u64::MAX));
    output.close();
    let dropped = output.totals().dropped_bytes;
    for read in [Arc::clone(&output), reopen(&scratch, None)] {
        let page = read.read(0, usize::MAX, ALL);
        assert_eq!((page.skipped, page.next, read.totals().dropped_bytes), (dropped, 41 * 50_000, dropped));
        for chunk in &page.chunks {
            assert!(chunk.data == model.bytes[chunk.seq as usize..][..chunk.data.len()]);
        }
        assert_eq!(read.bytes(0, 500_000, ALL).0, model.bytes[..500_000]);
    }
}

#[test]
fn a_paused_output_takes_no_more_until_it_is_cleared() {
    let scratch = Scratch::new("pause");
    let bounds = Bounds { kept: 100, lines: None, overflow: Overflow::Pause };
    let scribe = Scribe::start().unwrap();
    let output = output(&scratch.0, bounds, &scribe);
    assert_eq!(output.append(Stream::Stdout, &[b'x'; 60]), Room::Left(40));
    assert_eq!(output.append(Stream::Stdout, &[b'x'; 40]), Room::Full);
    wait(output.persisted(100));
    wait(async {
        let waiting = output.has_room();
        let clearing = async { output.clear() };
        tokio::join!(waiting, clearing)
    });
    assert_eq!(output.room(), 100);
    assert_eq!(output.totals().dropped_bytes, 100);
    assert_eq!(output.append(Stream::Stdout, b"later"), Room::Left(95));
    persist(&output);
    assert_eq!(output.read(0, 1000, ALL).skipped, 100);
    assert_eq!(output.bytes(0, 1000, ALL), (b"later".to_vec(), 105));
    assert_eq!(reopen(&scratch, None).bytes(0, 1000, ALL), (b"later".to_vec(), 105));
}

#[test]
fn an_output_over_its_limit_is_judged_and_still_read() {
    let scratch = Scratch::new("kill");
    let bounds = Bounds { kept: 100, lines: None, overflow: Overflow::Kill };
    let scribe = Scribe::start().unwrap();
    let output = output(&scratch.0, bounds, &scribe);
    assert!(matches!(output.append(Stream::Stdout, &[b'x'; 100]), Room::Left(_)));
    assert_eq!(output.append(Stream::Stdout, b"y"), Room::Exceeded);
    assert_eq!((output.bytes(0, 1000, ALL).0.len(), output.totals().dropped_bytes), (101, 0));
}

#[test]
fn clearing_deletes_the_files() {
    let scratch = Scratch::new("clear");
    let scribe = Scribe::start().unwrap();
    let output = output(&scratch.0, keep(1 << 20), &scribe);
    assert_ne!(output.append(Stream::Stdout, b"secret"), Room::Full);
    persist(&output);
    assert!(scratch.bytes() > 0);
    output.clear();
    assert!(scratch.segments("p_1").is_empty());
    assert_eq!(output.bytes(0, 100, ALL), (Vec::new(), 6));
}

#[test]
fn waiting_for_a_change_ends_with_a_byte_and_with_the_end() {
    let scribe = Scribe::start().unwrap();
    let output = Output::new(keep(100), None, &scribe);
    wait(async {
        let both = async { tokio::join!(output.changed(0), output.changed(0)) };
        tokio::join!(both, async { assert_eq!(output.append(Stream::Stderr, b"!"), Room::Left(512 << 10)) });
        tokio::join!(output.changed(1), async { output.close() });
        let late = tokio::time::timeout(Duration::from_secs(60), output.changed(1000)).await;
        assert!(late.is_ok());
    });
}
