//! `stockade attach`: a process live. One with a terminal is drawn by its broker (`broker::control::stream`); one with
//! pipes is shown as it writes. However we leave, by a key, a signal or the process's end, our terminal is as before.

use super::AttachArgs;
use super::find::{self, Place};
use super::logs::{gone, open};
use super::output::{Codes, Sink};
use crate::broker::control::client::Line;
use crate::broker::control::frame::{Kind, encode, read_waiting};
use crate::broker::control::message::{self, End, Process, Request};
use crate::broker::state::look::Found;
use crate::cli::say::{Complaint, printable};
use crate::cli::terminal::{self, Keys, Raw};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;
use std::io::{self, IsTerminal, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::time::Duration;

/// Ctrl-].
const LEAVE: u8 = 0x1d;
const CTRL_C: u8 = 3;

/// Half a line is shown after this.
const LULL: Duration = Duration::from_millis(100);

/// A screen beside the one with what was there before, empty.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[m\x1b[2J\x1b[H";
/// Back to it, with everything that a program may have wanted of keys and mouse undone.
const RESTORE: &[u8] = b"\x1b[m\x1b[?7h\x1b[?25h\x1b[?1l\x1b>\x1b[?2004l\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1049l";

pub fn attach(args: &AttachArgs) -> Result<u8, Complaint> {
    let (found, process) = match find::process(&find::brokers()?, &args.process)? {
        Place::Live(found, process) if process.is_running() => (found, process),
        Place::Live(_, process) => return Err(ended(&process.proc_id)),
        Place::Stored(process) => return Err(ended(&process.record.proc_id)),
    };
    if args.tmux {
        return super::tmux::open(&process.proc_id, if args.write { &["--write"] } else { &[] });
    }
    if process.terminal && !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        let message = format!("`{}` has a terminal and can be shown on a terminal only", process.proc_id);
        return Err(Complaint::new(message).hint("`stockade logs --follow` writes its output anywhere"));
    }
    Visit::begin(&found, &process, args)?.stay()
}

fn ended(proc_id: &str) -> Complaint {
    let hint = format!("`stockade logs {proc_id}` shows what it wrote");
    Complaint::not_found(format!("`{proc_id}` has ended")).hint(hint)
}

/// Whether something can be read; `None`: waits for it.
pub fn has_data(line: &mut Line, within: Option<Duration>) -> io::Result<bool> {
    if !line.from.buffer().is_empty() {
        return Ok(true);
    }
    let mut watched = [PollFd::new(line.to.as_fd(), PollFlags::POLLIN)];
    loop {
        match poll(&mut watched, patience(within)) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(count) => return Ok(count > 0),
        }
    }
}

fn patience(within: Option<Duration>) -> PollTimeout {
    within.and_then(|within| PollTimeout::try_from(within).ok()).unwrap_or(PollTimeout::NONE)
}

/// Why we leave.
enum Leave {
    /// We want to.
    Asked,
    Ended(End),
    Gone(Complaint),
}

struct Visit {
    proc_id: String,
    line: Line,
    signals: SignalFd,
    /// What keys do.
    keys: Role,
    /// Until our stdin ends.
    input_open: bool,
    window: Window,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Watches,
    Types,
}

/// Our side of the view. Dropping it gives the terminal back.
struct Window {
    sink: Sink<io::Stdout>,
    is_drawn: bool,
    _keys: Option<Raw>,
}

impl Drop for Window {
    fn drop(&mut self) {
        let _ = self.sink.finish();
        if self.is_drawn {
            let _ = io::stdout().write_all(RESTORE).and_then(|()| io::stdout().flush());
        }
    }
}

impl Window {
    fn open(process: &Process, role: Role) -> io::Result<Window> {
        let codes = if process.terminal { Codes::Kept } else { Codes::for_stdout() };
        let keys = match (process.terminal, io::stdin().is_terminal(), role) {
            (true, ..) => Some(Raw::enter()),
            (false, true, Role::Watches) => Some(Raw::enter_with(Keys::Unseen)),
            (false, true, Role::Types) => Some(Raw::enter_with(Keys::Lines { end: LEAVE })),
            (false, false, _) => None,
        };
        let mut window = Window { sink: Sink::new(io::stdout(), codes), is_drawn: process.terminal, _keys: keys };
        if window.is_drawn {
            window.sink.write(ENTER)?;
        }
        Ok(window)
    }
}

impl Visit {
    fn begin(found: &Found, process: &Process, args: &AttachArgs) -> Result<Visit, Complaint> {
        let signals = terminal::signals().map_err(io::Error::from)?;
        let (proc_id, size) = (process.proc_id.clone(), terminal::size());
        let request = Request::Attach(message::Attach { proc_id: proc_id.clone(), write: args.write, size });
        let line = open(found, &request)?;
        let keys = if args.write { Role::Types } else { Role::Watches };
        // Without a terminal there are no keys to leave with, and nothing to pass on unless asked.
        let input_open = args.write || io::stdin().is_terminal();
        let window = Window::open(process, keys)?;
        Ok(Visit { proc_id, line, signals, keys, input_open, window })
    }

