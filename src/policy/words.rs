//! Words of a command entry or a `run` promise: split at spaces, kept together by quotes.
//!
//! No escapes and no expansion; this is not a shell.

/// The words of `text`, or `None` when a quote is left open.
pub(super) fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// One text that `split` takes apart into the same words.
pub(super) fn join<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || c == '\'' || c == '"');
    if plain {
        return word.to_owned();
    }
    // Quotes do not nest, so a word with both kinds is written piece by piece.
    word.split_inclusive('\'')
        .map(|piece| match piece.strip_suffix('\'') {
            Some(before) => format!("'{before}'\"'\""),
            None => format!("'{piece}'"),
        })
        .collect::<String>()
        + if word.is_empty() { "''" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_together_by_quotes() {
        let cases: [(&str, Option<&[&str]>); 7] = [
            ("git push", Some(&["git", "push"])),
            ("  git   push  ", Some(&["git", "push"])),
            ("bash -c 'git push'", Some(&["bash", "-c", "git push"])),
            ("a \"b 'c\"", Some(&["a", "b 'c"])),
            ("a ''", Some(&["a", ""])),
            ("", Some(&[])),
            ("a 'b", None),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|words| words.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn joined_words_split_into_the_same_words() {
        let words = ["git", "", "a b", "it's", "'", "\"", "a\"b'c d"];
        assert_eq!(split(&join(words)).as_deref(), Some(words.map(String::from).as_slice()));
    }
}
