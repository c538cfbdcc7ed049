//! What happened on a terminal, as a file that `asciinema play` shows: asciicast, version 2.
//!
//! A header line, then one line per event, `[seconds, kind, data]`. The recording is for people and never in the way
//! of what it records: it is bounded, and an error ends it and is remembered.

use super::render::{Rest, text, whole_characters};
use crate::sys::terminal::Size;
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Hours of an ordinary session; a program that floods its terminal must not fill the disk.
const MAX_BYTES: u64 = 64 << 20;

/// A recording that is being written.
#[derive(Debug)]
pub struct Transcript {
    file: File,
    began: Instant,
    bound: u64,
    written: u64,
    state: State,
    /// Beginnings of characters whose rest has not come yet.
    output: Vec<u8>,
    input: Vec<u8>,
}

#[derive(Debug)]
enum State {
    Recording,
    /// The bound was reached.
    Full,
    Failed(io::Error),
}

impl Transcript {
    /// Begins a recording in a new file that only its owner can read.
    pub fn create(path: &Path, size: Size, command: &str, title: Option<&str>) -> io::Result<Self> {
        Transcript::bounded(path, size, command, title, MAX_BYTES)
    }

    fn bounded(path: &Path, size: Size, command: &str, title: Option<&str>, bound: u64) -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let timestamp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut header = json!({
            "version": 2,
            "width": size.cols,
            "height": size.rows,
            "timestamp": timestamp,
            "command": command,
        });
        if let Some(title) = title {
            header["title"] = title.into();
        }
        let header = format!("{header}\n");
        file.write_all(header.as_bytes())?;
        Ok(Transcript {
            file,
            began: Instant::now(),
            bound,
            written: header.len() as u64,
            state: State::Recording,
            output: Vec::new(),
            input: Vec::new(),
        })
    }

    /// What the process wrote.
    pub fn output(&mut self, bytes: &[u8]) {
        let ready = ready(&mut self.output, bytes);
        self.event("o", &ready);
    }

    /// What was typed.
    pub fn input(&mut self, bytes: &[u8]) {
        let ready = ready(&mut self.input, bytes);
        self.event("i", &ready);
    }

    pub fn resize(&mut self, size: Size) {
        self.event("r", &format!("{}x{}", size.cols, size.rows));
    }

    /// Why nothing more is recorded, when that is an error.
    pub fn error(&self) -> Option<&io::Error> {
        match &self.state {
            State::Failed(error) => Some(error),
            State::Recording | State::Full => None,
        }
    }

    fn event(&mut self, kind: &str, data: &str) {
        if !matches!(self.state, State::Recording) || data.is_empty() {
            return;
        }
        let line = self.line(kind, data);
        if self.written + line.len() as u64 > self.bound {
            let end = self.line("m", &format!("the recording ends here: it has its {} bytes", self.bound));
            self.append(&end);
            if let State::Recording = self.state {
                self.state = State::Full;
            }
            return;
        }
        self.append(&line);
    }

    fn line(&self, kind: &str, data: &str) -> String {
        let seconds = self.began.elapsed().as_micros() as f64 / 1e6;
        format!("{}\n", json!([seconds, kind, data]))
    }

    /// One write per event: whoever plays the file while it grows finds whole lines.
    fn append(&mut self, line: &str) {
        match self.file.write_all(line.as_bytes()) {
            Ok(()) => self.written += line.len() as u64,
            Err(error) => self.state = State::Failed(error),
        }
    }
}

impl Drop for Transcript {
    /// Characters that were cut by the end of the process are shown as what they are.
    fn drop(&mut self) {
        for (kind, bytes) in [("o", std::mem::take(&mut self.output)), ("i", std::mem::take(&mut self.input))] {
            self.event(kind, &text(&bytes).text);
        }
    }
}