    fn stay(mut self) -> Result<u8, Complaint> {
        let why = self.until_over();
        drop(self.window);
        match why {
            Leave::Asked => eprintln!("left `{}`; it goes on", self.proc_id),
            Leave::Ended(end) => eprintln!("`{}` has ended: {}", self.proc_id, in_words(&end)),
            Leave::Gone(complaint) => return Err(complaint),
        }
        Ok(0)
    }

    fn until_over(&mut self) -> Leave {
        loop {
            let turn = match self.wait() {
                Ok(ready) => self.serve(ready),
                Err(error) => Some(Leave::Gone(error.into())),
            };
            if let Some(why) = turn {
                return why;
            }
        }
    }

    /// Which of signals, broker and keys has something.
    fn wait(&mut self) -> io::Result<[bool; 3]> {
        if !self.line.from.buffer().is_empty() {
            return Ok([false, true, false]);
        }
        let stdin = io::stdin();
        let mut watched = vec![
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.line.to.as_fd(), PollFlags::POLLIN),
        ];
        if self.input_open {
            watched.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
        }
        let lull = self.window.sink.is_waiting().then_some(LULL);
        match poll(&mut watched, patience(lull)) {
            Err(Errno::EINTR) => return Ok([false; 3]),
            Err(errno) => return Err(errno.into()),
            Ok(0) => self.window.sink.settle()?,
            Ok(_) => {}
        }
        let ready = |index: usize| watched.get(index).and_then(PollFd::any).unwrap_or(false);
        Ok([ready(0), ready(1), ready(2)])
    }

    fn serve(&mut self, [signal, broker, keys]: [bool; 3]) -> Option<Leave> {
        let signalled = if signal { self.hear_signal() } else { None };
        signalled
            .or_else(|| if broker { self.hear_broker() } else { None })
            .or_else(|| if keys { self.hear_keys() } else { None })
    }

    fn hear_signal(&mut self) -> Option<Leave> {
        let number = self.signals.read_signal().ok().flatten().map_or(0, |info| info.ssi_signo as i32);
        match number {
            0 => None,
            libc::SIGWINCH => {
                let size = terminal::size();
                let [r0, r1] = size.rows.to_le_bytes();
                let [c0, c1] = size.cols.to_le_bytes();
                self.send(Kind::View, &[r0, r1, c0, c1])
            }
            _ => Some(Leave::Asked),
        }
    }

    fn hear_broker(&mut self) -> Option<Leave> {
        let written = match read_waiting(&mut self.line.from) {
            Ok((Kind::Output, bytes)) => self.window.sink.write(&bytes),
            Ok((Kind::Skipped, bytes)) => {
                let count = bytes.try_into().map_or(0, u64::from_le_bytes);
                self.window.sink.write(format!("\n[{count} bytes were dropped here]\n").as_bytes())
            }
            // A bell: the process does not take what is typed.
            Ok((Kind::Notice, _)) => io::stderr().write_all(b"\x07"),
            Ok((Kind::End, bytes)) => {
                let unknown = End { state: "exited".into(), reason: None, exit_code: None, signal: None };
                return Some(Leave::Ended(serde_json::from_slice(&bytes).unwrap_or(unknown)));
            }
            Ok(_) => Ok(()),
            // All that we had to say was taken.
            Err(_) if !self.input_open && self.keys == Role::Types => return Some(Leave::Asked),
            Err(error) => return Some(Leave::Gone(gone(&error))),
        };
        written.err().map(|_| Leave::Asked)
    }

    fn hear_keys(&mut self) -> Option<Leave> {
        let mut bytes = [0; 4096];
        let got = match nix::unistd::read(io::stdin(), &mut bytes) {
            Err(Errno::EINTR | Errno::EAGAIN) => return None,
            Ok(got) if got > 0 => got,
            // A terminal that hung up, or Ctrl-D. Of a pipe, the broker first takes what came before.
            _ if self.keys == Role::Watches || io::stdin().is_terminal() => return Some(Leave::Asked),
            _ => {
                self.input_open = false;
                let _ = self.line.to.shutdown(Shutdown::Write);
                return None;
            }
        };
        let bytes = &bytes[..got];
        match self.keys {
            // Only keys: what a terminal sends by itself, or a paste, begins otherwise or is longer.
            Role::Watches if matches!(bytes, [LEAVE | CTRL_C | b'q']) => Some(Leave::Asked),
            Role::Watches if bytes.contains(&LEAVE) => Some(Leave::Asked),
            Role::Watches => None,
            Role::Types => {
                let until = bytes.iter().position(|byte| *byte == LEAVE && io::stdin().is_terminal());
                let sent = self.send(Kind::Input, &bytes[..until.unwrap_or(got)]);
                sent.or_else(|| until.map(|_| Leave::Asked))
            }
        }
    }

    fn send(&mut self, kind: Kind, bytes: &[u8]) -> Option<Leave> {
        if bytes.is_empty() {
            return None;
        }
        self.line.to.write_all(&encode(kind, bytes)).err().map(|error| Leave::Gone(gone(&error)))
    }
}

fn in_words(end: &End) -> String {
    let reason = printable(end.reason.as_deref().unwrap_or("unknown"));
    match (end.exit_code, end.signal) {
        (Some(code), _) => format!("{reason}, exit code {code}"),
        (None, Some(signal)) => format!("{reason}, signal {signal}"),
        (None, None) => reason,
    }
}
