//! A parsed line into what rmcp takes, or into the protocol error that answers it.
//!
//! rmcp's own reader tries every kind of message in turn and drops in silence what fits none. Here the envelope is
//! read first and the method decides, so that each mistake gets the error the protocol has for it.

use super::json::{Fault, request_id};
use rmcp::model::{
    CallToolRequestParams, CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest,
    DiscoverRequestParams, ErrorCode, Extensions, InitializeRequestParams, InitializedNotification, ListToolsRequest,
    PaginatedRequestParams, PingRequest, Request, RequestId, RequestMetaObject,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

#[derive(Debug)]
pub enum Message {
    Request(RequestId, Box<ClientRequest>),
    Notification(ClientNotification),
    Cancel(RequestId),
    /// A response nobody waits for, or a notification that means nothing here.
    Nothing,
}

pub fn read(message: Value) -> Result<Message, Fault> {
    let Value::Object(mut envelope) = message else {
        let what = if message.is_array() { "a batch" } else { "a scalar" };
        return Err(invalid(None, format!("{what} is no request: one object per line is accepted")));
    };
    let id = envelope.get("id").and_then(request_id);
    if envelope.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid(id, "`jsonrpc` must be \"2.0\""));
    }
    let answers = envelope.contains_key("result") || envelope.contains_key("error");
    let method = match envelope.remove("method") {
        Some(Value::String(method)) if !answers => method,
        None if answers => return Ok(Message::Nothing),
        _ => return Err(invalid(id, "`method` must be a string, without `result` or `error` beside it")),
    };
    let params = envelope.remove("params");
    if !envelope.contains_key("id") {
        return Ok(notification(&method, params.as_ref()));
    }
    let Some(id) = id else {
        return Err(invalid(None, "`id` must be a string or an integer of 64 bits"));
    };
    match request(&method, params) {
        Ok(request) => Ok(Message::Request(id, Box::new(request))),
        Err((code, message)) => Err(Fault::new(Some(id), code, message)),
    }
}

fn invalid(id: Option<RequestId>, message: impl Into<String>) -> Fault {
    Fault::new(id, ErrorCode::INVALID_REQUEST, message)
}

fn notification(method: &str, params: Option<&Value>) -> Message {
    match method {
        "notifications/initialized" => {
            Message::Notification(ClientNotification::InitializedNotification(InitializedNotification {
                method: Default::default(),
                extensions: Extensions::new(),
            }))
        }
        "notifications/cancelled" => params.and_then(|params| request_id(params.get("requestId")?)).map_or(
            // Without an id there is nothing to cancel.
            Message::Nothing,
            Message::Cancel,
        ),
        _ => Message::Nothing,
    }
}

/// What rmcp is told when the client cancels; the id is the one rmcp knows.
pub fn cancellation(id: RequestId) -> ClientNotification {
    CancelledNotification::new(CancelledNotificationParam::new(Some(id), None)).into()
}

type Mistake = (ErrorCode, String);

fn request(method: &str, params: Option<Value>) -> Result<ClientRequest, Mistake> {
    const METHODS: [&str; 5] = ["initialize", "server/discover", "ping", "tools/list", "tools/call"];
    if !METHODS.contains(&method) {
        let method: String = method.chars().take(64).collect();
        return Err((ErrorCode::METHOD_NOT_FOUND, format!("`{method}` is not served; {} are", METHODS.join(", "))));
    }
    let mut params = match params {
        Some(Value::Object(params)) => params,
        // Of the five, only these two mean something without parameters.
        None if matches!(method, "ping" | "tools/list") => Map::new(),
        _ => return Err(wrong(format!("`params` of {method} must be an object"))),
    };
    let extensions = meta(&mut params)?;
    Ok(match method {
        "initialize" => with(Request::new(typed::<InitializeRequestParams>(params)?), extensions).into(),
        "server/discover" => with(Request::new(typed::<DiscoverRequestParams>(params)?), extensions).into(),
        "ping" => PingRequest { method: Default::default(), extensions }.into(),
        "tools/list" => {
            let params = Some(typed::<PaginatedRequestParams>(params)?);
            ListToolsRequest { method: Default::default(), params, extensions }.into()
        }
        _ => with(Request::new(call(params)?), extensions).into(),
    })
}

fn with<M, P>(mut request: Request<M, P>, extensions: Extensions) -> Request<M, P> {
    request.extensions = extensions;
    request
}

fn call(mut params: Map<String, Value>) -> Result<CallToolRequestParams, Mistake> {
    let Some(Value::String(name)) = params.remove("name") else {
        return Err(wrong("`params.name` of tools/call must be a string".into()));
    };
    match params.remove("arguments") {
        Some(Value::Object(arguments)) => Ok(CallToolRequestParams::new(name).with_arguments(arguments)),
        None | Some(Value::Null) => Ok(CallToolRequestParams::new(name)),
        Some(_) => Err(wrong("`params.arguments` of tools/call must be an object".into())),
    }
}

/// rmcp keeps `_meta` beside the parameters.
fn meta(params: &mut Map<String, Value>) -> Result<Extensions, Mistake> {
    let mut extensions = Extensions::new();
    match params.remove("_meta") {
        None => {}
        Some(Value::Object(meta)) => drop(extensions.insert(RequestMetaObject::from(meta))),
        Some(_) => return Err(wrong("`_meta` must be an object".into())),
    }
    Ok(extensions)
}

fn typed<T: DeserializeOwned>(params: Map<String, Value>) -> Result<T, Mistake> {
    serde_json::from_value(Value::Object(params)).map_err(|error| wrong(error.to_string()))
}

fn wrong(message: String) -> Mistake {
    (ErrorCode::INVALID_PARAMS, message)
}
