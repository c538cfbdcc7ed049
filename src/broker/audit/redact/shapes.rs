//! What is secret by its looks, wherever it stands: keys of well-known services, names and passwords in URLs,
//! fields of JSON, headers in the middle of a text.

use super::Hidden;
use regex::Regex;
use std::sync::LazyLock;

/// Prefixes that services chose so that their keys can be found.
static KEYS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let shapes = [
        r"gh[pousr]_[A-Za-z0-9]{20,}",
        r"github_pat_[A-Za-z0-9_]{20,}",
        r"gl(?:pat|dt|rt|ptt)-[A-Za-z0-9_-]{16,}",
        r"sk-[A-Za-z0-9_-]{20,}",
        r"(?:AKIA|ASIA)[0-9A-Z]{16}",
        r"xox[abeprs]-[A-Za-z0-9-]{10,}",
        r"AIza[0-9A-Za-z_-]{35}",
        r"npm_[A-Za-z0-9]{30,}",
        r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
        r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
    ];
    Regex::new(&shapes.join("|")).ok()
});

/// `scheme://name:password@host`, as far as the last `@` before the path.
static URL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"[A-Za-z][A-Za-z0-9+.-]*://([^/\s"'<>?#]*)@"#).ok());

/// `"name": "value"`, also with its quotes escaped for a shell.
static FIELD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"\\*["']([A-Za-z0-9_.-]+)\\*["']\s*:\s*(?:"((?:[^"\\]|\\.)*)|'([^']*)|\\+"([^"\\]*)|([0-9]+))"#).ok()
});

/// Only the scheme and one word: the words around it know better where the header ends.
static HEADER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = "authorization|x-api-key|api-key|private-token|x-auth-token";
    let schemes = "basic|bearer|token|digest|negotiate|apikey";
    Regex::new(&format!(r#"(?i)({names})\\*["']?\s*[:=]\s*\\*["']?(?:(?:{schemes})\s+)?([^\s"'\\]+)"#)).ok()
});

pub(super) fn find(text: &str, is_secret: &dyn Fn(&str) -> bool, hidden: &mut Vec<Hidden>) {
    if let Some(keys) = &*KEYS {
        hidden.extend(keys.find_iter(text).map(|key| Hidden { range: key.range(), name: "key".into() }));
    }
    // Most command lines end here: none of the rest is without a colon or an equals sign.
    if !text.contains([':', '=']) {
        return;
    }
    if let Some(url) = &*URL {
        let found = url.captures_iter(text).filter_map(|found| found.get(1));
        hidden.extend(found.map(|part| Hidden { range: part.range(), name: "userinfo".into() }));
    }
    for pattern in [&*FIELD, &*HEADER].into_iter().flatten() {
        for found in pattern.captures_iter(text) {
            let Some(name) = found.get(1).filter(|name| is_secret(name.as_str())) else {
                continue;
            };
            let values = (2..found.len()).filter_map(|index| found.get(index));
            hidden.extend(values.map(|value| Hidden { range: value.range(), name: name.as_str().into() }));
        }
    }
}
