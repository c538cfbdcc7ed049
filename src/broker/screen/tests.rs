//! A terminal shows what a person would see, replies what a terminal would reply, and survives everything.

use super::*;

fn size(rows: u16, cols: u16) -> Size {
    Size { rows, cols }
}

fn shown(rows: u16, cols: u16, bytes: &[u8]) -> Screen {
    let mut terminal = Terminal::new(size(rows, cols));
    terminal.feed(bytes);
    terminal.show()
}

#[test]
fn what_is_written_stands_where_it_was_put() {
    for (what, bytes, lines) in [
        ("plain lines", &b"one\r\ntwo"[..], ["one", "two", ""]),
        ("trailing blanks", b"one   \r\n \r\n", ["one", "", ""]),
        ("a place", b"\x1b[2;3Hx", ["", "  x", ""]),
        ("colour", b"\x1b[31mred\x1b[0m", ["red", "", ""]),
        ("a cleared screen", b"old\x1b[2J\x1b[Hnew", ["new", "", ""]),
        ("scrolled", b"1\r\n2\r\n3\r\n4", ["2", "3", "4"]),
        ("wrapped", b"0123456789ab", ["0123456789", "ab", ""]),
        ("wide", "\u{65e5}\u{672c}!".as_bytes(), ["\u{65e5}\u{672c}!", "", ""]),
        ("wide at the border", "12345678\u{65e5}x".as_bytes(), ["12345678\u{65e5}", "x", ""]),
        ("combining", "e\u{301}x".as_bytes(), ["e\u{301}x", "", ""]),
        ("the alternate screen", b"shell\x1b[?1049h\x1b[Hvim", ["vim", "", ""]),
        ("back from it", b"shell\x1b[?1049h\x1b[Hvim\x1b[?1049l", ["shell", "", ""]),
        ("repeated", b"x\x1b[4b", ["xxxxx", "", ""]),
        ("overwritten", b"10%\r20%", ["20%", "", ""]),
    ] {
        assert_eq!(shown(3, 10, bytes).lines, lines, "{what}");
    }
}

#[test]
fn cursor_title_and_size_are_told() {
    let screen = shown(4, 20, b"\x1b]0;a \x01title\x07$ ");
    assert_eq!((screen.rows, screen.cols, screen.cursor, screen.title.as_str()), (4, 20, (0, 2), "a title"));
    assert_eq!(shown(2, 3, b"abc").cursor, (0, 2), "a cursor that waits to wrap is still on the screen");
    assert_eq!(shown(2, 3, b"\x1b]2;other\x1b\\").title, "other");
}

#[test]
fn characters_and_sequences_may_come_byte_by_byte() {
    let mut terminal = Terminal::new(size(2, 10));
    for byte in "\u{1b}[1;3H\u{20ac}\u{1b}]0;\u{e9}\u{7}\u{1b}[6n".as_bytes() {
        terminal.feed(&[*byte]);
    }
    let screen = terminal.show();
    assert_eq!((screen.lines[0].as_str(), screen.title.as_str()), ("  \u{20ac}", "\u{e9}"));
    assert_eq!(terminal.answers(), b"\x1b[1;4R");
}

#[test]
fn questions_are_answered_where_they_were_asked() {
    for (asked, reply) in [
        (&b"\x1b[5n"[..], &b"\x1b[0n"[..]),
        (b"\x1b[6n", b"\x1b[1;1R"),
        (b"ab\r\nc\x1b[6nmore", b"\x1b[2;2R"),
        (b"\x1b[999;999H\x1b[6n", b"\x1b[24;80R"),
        (b"\x1b[c", b"\x1b[?62;22c"),
        (b"\x1b[0c", b"\x1b[?62;22c"),
        (b"\x1b[>c", b"\x1b[>0;0;0c"),
        (b"\x1b[>0c", b"\x1b[>0;0;0c"),
        (b"\x1b[5n\x1b[c", b"\x1b[0n\x1b[?62;22c"),
        (b"\x1b[?1c", b""),
        (b"\x1b[=c", b""),
        (b"\x1b[1c", b""),
        (b"\x1b[5;6n", b""),
        (b"\x1b[?6n", b""),
        (b"\x1b[0n\x1b[7n\x1b]11;?\x07\x1b[18t\x1b[?2026$p\x1bP$qm\x1b\\\x1bZ\x05", b""),
    ] {
        let mut terminal = Terminal::new(size(24, 80));
        terminal.feed(asked);
        assert_eq!(terminal.answers(), reply, "{asked:?}");
        assert_eq!(terminal.answers(), b"", "an answer is given once");
    }
}

