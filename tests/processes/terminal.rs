//! A person at a terminal, played by the test: a real pseudo-terminal with stockade in it.

use crate::support::{Yard, stockade};
use nix::sys::termios::{LocalFlags, Termios, tcgetattr};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, SlavePty, native_pty_system};
use std::io::{Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Person {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    /// Kept, so that the terminal and its modes outlive the program.
    _slave: Box<dyn SlavePty + Send>,
    keyboard: Box<dyn Write + Send>,
    screen: Receiver<Vec<u8>>,
    seen: String,
    /// Its directories must be there as long as the program is.
    yard: Option<Yard>,
}

impl Person {
    /// Starts `stockade run FLAGS -- ARGV` in a terminal of 24 rows and 80 columns.
    pub fn starts(yard: Yard, flags: &[&str], argv: &[&str]) -> Self {
        let plain = yard.command();
        let mut command = CommandBuilder::new(stockade());
        command.args(plain.get_args());
        command.args(flags);
        command.arg("--");
        command.args(argv);
        command.cwd(yard.workspace.path());
        let mut person = Self::starts_command(command);
        person.yard = Some(yard);
        person
    }

    /// Starts any program in a terminal: the control.
    pub fn starts_outside(argv: &[&str]) -> Self {
        let mut command = CommandBuilder::new(argv[0]);
        command.args(&argv[1..]);
        Self::starts_command(command)
    }

    fn starts_command(mut command: CommandBuilder) -> Self {
        command.env("TERM", "xterm");
        let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let child = pair.slave.spawn_command(command).expect("it starts");
        let keyboard = pair.master.take_writer().expect("a keyboard");
        let mut reader = pair.master.try_clone_reader().expect("a screen");
        let (show, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(got) = reader.read(&mut buffer) {
                if got == 0 || show.send(buffer[..got].to_vec()).is_err() {
                    break;
                }
            }
        });
        Person { child, master: pair.master, _slave: pair.slave, keyboard, screen, seen: String::new(), yard: None }
    }

    /// Waits until the text is on the screen, after whatever was waited for before; returns what came before it.
    pub fn sees(&mut self, text: &str) -> String {
        let seen = self.sees_within(text, PATIENCE);
        seen.unwrap_or_else(|| panic!("`{text}` never came; on the screen: {:?}", self.seen))
    }

    /// Types the keys until the text comes: a shell that is just about to read takes a signal only after the next key.
    pub fn types_until(&mut self, keys: &str, text: &str) {
        for _ in 0..30 {
            self.types(keys);
            if self.sees_within(text, Duration::from_secs(1)).is_some() {
                return;
            }
        }
        panic!("`{text}` never came; on the screen: {:?}", self.seen);
    }

    fn sees_within(&mut self, text: &str, patience: Duration) -> Option<String> {
        let until = Instant::now() + patience;
        loop {
            if let Some(at) = self.seen.find(text) {
                let before = self.seen[..at].to_owned();
                self.seen.drain(..at + text.len());
                return Some(before);
            }
            let left = until.saturating_duration_since(Instant::now());
            let bytes = self.screen.recv_timeout(left).ok()?;
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    pub fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).and_then(|()| self.keyboard.flush()).expect("a keyboard");
    }

    pub fn resizes(&self, rows: u16, cols: u16) {
        self.master.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).expect("a size");
    }

    pub fn sends(&self, signal: nix::sys::signal::Signal) {
        let pid = self.child.process_id().expect("a PID") as i32;
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).expect("it is there");
    }

    /// The exit code.
    pub fn waits(&mut self) -> u32 {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.exit_code();
            }
            assert!(Instant::now() < until, "it never ended; on the screen: {:?}", self.seen);
            // Not to wait for anything in particular: portable-pty has no wait with a deadline.
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }

    pub fn modes(&self) -> Termios {
        self.terminal(|terminal| tcgetattr(terminal).expect("modes"))
    }

    /// Whether each key is passed on unseen.
    pub fn is_raw(&self) -> bool {
        !self.modes().local_flags.intersects(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG)
    }

    fn terminal<T>(&self, look: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        let path = self.master.tty_name().expect("a name");
        let file = std::fs::File::options().read(true).write(true).open(path).expect("the terminal");
        look(std::os::fd::AsFd::as_fd(&OwnedFd::from(file)))
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        drop(self.child.kill());
    }
}
