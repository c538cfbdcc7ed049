//! What rmcp asks of this server: who it is, its tools, and one call after the other.

use super::admission::Admission;
use super::catalogue::{Catalogue, NoSuchTool};
use super::instructions::instructions;
use super::operation::{Call, Done, Effect};
use super::outbox::Outbox;
use super::record::Asked;
use super::transport::LineBytes;
use crate::broker::refused::{Code, Refused};
use crate::broker::{Broker, Progress, render};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    InitializeRequestParams, InitializeResult, ListToolsResult, MetaObject, PaginatedRequestParams, ProgressToken,
    ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Instant, SystemTime};

/// A call that named no operation there is.
const UNKNOWN: &str = "unknown";

/// Keyed with the kernel's randomness, so that nobody can tell the next id from the last.
#[derive(Debug, Default)]
struct CallIds {
    key: RandomState,
    count: AtomicU64,
}

impl CallIds {
    fn next(&self) -> String {
        format!("{:016x}", self.key.hash_one(self.count.fetch_add(1, Ordering::Relaxed)))
    }
}

#[derive(Debug)]
pub struct Tools {
    broker: Arc<Broker>,
    outbox: Arc<Outbox>,
    admission: Admission,
    ids: CallIds,
    catalogue: Mutex<Arc<Catalogue>>,
}

impl Tools {
    pub fn new(broker: Arc<Broker>, outbox: Arc<Outbox>) -> Self {
        let policy = broker.policy();
        let catalogue = Arc::new(Catalogue::new(&policy.tools, &policy.network));
        Tools {
            broker,
            outbox,
            admission: Admission::default(),
            ids: CallIds::default(),
            catalogue: Mutex::new(catalogue),
        }
    }

    /// The catalogue in force; a policy can be tightened while it runs.
    fn catalogue(&self) -> Arc<Catalogue> {
        let policy = self.broker.policy();
        let mut catalogue = self.catalogue.lock().unwrap_or_else(PoisonError::into_inner);
        if !catalogue.is_of(&policy.tools) {
            *catalogue = Arc::new(Catalogue::new(&policy.tools, &policy.network));
        }
        catalogue.clone()
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        (tool, asked): (&mut &'static str, &mut Asked),
    ) -> Result<Result<Done, Refused>, NoSuchTool> {
        let bytes = context.extensions.get::<LineBytes>().map_or(0, |line| line.0);
        let catalogue = self.catalogue();
        let arguments = request.arguments.unwrap_or_default();
        *asked = Asked::of(&arguments);
        *tool = catalogue.named(&request.name, &arguments).unwrap_or(UNKNOWN);
        let (entry, arguments) = match catalogue.find(&request.name, arguments)? {
            Ok(found) => found,
            Err(refused) => return Ok(Err(refused)),
        };
        let place = match self.admission.admit(bytes) {
            Ok(place) => place,
            Err(refused) => return Ok(Err(refused)),
        };
        let work = async {
            // Whoever ends or signals something does not wait behind those who wait for output.
            let hurries = matches!(entry.row.facts.effect, Effect::Ends | Effect::Disturbs);
            let _turn = if hurries { None } else { Some(place.turn().await?) };
            // What is not read yet is memory; no call begins that would add to it.
            self.outbox.room().await;
            let tools = self.broker.tools();
            let progress = context.meta.get_progress_token().map(|token| self.progress(token));
            let call = Call { broker: &self.broker, tools: &tools, progress: progress.as_deref() };
            (entry.row.carry_out)(call, arguments).await
        };
        // Whoever cancels is not answered; what the call had begun ends with the future that is dropped here.
        Ok(tokio::select! {
            done = unpanicked(work) => done,
            () = context.ct.cancelled() => Err(Refused::new(Code::Canceled, "the call was canceled")),
        })
    }

    /// Tells the client what was printed. It is not rmcp's business, so that a slow client loses it instead of
    /// making the server wait.
    fn progress(&self, token: ProgressToken) -> Box<Progress> {
        let outbox = self.outbox.clone();
        let told = AtomicU64::new(0);
        Box::new(move |total, fresh| {
            // The protocol wants a number that rises.
            if told.fetch_max(total, Ordering::Relaxed) >= total {
                return;
            }
            let params = json!({ "progressToken": token, "progress": total, "message": render::text(fresh).text });
            let message = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
            outbox.push_spare(format!("{message}\n").into_bytes());
        })
    }
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("stockade", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions(&self.broker.policy()))
    }

    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        // Later requests are answered in the version agreed on, not the one asked for.
        request.protocol_version = result.protocol_version.clone();
        context.peer.set_peer_info(request);
        Ok(result)
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if page.is_some_and(|page| page.cursor.is_some()) {
            return Err(ErrorData::invalid_params("the list of tools has one page; `cursor` must be left out", None));
        }
        Ok(ListToolsResult::with_all_items(self.catalogue().tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (start, at) = (Instant::now(), SystemTime::now());
        let id = self.ids.next();
        let name = request.name.clone();
        let (mut tool, mut asked) = (UNKNOWN, Asked::default());
        let done = self.call(request, &context, (&mut tool, &mut asked)).await.map_err(|NoSuchTool(message)| {
            tracing::info!(call = id, "no such tool");
            ErrorData::invalid_params(message, None)
        })?;
        let code = done.as_ref().err().map(|refused| refused.code.name());
        let duration_ms = start.elapsed().as_millis() as u64;
        tracing::info!(call = id, tool = %name, duration_ms, code, "called");
        let mut entry = asked.entered(&id, tool, &done);
        (entry.at, entry.duration) = (at, start.elapsed());
        entry.bytes_in = context.extensions.get::<LineBytes>().map_or(0, |line| line.0 as u64);
        let broker = Arc::clone(&self.broker);
        let mut result = dressed(done, reads(&context));
        result.meta = Some(MetaObject(
            [("stockade/call_id".to_owned(), Value::from(id)), ("stockade/duration_ms".to_owned(), duration_ms.into())]
                .into_iter()
                .collect(),
        ));
        entry.bytes_out = weight(&result);
        // Once the answer is on its way.
        tokio::spawn(async move { broker.book(entry) });
        Ok(result.into())
    }
}

/// What a client can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    Structured,
    /// Of a revision before structured content: everything is in the text too.
    Text,
}