/// The text of all that is waiting, without a character cut at its end, which waits on.
fn ready(waiting: &mut Vec<u8>, bytes: &[u8]) -> String {
    waiting.extend_from_slice(bytes);
    let whole = whole_characters(waiting, Rest::MayCome);
    let ready = text(&waiting[..whole]).text;
    waiting.drain(..whole);
    ready
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::path::PathBuf;

    const SIZE: Size = Size { rows: 24, cols: 80 };

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("transcript-{}-{name}.cast", std::process::id()))
    }

    /// Every line parsed, and the file removed.
    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).expect("the recording");
        std::fs::remove_file(path).expect("an own file");
        assert!(text.ends_with('\n'));
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    #[test]
    fn a_recording_is_a_header_and_events_in_order() {
        let path = place("order");
        let mut transcript = Transcript::create(&path, SIZE, "bash -i", Some("demo")).expect("a new file");
        transcript.output(b"\x1b[31m$ \"quoted\"\r\n\0");
        transcript.input(b"ls\n");
        transcript.resize(Size { rows: 40, cols: 120 });
        transcript.output(b"");
        assert!(Transcript::create(&path, SIZE, "bash", None).is_err(), "a recording is never written over");
        drop(transcript);
        let lines = lines(&path);
        let header = &lines[0];
        assert_eq!((&header["version"], &header["width"], &header["height"]), (&json!(2), &json!(80), &json!(24)));
        assert_eq!((&header["command"], &header["title"]), (&json!("bash -i"), &json!("demo")));
        assert!(header["timestamp"].as_u64().is_some_and(|seconds| seconds > 1_700_000_000));
        let events: Vec<(&Value, &Value)> = lines[1..].iter().map(|line| (&line[1], &line[2])).collect();
        let expected =
            [("o", "\u{1b}[31m$ \"quoted\"\r\n\0"), ("i", "ls\n"), ("r", "120x40")].map(|(k, d)| (json!(k), json!(d)));
        assert_eq!(events, expected.iter().map(|(kind, data)| (kind, data)).collect::<Vec<_>>());
        let times: Vec<f64> = lines[1..].iter().map(|line| line[0].as_f64().expect("seconds")).collect();
        assert!(times.is_sorted() && times[0] >= 0.0 && times[2] < 60.0, "{times:?}");
        assert!(lines[1..].iter().all(|line| line.as_array().is_some_and(|parts| parts.len() == 3)));
    }

    #[test]
    fn a_character_split_between_two_chunks_is_whole() {
        let path = place("split");
        let mut transcript = Transcript::create(&path, SIZE, "x", None).expect("a new file");
        for byte in "a\u{20ac}\u{1f600}b".as_bytes() {
            transcript.output(&[*byte]);
            transcript.input(b"");
        }
        transcript.output(b"\xff\xe2\x82");
        drop(transcript);
        let data: String = lines(&path)[1..].iter().map(|line| line[2].as_str().expect("text").to_owned()).collect();
        assert_eq!(data, "a\u{20ac}\u{1f600}b\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_recording_is_bounded_and_says_where_it_ends() {
        let path = place("bounded");
        let mut transcript = Transcript::bounded(&path, SIZE, "yes", None, 1000).expect("a new file");
        (0..100).for_each(|_| transcript.output("y\n".repeat(20).as_bytes()));
        transcript.resize(SIZE);
        assert!(transcript.error().is_none());
        drop(transcript);
        assert!(std::fs::metadata(&path).expect("the recording").len() < 1100);
        let lines = lines(&path);
        let last = &lines[lines.len() - 1];
        assert_eq!((&last[1], &last[2]), (&json!("m"), &json!("the recording ends here: it has its 1000 bytes")));
        assert_eq!(lines.iter().filter(|line| line[1] == "m").count(), 1);
    }

    #[test]
    fn an_error_is_remembered_and_ends_the_recording_only() {
        let path = place("error");
        let mut transcript = Transcript::create(&path, SIZE, "x", None).expect("a new file");
        std::fs::remove_file(&path).expect("an own file");
        transcript.file = OpenOptions::new().write(true).open("/dev/full").expect("the device that is always full");
        transcript.output(b"lost");
        transcript.output(b"lost too");
        assert_eq!(transcript.error().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    }

    #[test]
    fn only_its_owner_can_read_a_recording() {
        use std::os::unix::fs::PermissionsExt;
        let path = place("mode");
        let transcript = Transcript::create(&path, SIZE, "x", None).expect("a new file");
        let mode = std::fs::metadata(&path).expect("the recording").permissions().mode();
        assert_eq!(mode & 0o077, 0);
        drop(transcript);
        lines(&path);
    }
}
