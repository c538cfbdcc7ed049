//! Moving bytes between our standard streams and a command's: one thread per stream.

use crate::broker::capture::Capture;
use crate::broker::process::Activity;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// After the end, how long output may wait for a reader who stopped reading.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Between two keys that say that input has ended.
const END_PAUSE: Duration = Duration::from_millis(300);

/// One move of bytes. A pipe holds 64 KiB.
const CHUNK: usize = 64 << 10;

/// The command's three ends, and ours.
pub fn pipes() -> std::io::Result<([OwnedFd; 3], [OwnedFd; 3])> {
    let (in_read, in_write) = std::io::pipe()?;
    let (out_read, out_write) = std::io::pipe()?;
    let (err_read, err_write) = std::io::pipe()?;
    Ok(([in_read.into(), out_write.into(), err_write.into()], [in_write.into(), out_read.into(), err_read.into()]))
}

/// Moves our stdin to the command until either ends. Left behind when the command ends first. A terminal does not end
/// with its writer, so it is sent the key that says so.
pub fn feed(to: OwnedFd, end_key: Option<u8>, activity: &Arc<Activity>) {
    let (mut to, activity) = (File::from(to), Arc::clone(activity));
    std::thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        while let Ok(got) = std::io::stdin().lock().read(&mut buffer) {
            if got == 0 || to.write_all(&buffer[..got]).is_err() {
                break;
            }
            activity.touch();
        }
        // Again and again, as a pipe at its end answers every read with its end; the first may come too early, or
        // after half a line, where it only hands over what is there.
        while end_key.is_some_and(|key| to.write_all(&[key]).is_ok()) {
            std::thread::sleep(END_PAUSE);
        }
    });
}

/// The threads that move a command's output to ours.
#[derive(Debug)]
pub struct Movers {
    activity: Arc<Activity>,
    started: usize,
    ended: Receiver<Option<Error>>,
    end: Sender<Option<Error>>,
}

impl Movers {
    pub fn new(activity: &Arc<Activity>) -> Self {
        let (end, ended) = channel();
        Movers { activity: Arc::clone(activity), started: 0, ended, end }
    }

    /// Moves until the last writer is gone.
    pub fn start(&mut self, from: OwnedFd, mut to: impl Write + Send + 'static) {
        let (mut from, activity, end) = (File::from(from), Arc::clone(&self.activity), self.end.clone());
        self.started += 1;
        std::thread::spawn(move || {
            let mut buffer = vec![0; CHUNK];
            // A terminal whose last user is gone answers EIO: that is its end of file.
            let mut lost = None;
            while let Ok(got) = from.read(&mut buffer) {
                if got == 0 {
                    break;
                }
                if let Err(error) = to.write_all(&buffer[..got]).and_then(|()| to.flush()) {
                    // A reader who left knows that he did; the command is told by SIGPIPE.
                    lost = Some(error).filter(|error| error.kind() != ErrorKind::BrokenPipe);
                    break;
                }
                activity.touch();
            }
            let _ = end.send(lost);
        });
    }

    /// Everything is dead, so the pipes end; only a reader of ours can still hold us up. Returns why output was lost.
    pub fn last_words(self) -> Option<Error> {
        let until = Instant::now() + LAST_WORDS;
        let mut lost = None;
        for _ in 0..self.started {
            match self.ended.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(error) => lost = lost.or(error),
                Err(_) => break,
            }
        }
        lost
    }
}

/// Keeps a bounded part of a stream.
pub fn capture(from: OwnedFd, limit: usize, activity: &Arc<Activity>) -> JoinHandle<Capture> {
    let (mut from, activity) = (File::from(from), Arc::clone(activity));
    std::thread::spawn(move || {
        let (mut kept, mut buffer) = (Capture::new(limit), vec![0; CHUNK]);
        while let Ok(got) = from.read(&mut buffer) {
            if got == 0 {
                break;
            }
            kept.push(&buffer[..got]);
            activity.touch();
        }
        kept
    })
}
