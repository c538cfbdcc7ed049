//! What an agent reads of real output, and that no bytes at all are too much for it.

use super::*;
use crate::broker::answer::Excerpt;

fn stripped(raw: &str) -> String {
    String::from_utf8(strip_ansi(raw.as_bytes()).bytes).expect("text stays text")
}

#[test]
fn text_counts_what_it_replaces() {
    for (bytes, shown, invalid) in [
        (&b"plain"[..], "plain", 0),
        ("h\u{e9}".as_bytes(), "h\u{e9}", 0),
        (b"a\xffb\xfec", "a\u{fffd}b\u{fffd}c", 2),
        (b"\xe2\x82", "\u{fffd}", 1),
        (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}", 3),
        (b"", "", 0),
    ] {
        assert_eq!(text(bytes), Text { text: shown.into(), invalid_utf8: invalid }, "{bytes:?}");
        assert_eq!(text(bytes).text, String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_character_cut_at_the_end_waits_and_nothing_else_does() {
    for (bytes, held) in [
        (&b"abc"[..], 0),
        (b"", 0),
        (b"a\xc3", 1),
        (b"a\xc3\xa9", 0),
        (b"a\xe2\x82", 2),
        (b"a\xf0\x9f\x98", 3),
        (b"\xf0\x9f\x98\x80", 0),
        (b"a\xff", 0),
        (b"a\xc0", 0),
        (b"a\x80\x80\x80", 0),
        (b"\xe2\x28", 0),
        (b"\xed\xa0", 0),
        (b"\xf5\x80\x80", 0),
    ] {
        assert_eq!(bytes.len() - whole_characters(bytes, Rest::MayCome), held, "{bytes:x?}");
        assert_eq!(whole_characters(bytes, Rest::None), bytes.len());
    }
}

#[test]
fn pages_cut_anywhere_show_every_character() {
    let whole = "a\u{e9}\u{20ac}\u{1f600}z".repeat(3);
    for page in 4..9 {
        let (mut shown, mut at) = (String::new(), 0);
        while at < whole.len() {
            let end = whole.len().min(at + page);
            let rest = if end == whole.len() { Rest::None } else { Rest::MayCome };
            let length = whole_characters(&whole.as_bytes()[at..end], rest);
            shown += &text(&whole.as_bytes()[at..at + length]).text;
            at += length;
        }
        assert_eq!(shown, whole, "pages of {page}");
    }
}

#[test]
fn terminal_codes_of_real_programs_are_taken_away() {
    for (program, raw, expected) in [
        ("ls --color", "\x1b[0m\x1b[01;34msrc\x1b[0m  \x1b[01;32mrun.sh\x1b[0m\r\n", "src  run.sh\n"),
        ("grep --color", "\x1b[01;31m\x1b[Kmatch\x1b[m\x1b[K here\n", "match here\n"),
        ("cargo", "\x1b[1m\x1b[38;5;9merror[E0308]\x1b[0m\x1b[1m: mismatched\x1b[0m\n", "error[E0308]: mismatched\n"),
        (
            "cargo progress",
            "\r\x1b[K\x1b[1m\x1b[96m    Building\x1b[0m [==>    ] 1/9: a\r\x1b[K\x1b[1m\x1b[92m   Compiling\x1b[0m b\r\n\
             \x1b[96m    Building\x1b[0m [===>   ] 2/9\r\x1b[K\x1b[92m    Finished\x1b[0m in 2s\r\n",
            "   Compiling b\n    Finished in 2s\n",
        ),
        ("pip", "\r\x1b[2K   \x1b[90m━━\x1b[0m 1/3 MB\r\x1b[2K   \x1b[32m━━━━\x1b[0m 3/3 MB\r\n", "   ━━━━ 3/3 MB\n"),
        ("old pip", "\r 10% |##   |\r 50% |#### |\r100% |#####|\n", "100% |#####|\n"),
        ("npm", "[..] / idealTree\x1b[1G\x1b[0K[##] - reify\x1b[1G\x1b[0Kadded 1 package\n", "added 1 package\n"),
        ("curl", "  % Total\r  0   0\r100 528\r\n", "100 528\n"),
        ("wget at its end", "50%\r\n100%\r", "50%\n100%"),
        ("bash", "\x1b]0;user@host: ~\x07\x1b[?2004h$ ls\r\n\x1b[?2004l\r", "$ ls\n"),
        ("an erased letter", "$ lz\x08\x1b[Ks\r\n", "$ ls\n"),
        ("rubout", "ab\x08 \x08c", "ac"),
        ("man", "N\x08NA\x08AM\x08ME\x08E", "NAME"),
        ("wide rubout", "x\u{20ac}\x08y\u{e9}\x08", "xy"),
        ("backspaces past the line", "a\nb\x08\x08\x08c", "a\nc"),
        ("links", "\x1b]8;;http://x.y\x1b\\name\x1b]8;;\x1b\\\n", "name\n"),
        ("sixel", "a\x1bPq#0;2;0;0;0~-\x1b\\b\x1b_Gf=1;AAAA\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e", "abcde"),
        ("charsets", "\x1b(B\x1b)0\x1b[mtext\x1b#8\x1b%G\x1b=\x1b>\x1b7\x1b8\x1bM", "text"),
        ("vim", "\x1b[?1049h\x1b[22;0;0t\x1b[1;1Hhello\x1b[2;1H\x1b[94m~  \x1b[3;1H~\x1b[m", "hello\n~  \n~"),
        ("htop", "\x1b[H\x1b[J\x1b[3;4H\x1b[36m1\x1b[39m[||  5%]\x1b[4;4H2\x1b[1;24r", "1[||  5%]\n2"),
        ("bells and nulls", "a\x07b\0c\x7fd\x0ee\x0f", "abcde"),
        ("a code broken off", "\x1b[31\x1b[0mred \x1b]0;t\x1b[1mbold", "red bold"),
        ("a code in the middle of nowhere", "\x1b[3\u{e9}x", "\u{e9}x"),
        ("controls of one byte", "\u{9b}x\u{a9}\u{85}y", "x\u{a9}y"),
        ("returns", "a\r\r\nb\r\n", "a\nb\n"),
        ("an erased line", "working\r\x1b[K\n", "\n"),
        ("tabs", "a\tb\n", "a\tb\n"),
    ] {
        assert_eq!(stripped(raw), expected, "{program}");
    }
}

#[test]
fn a_sequence_cut_at_the_end_is_left_for_later() {
    for (raw, shown, complete) in [
        ("ab\x1b", "ab", 2),
        ("ab\x1b[31", "ab", 2),
        ("ab\x1b]0;title", "ab", 2),
        ("ab\x1b]0;title\x1b", "ab", 2),
        ("ab\x1b(", "ab", 2),
        ("ab\x1b[31m", "ab", 7),
        ("ab", "ab", 2),
    ] {
        let found = strip_ansi(raw.as_bytes());
        assert_eq!((found.bytes.as_slice(), found.complete), (shown.as_bytes(), complete), "{raw:?}");
    }
    let endless = format!("ab\x1b]{}\nend", "x".repeat(MAX_HELD));
    let found = strip_ansi(endless.as_bytes());
    assert_eq!(found.complete, endless.len(), "a string that never ends does not hide what follows");
    assert!(found.bytes.ends_with(b"\nend"));
}

#[test]
fn a_place_in_the_text_is_found_again_in_the_raw_bytes() {
    for (raw, wanted) in [
        ("\x1b[31mred\x1b[0m done>>> \x1b[0m", "done>>> "),
        ("10%\r20%\r\x1b[K100%\nok$ ", "ok$ "),
        ("a\r\nb\r\nc", "b\n"),
        ("x\x08\x08yes\x08s", "ye"),
        ("\x1b[1;1Hone\x1b[2;1Htwo", "one\n"),
    ] {
        let found = strip_ansi(raw.as_bytes());
        let at = found.bytes.windows(wanted.len()).position(|part| part == wanted.as_bytes()).expect(raw);
        let end = found.raw_end(at + wanted.len());
        let before = strip_ansi(&raw.as_bytes()[..end]).bytes;
        assert!(before.ends_with(wanted.as_bytes()), "{raw:?} up to {end}: {before:?}");
        assert!(
            !strip_ansi(&raw.as_bytes()[..end - 1]).bytes.ends_with(wanted.as_bytes()),
            "{raw:?}: {end} is too far"
        );
    }
    assert_eq!(strip_ansi(b"abc").raw_end(0), 0);
    assert_eq!(strip_ansi(b"abc").raw_end(99), 3);
    assert_eq!(strip_ansi(b"").raw_end(0), 0);
}

/// xorshift: the same bytes in every run.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Bytes that look like terminal output often enough to reach every branch.
    fn bytes(&mut self, length: usize) -> Vec<u8> {
        const LIKELY: &[u8] = b"\x1b\x1b\x1b[];?0123456789mHKJG\r\n\x08\x07\\P_^(Bab \xc2\x9b\xe2\x82\xac";
        let mut one = || match self.next() {
            random if random % 4 == 0 => (random >> 8) as u8,
            random => LIKELY[(random >> 8) as usize % LIKELY.len()],
        };
        (0..length).map(|_| one()).collect()
    }
}

#[test]
fn any_bytes_are_stripped_and_their_places_hold() {
    let mut seeded = Seeded(0x5eed);
    for round in 0..4000 {
        let raw = seeded.bytes(round % 300);
        let found = strip_ansi(&raw);
        assert!(found.complete <= raw.len() && found.bytes.len() <= raw.len(), "{raw:x?}");
        assert!(!found.bytes.iter().any(|byte| matches!(byte, 0x1b | b'\r' | 0x08 | 0x07 | 0)), "{raw:x?}");
        let mut last = 0;
        for end in 1..=found.bytes.len() {
            let place = found.raw_end(end);
            assert!(place > last && place <= raw.len(), "{raw:x?} {end}");
            let byte = found.bytes[end - 1];
            assert!(byte == raw[place - 1] || byte == b'\n', "{raw:x?} {end}");
            last = place;
        }
        // A sequence between the two bytes of a C1 control hides it the first time.
        if !found.bytes.contains(&0xc2) {
            assert_eq!(strip_ansi(&found.bytes).bytes, found.bytes, "text without codes stays as it is");
        }
        text(&raw);
        assert!(raw.len() - whole_characters(&raw, Rest::MayCome) <= 3);
    }
}

#[test]
fn stripping_takes_time_that_grows_with_the_length_only() {
    // Each would take hours if any byte were looked at again for every sequence before it.
    let half = 1 << 19;
    for unit in
        ["\x1b]", "\x1b[", "\x1b[;", "\r", "a\x08", "\x1bP\x07", "a\r\x1b[K", "\x1b(", "\u{20ac}\x08", "\x1b[1;1Ha"]
    {
        let raw = unit.repeat(half / unit.len());
        let found = strip_ansi(raw.as_bytes());
        assert!(found.complete <= raw.len());
    }
    let raw = format!("{}{}", "\x1b]x".repeat(half / 3), "y".repeat(half));
    assert!(strip_ansi(raw.as_bytes()).bytes.len() >= half);
}

fn excerpt(head: &[u8], tail: &[u8], omitted: u64) -> Excerpt {
    let total = (head.len() + tail.len()) as u64 + omitted;
    Excerpt { head: head.to_vec(), tail: tail.to_vec(), omitted, total }
}

#[test]
fn an_excerpt_is_cut_at_borders_and_counts_what_is_missing() {
    for (head, tail, omitted, expected) in [
        ("one\ntwo\n".as_bytes(), &b""[..], 0, "one\ntwo\n"),
        (b"a\xe2\x82", b"\xacb", 0, "a\u{20ac}b"),
        (b"12345678", b"abcdefgh", 10, "12345678\n[... 10 bytes left out; read them with proc_read ...]\nabcdefgh"),
        (b"line 1\nx", b"y\nline 9", 10, "line 1\n[... 13 bytes left out; read them with proc_read ...]\nline 9"),
        (b"1\nline 2", b"line 8\n9", 10, "1\nline 2\n[... 10 bytes left out; read them with proc_read ...]\nline 8\n9"),
        (b"abc\xe2\x82", b"\xac12345", 10, "abc\n[... 13 bytes left out; read them with proc_read ...]\n12345"),
        (b"", b"", 10, "[... 10 bytes left out; read them with proc_read ...]\n"),
    ] {
        let shown = excerpt_text(&excerpt(head, tail, omitted));
        assert_eq!((shown.text.as_str(), shown.invalid_utf8), (expected, 0));
    }
    let broken = excerpt_text(&excerpt(b"a\xff", b"\xffb", 1));
    assert_eq!(broken.invalid_utf8, 2, "bytes that are no character are not a border");
}

#[test]
fn random_excerpts_never_lose_count() {
    let mut seeded = Seeded(7);
    for round in 0..500 {
        let (head, tail) = (seeded.bytes(round % 40), seeded.bytes(round % 23));
        excerpt_text(&excerpt(&head, &tail, 5));
        excerpt_text(&excerpt(&head, &tail, 0));
    }
}
