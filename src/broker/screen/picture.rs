//! A screen as another terminal can show it: rows of text and colour, made from cells, so that nothing in them talks to
//! that terminal; and the shortest way from one picture to the next.

use super::TEXT_SELECTOR;
use crate::sys::terminal::Size;
use std::fmt::Write;

/// What a window shows of a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    window: Size,
    rows: Vec<String>,
    /// None: hidden.
    cursor: Option<(u16, u16)>,
    /// What the program expects of keys: application modes, bracketed paste.
    modes: String,
}

impl Picture {
    pub(super) fn of(screen: &vt100::Screen, window: Size) -> Picture {
        let (at_row, at_col) = super::within(screen.cursor_position(), screen.size());
        let (height, width) = (window.rows.max(1), window.cols.max(1));
        let top = (at_row + 1).saturating_sub(height);
        // Of the full width, rows would be made to follow from one another.
        let shown = width.min(screen.size().1.get());
        let whole = if shown == screen.size().1.get() { shown.saturating_add(1) } else { shown };
        let rows = screen.rows_formatted(0, whole).skip(usize::from(top)).take(usize::from(height));
        Picture {
            window,
            rows: rows.map(|row| row.replace(TEXT_SELECTOR, "")).collect(),
            cursor: (!screen.hide_cursor()).then_some((at_row - top, at_col.min(width - 1))),
            modes: screen.input_mode_formatted(),
        }
    }

    /// What makes a window that shows `before` show this; of another size or none, everything.
    pub fn changes(&self, before: Option<&Picture>) -> Vec<u8> {
        if before == Some(self) {
            return Vec::new();
        }
        let before = before.filter(|before| before.window == self.window && before.rows.len() == self.rows.len());
        let mut text = String::from("\x1b[?25l");
        if before.is_none() {
            // Without wrapping, a row that is too long is cut.
            text.push_str("\x1b[m\x1b[2J\x1b[?7l");
        }
        for (index, row) in self.rows.iter().enumerate() {
            if before.is_none_or(|before| before.rows[index] != *row) {
                let _ = write!(text, "\x1b[{};1H\x1b[m\x1b[2K{row}", index + 1);
            }
        }
        text.push_str("\x1b[m");
        if before.is_none_or(|before| before.modes != self.modes) {
            text.push_str(&self.modes);
        }
        if let Some((row, col)) = self.cursor {
            let _ = write!(text, "\x1b[{};{}H\x1b[?25h", row + 1, col + 1);
        }
        text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Terminal;
    use super::*;

    const WHOLE: Size = Size { rows: 4, cols: 20 };

    fn terminal(text: &[u8]) -> Terminal {
        let mut terminal = Terminal::new(WHOLE);
        terminal.feed(text);
        terminal
    }

    /// What a terminal of the window's size shows after these bytes.
    fn shown(window: Size, pieces: &[Vec<u8>]) -> Vec<String> {
        let mut viewer = Terminal::new(window);
        pieces.iter().for_each(|piece| viewer.feed(piece));
        viewer.show().lines
    }

    #[test]
    fn a_picture_and_its_changes_show_the_screen() {
        let mut source = terminal(b"\x1b[31mred\x1b[m plain\r\nsecond row that wraps around\x1b[4;10Hlast");
        let first = source.picture(WHOLE);
        source.feed(b"\x1b[2;1H\x1b[2Knew");
        let second = source.picture(WHOLE);
        let change = second.changes(Some(&first));
        assert_eq!(shown(WHOLE, &[first.changes(None), change.clone()]), source.show().lines);
        assert!(!String::from_utf8_lossy(&change).contains("red"), "rows that stay are not sent again");
        assert!(second.changes(Some(&second)).is_empty());
    }

    #[test]
    fn a_small_window_is_cut_and_keeps_the_cursor_in_sight() {
        let source = terminal(b"one-and-more\r\ntwo\r\nthree\r\nfour");
        let window = Size { rows: 2, cols: 5 };
        assert_eq!(shown(window, &[source.picture(window).changes(None)]), ["three", "four"]);
    }

    #[test]
    fn nothing_a_program_prints_talks_to_the_viewers_terminal() {
        let source =
            terminal(b"\x1b]52;c;aGk=\x07\x1b]0;title\x07\x1b[6n\x1b[c\x1bP+q\x1b\\\x1b[21t\x05text\x1b[?1049h!");
        let sent = source.picture(WHOLE).changes(None);
        let sent = String::from_utf8_lossy(&sent);
        assert!(sent.contains('!') && !sent.contains("\x1b]") && !sent.contains("\x1bP"), "{sent:?}");
        assert!(!super::super::has_query(sent.as_bytes()) && !sent.contains('\x05'), "{sent:?}");
    }
}
