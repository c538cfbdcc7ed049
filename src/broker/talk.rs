//! `proc_send`, `proc_signal`, `proc_resize`: what is said to a process.

use super::answer::{Sent, State};
use super::input::Line;
use super::managed::Managed;
use super::read::Wait;
use super::refused::{Code, Refused};
use super::registry::shown;
use super::request::Send;
use super::{Broker, Progress};
use crate::sys::terminal::Size;
use std::sync::Arc;

impl Broker {
    /// Writes to a process and, if asked to, waits for what it answers: only what comes after counts as a match.
    pub async fn send(&self, asked: Send, progress: Option<&Progress>) -> Result<Sent, Refused> {
        let managed = self.registry.get(&asked.proc_id)?;
        let mut input = managed.input.lock().await;
        if !managed.is_running() {
            return Err(not_running(&managed));
        }
        if input.is_closed() {
            let message = format!("the input of `{}` has been closed; nothing can be sent any more", managed.id);
            return Err(Refused::new(Code::ProcessNotRunning, message));
        }
        let said_at = managed.output.totals().total_bytes;
        let written = input.write(&asked.input, &managed.activity).await;
        let line = if asked.input.last().is_none_or(|last| *last == b'\n') { Line::Whole } else { Line::Half };
        if let Some(face) = &managed.face {
            face.said(&asked.input[..written.bytes]);
        }
        let ended = !asked.eof || (written.complete && input.end(line, &managed.activity).await);
        drop(input);
        let heard = match asked.wait.is_zero() {
            true => None,
            false => {
                let wait = Wait {
                    until: asked.until,
                    searched_from: said_at,
                    strip_ansi: asked.strip_ansi,
                    ..Wait::new(asked.wait, self.inline_bytes())
                };
                Some(self.hear(&managed, wait, progress).await)
            }
        };
        Ok(Sent { bytes_written: written.bytes, acknowledged: written.complete && ended, heard })
    }

    pub async fn signal(&self, proc_id: &str, signal: i32) -> Result<State, Refused> {
        let managed = self.registry.get(proc_id)?;
        if !managed.signal(signal) {
            return Err(not_running(&managed));
        }
        // A signal that kills is seen to have killed.
        if signal == libc::SIGKILL {
            let _ = tokio::time::timeout(std::time::Duration::from_secs(1), managed.until_ended()).await;
        }
        Ok(managed.state())
    }

    pub async fn resize(&self, proc_id: &str, size: Size) -> Result<(), Refused> {
        let managed = self.registry.get(proc_id)?;
        let Some(face) = &managed.face else {
            return Err(Refused::invalid(format!("`{}` has no terminal; start it with `pty: true`", shown(proc_id))));
        };
        if !managed.is_running() {
            return Err(not_running(&managed));
        }
        face.resize(&managed.output, size).await.map_err(|errno| Refused::new(Code::IoError, errno.desc()))
    }
}

pub(super) fn not_running(managed: &Arc<Managed>) -> Refused {
    let how = managed.end().map_or("", |end| end.reason.name());
    let message = format!("`{}` has ended ({how}); its output can still be read", managed.id);
    Refused::new(Code::ProcessNotRunning, message)
}
