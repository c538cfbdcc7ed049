//! One entry in the text of a JSON document: found by its bytes, put in with the indentation that is there.
//!
//! The text was parsed before ([`super::edit`]), so that the walk below meets nothing that is not JSON.

use super::edit::Wanted;
use serde_json::Value;
use std::ops::Range;

pub fn fresh(wanted: Wanted<'_>) -> String {
    let layout = Layout { newline: "\n", unit: "  " };
    let mut text = layout.document(wanted);
    text.push('\n');
    text
}

pub fn put(text: &str, wanted: Wanted<'_>) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok(fresh(wanted));
    }
    let root = Object::at(text, skip_space(text, 0));
    let unit = root.indent(text).unwrap_or("  ");
    let layout = |object: &Object| object.layout(text, unit);
    let Some(servers) = root.member(wanted.servers)? else {
        let (layout, inner) = (layout(&root), root.inner(text, unit));
        return Ok(root.add(text, layout, wanted.servers, &inner, &layout.servers(&inner, wanted)));
    };
    if !text[servers.clone()].starts_with('{') {
        return Err(format!("holds a `{}` that is not an object", wanted.servers));
    }
    let servers = Object::at(text, servers.start);
    let (layout, inner) = (layout(&servers), servers.inner(text, unit));
    let value = layout.entry(&inner, wanted);
    Ok(match servers.member(wanted.name)? {
        Some(old) => splice(text, old, &value),
        None => servers.add(text, layout, wanted.name, &inner, &value),
    })
}

/// How members are set apart. Without a newline all is on one line.
#[derive(Clone, Copy)]
struct Layout<'a> {
    newline: &'a str,
    unit: &'a str,
}

impl Layout<'_> {
    fn document(self, wanted: Wanted<'_>) -> String {
        self.object("", &[(wanted.servers, self.servers(self.unit, wanted))])
    }

    /// The object of all servers, with ours alone, for a member that stands at `indent`.
    fn servers(self, indent: &str, wanted: Wanted<'_>) -> String {
        self.object(indent, &[(wanted.name, self.entry(&format!("{indent}{}", self.unit), wanted))])
    }

    fn entry(self, indent: &str, wanted: Wanted<'_>) -> String {
        let members: Vec<_> = wanted.fields.iter().map(|(key, value)| (*key, one_line(value))).collect();
        self.object(indent, &members)
    }

    fn object(self, indent: &str, members: &[(&str, String)]) -> String {
        let members = members.iter().map(|(key, value)| format!("{}: {value}", quoted(key)));
        if self.newline.is_empty() {
            return format!("{{{}}}", members.collect::<Vec<_>>().join(", "));
        }
        let start = format!("{}{indent}{}", self.newline, self.unit);
        let lines: Vec<String> = members.map(|member| format!("{start}{member}")).collect();
        format!("{{{}{}{indent}}}", lines.join(","), self.newline)
    }
}

/// An object in the text: where it is, and where its members are.
struct Object {
    span: Range<usize>,
    members: Vec<Member>,
}

struct Member {
    key: String,
    start: usize,
    value: Range<usize>,
}

impl Object {
    /// The object that opens at `start`.
    fn at(text: &str, start: usize) -> Object {
        let mut members = Vec::new();
        let mut at = skip_space(text, start + 1);
        while text.as_bytes()[at] == b'"' {
            let (start, end) = (at, skip_value(text, at));
            let key = serde_json::from_str(&text[start..end]).unwrap_or_default();
            let value = skip_space(text, skip_space(text, end) + 1);
            let value = value..skip_value(text, value);
            at = skip_space(text, value.end);
            members.push(Member { key, start, value });
            if text.as_bytes()[at] == b',' {
                at = skip_space(text, at + 1);
            }
        }
        Object { span: start..at + 1, members }
    }

    /// The value of a key; twice the same key is nothing to guess about.
    fn member(&self, key: &str) -> Result<Option<Range<usize>>, String> {
        let mut found = self.members.iter().filter(|member| member.key == key);
        match (found.next(), found.next()) {
            (one, None) => Ok(one.map(|member| member.value.clone())),
            _ => Err(format!("holds `{key}` twice")),
        }
    }

    /// What stands before the first member on its line, when it has a line of its own.
    fn indent<'a>(&self, text: &'a str) -> Option<&'a str> {
        let lead = &text[self.span.start + 1..self.members.first()?.start];
        lead.rsplit_once('\n').map(|(_, indent)| indent)
    }

    /// The indentation of members, there or to be.
    fn inner(&self, text: &str, unit: &str) -> String {
        if let Some(indent) = self.indent(text) {
            return indent.to_owned();
        }
        let line = text[..self.span.start].rsplit('\n').next().unwrap_or_default();
        let outer: String = line.chars().take_while(|c| c.is_whitespace()).collect();
        outer + unit
    }

    fn layout<'a>(&self, text: &str, unit: &'a str) -> Layout<'a> {
        let one_line = !self.members.is_empty() && self.indent(text).is_none();
        let newline = match (one_line, text.contains("\r\n")) {
            (true, _) => "",
            (false, true) => "\r\n",
            (false, false) => "\n",
        };
        Layout { newline, unit }
    }

    /// The text with one more member at the end of this object.
    fn add(&self, text: &str, layout: Layout<'_>, key: &str, inner: &str, value: &str) -> String {
        let member = format!("{}: {value}", quoted(key));
        let Some(last) = self.members.last() else {
            let outer = inner.strip_suffix(layout.unit).unwrap_or_default();
            let Layout { newline, .. } = layout;
            return splice(text, self.span.clone(), &format!("{{{newline}{inner}{member}{newline}{outer}}}"));
        };
        let end = last.value.end;
        let lead = if layout.newline.is_empty() { " ".to_owned() } else { format!("{}{inner}", layout.newline) };
        splice(text, end..end, &format!(",{lead}{member}"))
    }
}

fn splice(text: &str, span: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..span.start], &text[span.end..])
}

fn skip_space(text: &str, at: usize) -> usize {
    let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    at + text.as_bytes()[at..].iter().take_while(|byte| space(byte)).count()
}

/// Where the value that starts at `at` ends.
fn skip_value(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut here) = (0usize, at);
    loop {
        match bytes[here] {
            b'"' => here = skip_string(bytes, here),
            b'{' | b'[' => (depth, here) = (depth + 1, here + 1),
            b'}' | b']' => (depth, here) = (depth - 1, here + 1),
            _ if depth == 0 => {
                let plain = |byte: &u8| !matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                return here + bytes[here..].iter().take_while(|byte| plain(byte)).count();
            }
            _ => here += 1,
        }
        if depth == 0 {
            return here;
        }
    }
}

fn skip_string(bytes: &[u8], start: usize) -> usize {
    let mut here = start + 1;
    while bytes[here] != b'"' {
        here += if bytes[here] == b'\\' { 2 } else { 1 };
    }
    here + 1
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A list reads better with a space behind each comma.
pub fn one_line(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(one_line).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}
