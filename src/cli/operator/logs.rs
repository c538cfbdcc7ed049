//! `stockade logs`: what a process wrote, from its broker or from disk, and its recording.

use super::find::{self, Broker, Place};
use super::output::{Codes, Sink};
use super::{LogsArgs, StreamName};
use crate::broker::control::client::Line;
use crate::broker::control::frame::{Kind, MAX_FRAME, read_waiting};
use crate::broker::control::message::{Answer, Logs, Request, Stream};
use crate::broker::output::Output;
use crate::broker::request::Filter;
use crate::broker::state::look::Found;
use crate::cli::say::Complaint;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// After this, half a line is shown as it is.
const LULL: Duration = Duration::from_millis(100);

/// How much is read for the last lines.
const TAIL_BYTES: usize = 8 << 20;

pub fn logs(args: &LogsArgs) -> Result<u8, Complaint> {
    let brokers = find::brokers()?;
    let place = find::process(&brokers, &args.process)?;
    if let Some(to) = &args.cast {
        return export(&brokers, &place, to);
    }
    let codes = if args.raw { Codes::Kept } else { Codes::for_stdout() };
    let mut sink = Sink::new(io::stdout().lock(), codes);
    let shown = match &place {
        Place::Live(found, process) => follow(found, &process.proc_id, args, &mut sink),
        Place::Stored(process) => read(&process.output, args, &mut sink).map_err(Failure::Ours),
    };
    match shown.and_then(|()| sink.finish().map_err(Failure::Ours)) {
        Ok(()) => Ok(0),
        // Whoever read us has seen enough.
        Err(Failure::Ours(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(0),
        Err(Failure::Ours(error)) => Err(error.into()),
        Err(Failure::Theirs(complaint)) => Err(complaint),
    }
}

/// Who is to blame.
enum Failure {
    /// Our stdout.
    Ours(io::Error),
    Theirs(Complaint),
}

fn follow(found: &Found, proc_id: &str, args: &LogsArgs, sink: &mut Sink<impl Write>) -> Result<(), Failure> {
    let stream = match args.stream {
        None => Stream::All,
        Some(StreamName::Stdout) => Stream::Stdout,
        Some(StreamName::Stderr) => Stream::Stderr,
    };
    let request = Request::Logs(Logs { proc_id: proc_id.into(), stream, tail: args.tail, follow: args.follow });
    let mut line = open(found, &request).map_err(Failure::Theirs)?;
    loop {
        let lull = sink.is_waiting().then_some(LULL);
        if !super::attach::has_data(&mut line, lull).map_err(|error| Failure::Theirs(gone(&error)))? {
            sink.settle().map_err(Failure::Ours)?;
            super::attach::has_data(&mut line, None).map_err(|error| Failure::Theirs(gone(&error)))?;
        }
        match read_waiting(&mut line.from).map_err(|error| Failure::Theirs(gone(&error)))? {
            (Kind::Output, bytes) => sink.write(&bytes).map_err(Failure::Ours)?,
            (Kind::Skipped, bytes) => skipped(bytes.try_into().map_or(0, u64::from_le_bytes)),
            (Kind::End, _) => return Ok(()),
            _ => {}
        }
    }
}

/// A conversation that goes on after the answer.
pub fn open(found: &Found, request: &Request) -> Result<Line, Complaint> {
    let mut line = Line::connect(&found.path).map_err(|error| gone(&error))?;
    match line.ask(request, Duration::ZERO).map_err(|error| gone(&error))? {
        Answer::Opened(_) => {}
        Answer::Refused { code, message } if code == "PROCESS_NOT_FOUND" => return Err(Complaint::not_found(message)),
        Answer::Refused { message, .. } => return Err(Complaint::new(message)),
        _ => return Err(Complaint::new("the broker answers something else")),
    }
    line.to.set_read_timeout(None)?;
    line.to.set_write_timeout(None)?;
    Ok(line)
}

pub fn gone(error: &io::Error) -> Complaint {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            Complaint::new("the broker is gone, and its processes with it").hint("`stockade logs` shows what it left")
        }
        _ => Complaint::new(format!("the broker: {error}")),
    }
}

fn skipped(bytes: u64) {
    eprintln!("stockade: {bytes} bytes were dropped here: more than `limits.output_bytes` keeps");
}

/// What a broker that is gone left on disk.
fn read(output: &Output, args: &LogsArgs, sink: &mut Sink<impl Write>) -> io::Result<()> {
    let filter = match args.stream {
        None => Filter::All,
        Some(StreamName::Stdout) => Filter::Stdout,
        Some(StreamName::Stderr) => Filter::Stderr,
    };
    let mut at = match args.tail {
        None => 0,
        Some(0) => u64::MAX,
        Some(lines) => output.tail_lines(usize::try_from(lines).unwrap_or(usize::MAX), filter, TAIL_BYTES).start,
    };
    // It ends where it can be read no further; what the journal promises beyond that is lost.
    while at < output.totals().total_bytes {
        let page = output.read(at, MAX_FRAME, filter);
        if page.skipped > 0 {
            skipped(page.skipped);
        }
        for chunk in &page.chunks {
            sink.write(&chunk.data)?;
        }
        if page.next <= at {
            break;
        }
        at = page.next;
    }
    Ok(())
}

/// Copies the recording; it may hold what was typed, so the file is its owner's alone.
fn export(brokers: &[Broker], place: &Place, to: &Path) -> Result<u8, Complaint> {
    let proc_id = match place {
        Place::Live(_, process) => &process.proc_id,
        Place::Stored(process) => &process.record.proc_id,
    };
    let recording = brokers.iter().find_map(|broker| broker.found.recording(proc_id).ok());
    let Some(mut recording) = recording else {
        let hint = "recordings are made of processes started with `pty` and `record` true";
        return Err(Complaint::not_found(format!("`{proc_id}` was not recorded")).hint(hint));
    };
    if to == Path::new("-") {
        return match io::copy(&mut recording, &mut io::stdout().lock()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(0),
        };
    }
    let about = |error: io::Error| Complaint::new(format!("`{}`: {error}", to.display()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to).map_err(about)?;
    io::copy(&mut recording, &mut file).map_err(about)?;
    Ok(0)
}
