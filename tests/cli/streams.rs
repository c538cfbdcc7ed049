//! Standard streams: bytes pass unchanged and uncapped, in both directions, and ends of file are seen.

use crate::ends::{marker, nothing_is_left, wait_for};
use crate::support::Yard;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn input_reaches_the_command_and_ends() {
    let yard = Yard::new();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    assert_eq!(yard.run_with_input(&["wc", "-c"], &bytes).stdout, "3000000\n");
    assert_eq!(yard.run_with_input(&["cat"], b"one\ntwo").stdout, "one\ntwo");
    assert_eq!(yard.run_with_input(&["cat"], b"").stdout, "", "end of file at once");
    assert_eq!(yard.run(&["cat"]).stdout, "", "no input at all");
}

#[test]
fn input_that_nobody_reads_holds_nothing_up() {
    let outcome = Yard::new().run_with_input(&["true"], &vec![0; 10_000_000]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, ""));
}

#[test]
fn fifty_megabytes_pass_unchanged_on_both_streams() {
    const LINES: u32 = 6_400_000;
    let output = Yard::new()
        .command()
        .args(["--", "/bin/bash", "-c", &format!("seq 1 {LINES} & seq 1 {LINES} | tr 0-9 a-j >&2; wait")])
        .output()
        .expect("stockade starts");
    assert_eq!(output.status.code(), Some(0));
    let mut expected = Vec::with_capacity(output.stdout.len());
    for line in 1..=LINES {
        expected.extend_from_slice(line.to_string().as_bytes());
        expected.push(b'\n');
    }
    assert!(expected.len() > 50_000_000 - 3_000_000, "{}", expected.len());
    assert!(output.stdout == expected, "stdout: {} of {} bytes", output.stdout.len(), expected.len());
    let letters: Vec<u8> =
        expected.iter().map(|byte| if *byte == b'\n' { *byte } else { byte - b'0' + b'a' }).collect();
    assert!(output.stderr == letters, "stderr: {} of {} bytes", output.stderr.len(), letters.len());
}

#[test]
fn a_command_that_exits_at_once_loses_no_output() {
    let yard = Yard::new();
    for run in 0..30 {
        let outcome = yard.shell("head -c 60000 /dev/zero | tr '\\0' x; exec >&-; exit 4");
        assert_eq!((outcome.code, outcome.stdout.len()), (4, 60_000), "run {run}");
    }
}

#[test]
fn bytes_are_not_text_and_pass_unchanged() {
    let script = "for i in $(seq 0 255); do printf \"\\\\x$(printf %02x $i)\"; done";
    let output = Yard::new().command().args(["--", "/bin/bash", "-c", script]).output().expect("stockade starts");
    assert_eq!(output.stdout, (0..=255).collect::<Vec<u8>>());
}

#[test]
fn a_reader_who_leaves_ends_the_command_with_sigpipe() {
    let (yard, marker) = (Yard::new(), marker());
    let mut command = yard.command();
    let mut child = command.args(["--", "yes", &marker]).stdout(Stdio::piped()).spawn().expect("stockade starts");
    let broker = child.id();
    let mut line = String::new();
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    reader.read_line(&mut line).expect("a line");
    assert_eq!(line.trim(), marker);
    drop(reader);
    assert_eq!(wait_for(&mut child, Duration::from_secs(10)).code(), Some(128 + libc::SIGPIPE));
    nothing_is_left(&yard, broker, &marker);
}

#[test]
fn output_arrives_while_the_command_still_runs() {
    let yard = Yard::new();
    let mut command = yard.command();
    command.args(["--", "/bin/bash", "-c", "echo first; read line; echo \"got $line\""]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("stockade starts");
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    assert_eq!(line, "first\n");
    let mut input = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, b"answer\n").expect("it reads");
    let mut rest = String::new();
    reader.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "got answer\n");
    assert_eq!(wait_for(&mut child, Duration::from_secs(10)).code(), Some(0));
}