#[test]
fn answers_are_bounded() {
    let mut terminal = Terminal::new(size(24, 80));
    terminal.feed(&b"\x1b[5n".repeat(1000));
    assert_eq!(terminal.answers(), b"\x1b[0n".repeat(MAX_REPLIES));
    (0..1000).for_each(|_| terminal.feed(&b"\x1b[5n".repeat(64)));
    assert!(terminal.answers().len() <= MAX_REPLIES * 16 + 16);
    terminal.feed(b"\x1b[5n");
    assert_eq!(terminal.answers(), b"\x1b[0n");
}

#[test]
fn a_question_is_found_without_a_terminal() {
    for (bytes, asked) in [
        (&b"plain"[..], false),
        (b"\x1b[31mred\x1b[0m\x1b[2J\x1b[1;1H", false),
        (b"x\x1b[6n", true),
        (b"\x1b[c", true),
        (b"\x1b[>0c", true),
        (b"\x1b]0;[6n\x07", false),
        (b"[6n", false),
        (b"\x1b[6", false),
        (b"", false),
    ] {
        assert_eq!(has_query(bytes), asked, "{bytes:?}");
    }
    let mut watch = QueryWatch::default();
    assert!(!watch.sees(b"text\x1b["));
    assert!(!watch.sees(b"6"));
    assert!(watch.sees(b"n"));
    assert!(!watch.sees(b"n"));
}

#[test]
fn a_terminal_can_be_resized_and_has_bounds() {
    let mut terminal = Terminal::new(size(3, 10));
    terminal.feed(b"0123456789\r\nb");
    terminal.resize(size(2, 5));
    assert_eq!(terminal.show().lines, ["01234", "b"]);
    terminal.resize(size(0, 0));
    assert_eq!((terminal.show().rows, terminal.show().cols), (1, 1));
    terminal.resize(size(u16::MAX, u16::MAX));
    let screen = terminal.show();
    assert_eq!((screen.rows, screen.cols, screen.lines.len()), (MAX_ROWS, MAX_COLS, usize::from(MAX_ROWS)));
    assert_eq!(terminal.faults(), 0);
}

#[test]
fn the_emulator_keeps_a_bounded_part_of_a_title() {
    struct Longest(usize);
    impl Callbacks for Longest {
        fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
            self.0 = self.0.max(title.len());
        }
    }
    let one = NonZeroU16::MIN;
    let mut parser = Parser::new_with_callbacks(one, one, 0, Longest(0));
    parser.process(b"\x1b]0;");
    (0..100).for_each(|_| parser.process(&[b'x'; 1000]));
    parser.process(b"\x07");
    assert!((1..=1024).contains(&parser.callbacks().0), "its feature `std` is on somewhere, and titles are unbounded");
    let screen = shown(1, 10, format!("\x1b]0;{}\x07ok", "\u{20ac}".repeat(5000)).as_bytes());
    assert!(screen.title.chars().count() <= MAX_TITLE && screen.lines == ["ok"]);
}

#[test]
fn huge_numbers_do_nothing_huge() {
    let mut terminal = Terminal::new(size(24, 80));
    for number in ["65535", "99999", "2147483647", "999999999999999999999", "0"] {
        for last in (b'@'..=b'~').map(char::from) {
            for private in ["", "?", ">", " "] {
                terminal.feed(format!("ab\x1b[{private}{number};{number}{last}\u{65e5}").as_bytes());
                terminal.feed(format!("\x1b[{number}{last}").as_bytes());
            }
        }
    }
    let many = ";1".repeat(10_000);
    terminal.feed(format!("\x1b[1{many}m\x1b[38;5{many}m\x1b]0{many}\x07").as_bytes());
    assert_eq!(terminal.faults(), 0);
    assert_eq!(terminal.show().lines.len(), 24);
}

#[test]
fn a_repeat_count_is_held_to_the_width_however_it_is_written() {
    for bytes in [
        &b"x\x1b[65535b"[..],
        b"x\x1b[0000000065535b",
        b"x\x1b\x01[65535b",
        b"x\x1b\x80[65535b",
        b"x\x1b[6\x025535b",
        b"x\x1b[6\x805535b",
        b"x\x1b[65535;1b",
        b"x\x1b]\x1b[65535b",
        b"x\x1bP\x1b[65535b",
        b"\xe2\x1b[mx\x1b[65535b",
    ] {
        for piece in [1, 3, 100] {
            let mut tamer = Tamer::default();
            let tamed: Vec<u8> =
                bytes.chunks(piece).flat_map(|part| tamer.tame(part, size(30, 4)).into_owned()).collect();
            assert!(tamed.ends_with(b"\x18\x1b[4b"), "{bytes:?} {tamed:?}");
            let mut terminal = Terminal::new(size(30, 4));
            bytes.chunks(piece).for_each(|part| terminal.feed(part));
            let written: usize = terminal.show().lines.iter().map(String::len).sum();
            assert!(written <= 5, "{bytes:?}");
        }
    }
    assert_eq!(Tamer::default().tame(b"x\x1b[3b\x1b[?65535b", size(30, 4)).as_ref(), b"x\x1b[3b\x1b[?65535b");
}

