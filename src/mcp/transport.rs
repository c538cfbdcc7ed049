//! The transport that rmcp speaks through: lines in, lines out, and every mistake answered before rmcp sees it.
//!
//! It also keeps the door. A client of the 2026-07-28 protocol says in each request's `_meta` which version it speaks;
//! one of the versions before opens with `initialize`, once. rmcp's own entry gives up on a first message that is
//! neither; here such a message gets an error and the next one is read.

use super::framing::{Framed, Framing, LONGEST_LINE};
use super::json::{self, Fault};
use super::ledger::Ledger;
use super::message::{self, Message};
use super::outbox::Outbox;
use super::stdio::Input;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, GetMeta, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;

/// Asked of the kernel at once: what a pipe holds by default.
const STEP: usize = 64 << 10;

/// The length of the line a request came in, kept with the request: what it may cost to let it wait.
#[derive(Debug, Clone, Copy)]
pub struct LineBytes(pub usize);

#[derive(Debug)]
pub struct Lines {
    input: Input,
    /// Outside of `framing`, so that a read given up half-way leaves nothing behind.
    step: Box<[u8]>,
    framing: Framing,
    door: Door,
    outbox: Arc<Outbox>,
    ledger: Arc<Ledger>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    /// No `initialize` yet.
    Closed,
    Open,
}

impl Lines {
    pub fn new(input: Input, outbox: Arc<Outbox>, ledger: Arc<Ledger>) -> Self {
        let step = vec![0; STEP].into_boxed_slice();
        Lines { input, step, framing: Framing::default(), door: Door::Closed, outbox, ledger }
    }

    fn take(&mut self, framed: Framed) -> Option<ClientJsonRpcMessage> {
        self.read(framed).unwrap_or_else(|fault| {
            tracing::debug!(code = fault.code.0, "message refused");
            self.outbox.push(fault.line());
            None
        })
    }

    fn read(&mut self, framed: Framed) -> Result<Option<ClientJsonRpcMessage>, Fault> {
        let Framed::Line(line) = framed else {
            let message = format!("the message is longer than {LONGEST_LINE} bytes");
            return Err(Fault::new(None, ErrorCode::INVALID_REQUEST, message));
        };
        match message::read(json::parse(&line)?)? {
            Message::Nothing => Ok(None),
            Message::Notification(notification) => Ok(Some(JsonRpcMessage::notification(notification))),
            Message::Cancel(theirs) => {
                let ours = self.ledger.canceled(&theirs);
                Ok(ours.map(|ours| JsonRpcMessage::notification(message::cancellation(ours))))
            }
            Message::Request(theirs, mut request) => {
                let refuse = |message: &str| Fault::new(Some(theirs.clone()), ErrorCode::INVALID_REQUEST, message);
                self.pass(&request).map_err(refuse)?;
                let ours = self.ledger.enter(&theirs);
                let ours = ours.ok_or_else(|| refuse("a request with this id is still being answered"))?;
                if let ClientRequest::CallToolRequest(call) = request.as_mut() {
                    call.extensions.insert(LineBytes(line.len()));
                }
                Ok(Some(JsonRpcMessage::request(*request, ours)))
            }
        }
    }

    /// Whether a request may come in now.
    fn pass(&mut self, request: &ClientRequest) -> Result<(), &'static str> {
        match (request, self.door) {
            (ClientRequest::InitializeRequest(_), Door::Closed) => {
                self.door = Door::Open;
                Ok(())
            }
            (ClientRequest::InitializeRequest(_), Door::Open) => Err("`initialize` was answered before"),
            (ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_), _) | (_, Door::Open) => Ok(()),
            (request, Door::Closed) => match request.get_meta().protocol_version() {
                Some(_) => Ok(()),
                None => Err("send `initialize` first, or the protocol version in the request's `_meta`"),
            },
        }
    }
}

impl Transport<RoleServer> for Lines {
    type Error = Infallible;

    /// Queued before this returns; the future has nothing left to do.
    fn send(
        &mut self,
        mut message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let id = match &mut message {
            JsonRpcMessage::Response(response) => Some(&mut response.id),
            JsonRpcMessage::Error(error) => error.id.as_mut(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let wanted = match id {
            None => true,
            Some(id) => self.ledger.answered(id).map(|theirs| *id = theirs).is_some(),
        };
        if wanted {
            match serde_json::to_vec(&message) {
                Ok(mut line) => {
                    line.push(b'\n');
                    self.outbox.push(line);
                }
                Err(error) => tracing::error!(%error, "a reply cannot be written as JSON"),
            }
        }
        ready(Ok(()))
    }

    /// Cancel-safe: whatever was read stays in `self`.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            self.outbox.room().await;
            self.ledger.room().await;
            if let Some(framed) = self.framing.next() {
                match self.take(framed) {
                    None => continue,
                    message => return message,
                }
            }
            match self.input.read(&mut self.step).await {
                Ok(count @ 1..) => self.framing.push(&self.step[..count]),
                ended => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "the client cannot be read from");
                    }
                    let last = self.framing.last().and_then(|framed| self.take(framed));
                    if last.is_none() {
                        self.ledger.end();
                    }
                    return last;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
