//! The name that was probably meant.

/// Longer words are nobody's typing mistake, and comparing them costs the square of their length.
const LONGEST: usize = 64;

/// `None` when nothing is near enough to be worth naming.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let rated = names.into_iter().map(|name| (rating(&word, name), name));
    rated.filter(|(rating, name)| *rating <= name.len().max(word.len()) / 3 + 1).min().map(|(_, name)| name)
}

fn rating(word: &str, name: &str) -> usize {
    // `timeout` for `timeout_ms`, `id` for `proc_id`.
    let begins_or_ends = name.starts_with(word) || name.ends_with(word) || word.starts_with(name);
    if begins_or_ends { 1 } else { distance(word.as_bytes(), name.as_bytes()) }
}

/// Insertions, deletions and replacements from one to the other.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let replaced = before + usize::from(from != to);
            before = row[j + 1];
            row[j + 1] = replaced.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_recognised_and_nonsense_is_not() {
        let names = ["command", "argv", "timeout_ms", "proc_id", "max_output_bytes"];
        for (word, name) in [
            ("comand", Some("command")),
            ("cmd", None),
            ("timeout", Some("timeout_ms")),
            ("procId", Some("proc_id")),
            ("id", Some("proc_id")),
            ("args", Some("argv")),
            ("max_bytes", None),
            ("elephant", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), name, "{word}");
        }
    }
}
