//! An operator at a real terminal.

use crate::desk::{Desk, soon};
use portable_pty::{Child, CommandBuilder, MasterPty, PtyPair, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use stockade::broker::screen::Terminal;
use stockade::sys::terminal::Size;

/// What leaves an attached view: Ctrl-].
pub const LEAVE: &[u8] = &[0x1d];

/// `stockade …` at a terminal of its own.
pub struct Seat {
    pair: PtyPair,
    pub child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    printed: Arc<Mutex<Vec<u8>>>,
    /// How the terminal was set before.
    before: String,
    size: Size,
}

impl Seat {
    pub fn take(desk: &Desk, words: &[&str], size: Size) -> Seat {
        let of = PtySize { rows: size.rows, cols: size.cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(of).expect("a terminal");
        let mut command = CommandBuilder::new(crate::support::stockade());
        command.args(words);
        command.env("XDG_STATE_HOME", desk.home());
        command.cwd(desk.workspace.path());
        let before = settings(&*pair.master);
        let child = pair.slave.spawn_command(command).expect("stockade starts");
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let keys = pair.master.take_writer().expect("a writer");
        let printed = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&printed);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(got @ 1..) = reader.read(&mut bytes) {
                into.lock().expect("no panic").extend_from_slice(&bytes[..got]);
            }
        });
        Seat { pair, child, keys, printed, before, size }
    }

    pub fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).and_then(|()| self.keys.flush()).expect("the terminal takes keys");
    }

    pub fn resize(&mut self, size: Size) {
        self.size = size;
        let of = PtySize { rows: size.rows, cols: size.cols, pixel_width: 0, pixel_height: 0 };
        self.pair.master.resize(of).expect("a size");
    }

    /// Everything printed so far.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.printed.lock().expect("no panic")).into_owned()
    }

    /// What a person sees.
    pub fn screen(&self) -> String {
        let mut terminal = Terminal::new(self.size);
        terminal.feed(&self.printed.lock().expect("no panic"));
        terminal.show().lines.join("\n")
    }

    pub fn sees(&self, text: &str) {
        soon(&format!("`{text}` on the screen: {:?}", self.raw()), || self.screen().contains(text));
    }

    /// Waits until it has ended, with the terminal as it was; returns the exit code.
    pub fn is_left(&mut self) -> u32 {
        let mut code = None;
        soon("the end of the view", || {
            code = self.child.try_wait().expect("a child").map(|status| status.exit_code());
            code.is_some()
        });
        assert_eq!(settings(&*self.pair.master), self.before, "the terminal is set as before");
        code.unwrap_or(u32::MAX)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        drop(self.child.kill());
    }
}

fn settings(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios().expect("a terminal"))
}
