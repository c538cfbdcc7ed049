//! Text for a terminal: columns, times, sizes, and commands that cannot do anything to it.

/// In one line and without what a terminal would obey.
pub fn one_line(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c.is_control() || is_invisible(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// Characters that turn the direction of others or hide (Unicode, Cf).
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// At most so many characters.
pub fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// `42s`, `7m03s`, `3h20m`, `2d4h`.
pub fn time(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..60 => format!("{seconds}.{}s", millis % 1000 / 100),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Three digits and a unit.
pub fn size(bytes: u64) -> String {
    let units = ["B", "K", "M", "G", "T"];
    let mut amount = bytes as f64;
    let mut unit = 0;
    while amount >= 1000.0 && unit + 1 < units.len() {
        amount /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes}B"),
        _ if amount < 10.0 => format!("{amount:.1}{}", units[unit]),
        _ => format!("{amount:.0}{}", units[unit]),
    }
}

/// Columns as wide as what is in them; the last is cut at the width of the terminal, if there is one.
pub fn columns(rows: &[Vec<String>], width: Option<usize>) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..count.saturating_sub(1)).map(|column| widest(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let padded = row.iter().enumerate().map(|(column, cell)| match widths.get(column) {
            Some(width) => format!("{cell:width$}  "),
            None => cell.clone(),
        });
        let line = padded.collect::<String>();
        width.map_or(line.clone(), |width| cut(&line, width)).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_cannot_talk_to_the_terminal() {
        let shown = one_line("echo\t'\x1b]0;x\x07'\nrm \u{202e}txt \u{e9}");
        assert_eq!(shown, "echo\\t'\\u{1b}]0;x\\u{7}'\\nrm \\u{202e}txt \u{e9}");
    }

    #[test]
    fn times_and_sizes_are_short() {
        let times = [0, 1_540, 61_000, 3_600_000, 90_000_000].map(time);
        assert_eq!(times, ["0.0s", "1.5s", "1m01s", "1h00m", "1d1h"]);
        let sizes = [0, 999, 1024, 10 << 20, 1 << 30].map(size);
        assert_eq!(sizes, ["0B", "999B", "1.0K", "10M", "1.0G"]);
    }

    #[test]
    fn the_last_column_is_cut_at_the_width() {
        let rows = [vec!["a".to_owned(), "long command".into()], vec!["bbb".into(), "x".into()]];
        assert_eq!(columns(&rows, Some(9)), ["a    lon…", "bbb  x"]);
        assert_eq!(columns(&rows, None), ["a    long command", "bbb  x"]);
    }
}