fn reads(context: &RequestContext<RoleServer>) -> Reads {
    match context.protocol_version() {
        Some(version) if version.as_str() < ProtocolVersion::V_2025_06_18.as_str() => Reads::Text,
        _ => Reads::Structured,
    }
}

/// What a model gets to read of an answer.
fn weight(result: &CallToolResult) -> u64 {
    let structured = result.structured_content.as_ref().map_or(0, weigh);
    let texts = result.content.iter().filter_map(|block| block.as_text()).map(|block| block.text.len());
    (structured + texts.sum::<usize>()) as u64
}

/// As JSON, roughly: without writing it once more.
fn weigh(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| weigh(item) + 1).sum::<usize>(),
        Value::Object(fields) => 2 + fields.iter().map(|(name, field)| name.len() + 4 + weigh(field)).sum::<usize>(),
    }
}

/// The structured content is complete by itself, so the text beside it is one line. An error is text only: some
/// clients hold structured content to the output schema even then.
fn dressed(done: Result<Done, Refused>, reads: Reads) -> CallToolResult {
    match done {
        Ok(done) => {
            let text = match reads {
                Reads::Structured => done.summary,
                Reads::Text => done.structured.to_string(),
            };
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(done.structured);
            result
        }
        Err(Refused { code, message, details }) => {
            let error = json!({ "code": code.name(), "message": message, "details": details });
            CallToolResult::error(vec![ContentBlock::text(json!({ "error": error }).to_string())])
        }
    }
}

/// A panic ends the call, not the server.
async fn unpanicked(work: impl Future<Output = Result<Done, Refused>>) -> Result<Done, Refused> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(polled) => polled,
        Err(_) => Poll::Ready(Err(Refused::new(Code::Internal, "the call hit a fault of the server; others go on"))),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::{CallIds, Code, Done, Reads, dressed, unpanicked};
    use serde_json::{Value, json};

    #[tokio::test]
    async fn a_panic_is_an_error_of_its_call() {
        let refused = unpanicked(async { panic!("on purpose") }).await.unwrap_err();
        assert_eq!(refused.code, Code::Internal);
        let late = async {
            tokio::task::yield_now().await;
            panic!("on purpose")
        };
        assert_eq!(unpanicked(late).await.unwrap_err().code, Code::Internal);
        let done = Done { structured: json!({}), summary: "done".into() };
        assert_eq!(unpanicked(async { Ok(done.clone()) }).await.unwrap(), done);
    }

    #[test]
    fn an_error_is_text_only_and_output_is_sent_once() {
        let refused = super::Refused::invalid("no").with("parameter", "x");
        let error = serde_json::to_value(dressed(Err(refused), Reads::Structured)).unwrap();
        assert_eq!((&error["isError"], error.get("structuredContent")), (&json!(true), None));
        let text: Value = serde_json::from_str(error["content"][0]["text"].as_str().unwrap()).unwrap();
        let told = json!({ "code": "INVALID_ARGUMENT", "message": "no", "details": { "parameter": "x" } });
        assert_eq!(text, json!({ "error": told }));
        let told = Done { structured: json!({ "stdout": "long" }), summary: "exit 0".into() };
        let old = serde_json::to_value(dressed(Ok(told.clone()), Reads::Text)).unwrap();
        assert_eq!(old["content"][0]["text"], "{\"stdout\":\"long\"}");
        let done = dressed(Ok(told), Reads::Structured);
        let done = serde_json::to_value(done).unwrap();
        assert_eq!(done["content"], json!([{ "type": "text", "text": "exit 0" }]));
        assert_eq!(done["structuredContent"], json!({ "stdout": "long" }));
    }

    #[test]
    fn call_ids_differ_between_calls_and_between_servers() {
        let (ours, others) = (CallIds::default(), CallIds::default());
        let first = ours.next();
        assert_eq!(first.len(), 16);
        assert_ne!(first, ours.next());
        assert_ne!(first, others.next());
    }
}
