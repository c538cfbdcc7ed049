//! `proc_send`: bytes into a process, and, if asked, what it says to them.

use super::ending::{Codes, Ending, Shown, size, state};
use super::words::{Encoding, bytes, millis, until};
use super::{Call, Effect, Facts, Family, Feature, Operation};
use crate::broker::answer::{Content, Sent};
use crate::broker::refused::Refused;
use crate::broker::request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug)]
pub struct Send;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    proc_id: String,
    #[schemars(length(max = 1_400_000))]
    input: Option<String>,
    #[schemars(extend("default" = true))]
    newline: Option<bool>,
    /// close stdin
    eof: Option<bool>,
    encoding: Option<Encoding>,
    /// wait for output
    #[schemars(range(min = 0, max = 55_000), extend("default" = 0))]
    wait_ms: Option<u64>,
    /// regex
    #[schemars(length(max = 1024))]
    until: Option<String>,
    strip_ansi: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    acknowledged: bool,
    bytes_written: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_utf8: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<String>,
    #[serde(flatten)]
    ending: Ending,
}

impl Operation for Send {
    const FACTS: Facts = Facts {
        name: "proc_send",
        family: Family::Process,
        action: "send",
        feature: Feature::Repl,
        effect: Effect::Runs,
        about: "Write to a process; with wait_ms, return what it prints until `until` matches. Refuses a process \
                that has ended.",
        repl_only: &[],
    };
    type Params = Params;
    type Answer = Answer;

    async fn carry_out(call: Call<'_>, params: Params) -> Result<Answer, Refused> {
        let shown = Shown::new(params.encoding, Codes::asked(params.strip_ansi));
        let sent = call.broker.send(params.request()?, call.progress).await?;
        Ok(Answer::of(&sent, shown))
    }

    fn summary(answer: &Answer) -> String {
        let written = format!("{} written", size(answer.bytes_written as u64));
        match &answer.output {
            Some(output) => format!("{written}, {} read, {}", size(output.len() as u64), answer.ending.words()),
            None => written,
        }
    }
}

impl Params {
    pub fn request(self) -> Result<request::Send, Refused> {
        let eof = self.eof.unwrap_or(false);
        let input = match self.input {
            Some(text) => {
                let mut input = bytes("input", text, self.encoding.unwrap_or_default())?;
                if self.newline.unwrap_or(true) {
                    input.push(b'\n');
                }
                input
            }
            None if eof => Vec::new(),
            None => return Err(Refused::invalid("`input` is missing; only with `eof` true may it be left out")),
        };
        if self.until.is_some() && self.wait_ms.unwrap_or(0) == 0 {
            return Err(Refused::invalid("`until` needs `wait_ms`: how long to wait for it, in milliseconds"));
        }
        Ok(request::Send {
            proc_id: self.proc_id,
            input,
            eof,
            wait: millis(self.wait_ms.unwrap_or(0)),
            until: until(self.until)?,
            strip_ansi: self.strip_ansi.unwrap_or(false),
        })
    }
}

impl Answer {
    pub fn of(sent: &Sent, mut shown: Shown) -> Self {
        let heard = sent.heard.as_ref();
        let output = heard.map(|heard| match &heard.content {
            Content::Text(bytes) => shown.bytes(bytes),
            // Sending asks for text; the other forms belong to `proc_read`.
            Content::Lines(_) | Content::Chunks(_) | Content::Screen(_) => String::new(),
        });
        Answer {
            acknowledged: sent.acknowledged,
            bytes_written: sent.bytes_written,
            output,
            invalid_utf8: shown.invalid_utf8(),
            state: heard.map(|heard| state(heard.end.as_ref())),
            next_cursor: heard.map(|heard| heard.next_cursor),
            more: heard.map(|heard| heard.more),
            matched: heard.and_then(|heard| heard.matched.clone()),
            ending: Ending::of(heard.and_then(|heard| heard.end.as_ref())),
        }
    }
}