#[test]
fn a_screen_is_cleared_only_as_often_as_the_output_is_long() {
    for unit in ["\x1bc", "\x1b[2J", "\x1b[99L", "\x1b[?1049h", "\x1b\x01c"] {
        let (mut tamer, large) = (Tamer::default(), size(MAX_ROWS, MAX_COLS));
        let raw = unit.repeat(10_000);
        let tamed = tamer.tame(raw.as_bytes(), large).into_owned();
        let dropped = tamed.iter().filter(|byte| **byte == 0x18).count();
        assert!((9_500..10_000).contains(&dropped), "{unit:?}: {dropped}");
        tamer.tame(&[b'x'; 500], large);
        assert_eq!(tamer.tame(unit.as_bytes(), large).as_ref(), unit.as_bytes(), "credit is earned again");
    }
    let frame = format!("\x1b[H\x1b[2J{}", "load average\r\n".repeat(30));
    let mut tamer = Tamer::default();
    for _ in 0..10_000 {
        assert_eq!(tamer.tame(frame.as_bytes(), size(40, 120)).as_ref(), frame.as_bytes(), "`watch` is not touched");
    }
}

#[test]
fn an_emoji_selector_cannot_widen_a_cell_however_it_is_cut() {
    // The emulator gives up when a cell that is already drawn grows past the last column.
    for cols in 1..10 {
        for piece in [1, 2, 3, 100] {
            let mut terminal = Terminal::new(size(2, cols));
            let bytes = "1\u{fe0f}23456789\u{2764}\u{fe0f}\r\n\u{fe0f}\u{8}\u{fe0f}x".as_bytes();
            bytes.chunks(piece).for_each(|part| terminal.feed(part));
            assert_eq!(terminal.faults(), 0, "{cols} columns, pieces of {piece}");
            assert!(terminal.show().lines.iter().all(|line| !line.contains(['\u{fe0e}', '\u{fe0f}'])));
        }
    }
    assert_eq!(shown(1, 10, "a\u{2764}\u{fe0f}b".as_bytes()).lines, ["a\u{2764}b"]);
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

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 8) as usize % bound
    }
}

const PIECES: &[&str] = &[
    "\x1b[",
    "\x1b[?",
    "\x1b]0;",
    "\x1b]52;c;",
    "\x1bP",
    "\x1b_",
    "\x1b(0",
    "\x1b7",
    "\x1b8",
    "\x1bM",
    "\x1bc",
    "\x07",
    "\x1b\\",
    "1",
    "9",
    "99",
    "65535",
    "2147483647",
    ";",
    ":",
    "m",
    "H",
    "J",
    "K",
    "L",
    "M",
    "P",
    "@",
    "X",
    "S",
    "T",
    "r",
    "b",
    "d",
    "G",
    "A",
    "B",
    "C",
    "D",
    "n",
    "c",
    "6h",
    "6l",
    "1049h",
    "1049l",
    "47h",
    "47l",
    "\r",
    "\n",
    "\x08",
    "\t",
    "\u{65e5}",
    "\u{301}",
    "\u{fe0f}",
    "\u{1f600}",
    "\u{200d}",
    "abc",
    " ",
    "\x18",
    "\0",
];

#[test]
fn random_bytes_and_resize_storms_are_survived() {
    let mut seeded = Seeded(0xfee1);
    for round in 0..300 {
        let mut terminal = Terminal::new(size(1 + round % 5, 1 + round % 7));
        for _ in 0..60 {
            let mut bytes = Vec::new();
            for _ in 0..seeded.below(40) {
                match seeded.below(6) {
                    0 => bytes.push(seeded.next() as u8),
                    _ => bytes.extend_from_slice(PIECES[seeded.below(PIECES.len())].as_bytes()),
                }
            }
            terminal.feed(&bytes);
            assert_eq!(terminal.faults(), 0, "{bytes:?}");
            if seeded.below(4) == 0 {
                terminal.resize(size(seeded.below(9) as u16, seeded.below(30) as u16));
                assert_eq!(terminal.faults(), 0, "resized");
            }
            let screen = terminal.show();
            assert!(screen.cursor.0 < screen.rows && screen.cursor.1 < screen.cols);
            assert_eq!(screen.lines.len(), usize::from(screen.rows));
        }
    }
}

#[test]
fn an_emulator_that_gives_up_is_replaced() {
    let mut terminal = Terminal::new(size(2, 10));
    terminal.feed(b"\x1b]0;kept\x07before\x1b[5n");
    terminal.guarded(|_| panic!("as an emulator might"));
    terminal.feed(b"after");
    let screen = terminal.show();
    assert_eq!((screen.lines[0].as_str(), screen.title.as_str(), terminal.faults()), ("after", "kept", 1));
    assert_eq!(terminal.answers(), b"\x1b[0n");
}
