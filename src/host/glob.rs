//! Patterns in policies: `*` and `?` stay within one path component, `**` crosses them.
//!
//! There are no classes and no braces. Matching takes pattern times text steps at most, because the
//! text is often an agent's.

/// Whether the whole of `text` fits `pattern`.
pub fn matches(pattern: &str, text: &str) -> bool {
    if !is_pattern(pattern) {
        return pattern == text;
    }
    let tokens = tokens(pattern);
    // reached[i]: the first i tokens can end where the text read so far ends.
    let mut reached = vec![false; tokens.len() + 1];
    let mut next = reached.clone();
    reached[0] = true;
    skip_stars(&tokens, &mut reached);
    for c in text.chars() {
        next.fill(false);
        for (i, token) in tokens.iter().enumerate().filter(|(i, _)| reached[*i]) {
            match token {
                Token::Star | Token::StarStar if token.takes(c) => next[i] = true,
                _ if token.takes(c) => next[i + 1] = true,
                _ => {}
            }
        }
        if !next.contains(&true) {
            return false;
        }
        skip_stars(&tokens, &mut next);
        std::mem::swap(&mut reached, &mut next);
    }
    reached[tokens.len()]
}

/// Whether a program fits: a pattern without `/` looks at the last component only, and `*` alone fits all.
pub fn matches_program(pattern: &str, program: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    if pattern.contains('/') {
        return matches(pattern, program);
    }
    matches(pattern, program.rsplit('/').next().unwrap_or(program))
}

/// Whether a text would be read as a pattern.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

#[derive(Clone, Copy)]
enum Token {
    Exact(char),
    One,
    Star,
    StarStar,
}

impl Token {
    fn takes(self, c: char) -> bool {
        match self {
            Token::Exact(wanted) => wanted == c,
            Token::One | Token::Star => c != '/',
            Token::StarStar => true,
        }
    }
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for c in pattern.chars() {
        let token = match (c, tokens.last()) {
            ('*', Some(Token::Star | Token::StarStar)) => {
                tokens.pop();
                Token::StarStar
            }
            ('*', _) => Token::Star,
            ('?', _) => Token::One,
            _ => Token::Exact(c),
        };
        tokens.push(token);
    }
    tokens
}

fn skip_stars(tokens: &[Token], reached: &mut [bool]) {
    for (i, token) in tokens.iter().enumerate() {
        if reached[i] && matches!(token, Token::Star | Token::StarStar) {
            reached[i + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_what_it_says_and_no_more() {
        let cases = [
            ("git", "git", true),
            ("git", "gitk", false),
            ("python3*", "python3.12", true),
            ("python3*", "python", false),
            ("mkfs*", "mkfs.ext4", true),
            ("*TOKEN*", "GITHUB_TOKEN", true),
            ("*TOKEN*", "TOKE", false),
            ("*", "a/b", false),
            ("**", "a/b", true),
            ("/usr/lib/gcc/**", "/usr/lib/gcc/x/12/cc1", true),
            ("/usr/lib/gcc/**", "/usr/lib/gccx", false),
            ("/usr/lib/git-core/*", "/usr/lib/git-core/a/b", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("", "", true),
            ("", "a", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_bare_name_matches_a_program_wherever_it_lies() {
        let cases = [
            ("sudo", "/usr/bin/sudo", true),
            ("sudo", "sudo", true),
            ("sudo", "/usr/bin/sudoedit", false),
            ("/usr/bin/sudo", "/usr/bin/sudo", true),
            ("/usr/bin/sudo", "sudo", false),
            ("*", "/any/where", true),
        ];
        for (pattern, program, expected) in cases {
            assert_eq!(matches_program(pattern, program), expected, "{pattern} {program}");
        }
    }

    #[test]
    fn a_hostile_text_cannot_make_matching_slow() {
        let pattern = "*a".repeat(60);
        assert!(!matches(&pattern, &"a".repeat(59)));
        assert!(!matches(&format!("{pattern}b"), &"a".repeat(20_000)));
    }
}
