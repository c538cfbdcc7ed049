//! Generated trees, searched here by a model that knows no index, thread or buffer.

use super::{Case, Dice, Kind, Match, Request, Tree, pages};
use std::path::PathBuf;

const WORDS: [&str; 8] = ["alpha", "Beta", "gamma", "delta", "a.b", "x", "", "déjà"];

/// Files with their lines, in path order.
fn grow(tree: &Tree, dice: &mut Dice) -> Vec<(String, Vec<String>)> {
    let mut files = Vec::new();
    for _ in 0..dice.roll(60) {
        let mut path = PathBuf::new();
        for _ in 0..dice.roll(4) {
            path.push(["sub", "sub.d", "a", "z-dir"][dice.roll(4) as usize]);
        }
        path.push(format!("f{}.{}", dice.roll(30), ["rs", "txt"][dice.roll(2) as usize]));
        let text: Vec<String> = (0..dice.roll(40))
            .map(|_| (0..dice.roll(6)).map(|_| WORDS[dice.roll(8) as usize]).collect::<Vec<_>>().join(" "))
            .collect();
        let mut bytes = text.join("\n");
        if !text.is_empty() && dice.roll(2) == 0 {
            bytes.push('\n');
        }
        tree.write(&path, bytes.as_bytes());
        files.retain(|(old, _)| *old != path);
        files.push((path, bytes.lines().map(str::to_owned).collect()));
    }
    files.sort_by(|a, b| a.0.components().cmp(b.0.components()));
    files.into_iter().map(|(path, lines)| (path.to_str().unwrap().to_owned(), lines)).collect()
}

/// What a search must find: path, line, columns, text, lines before, lines after.
type Expected = (String, u64, Vec<u64>, String, Vec<String>, Vec<String>);

fn expect(files: &[(String, Vec<String>)], word: &str, folds: bool, context: usize) -> Vec<Expected> {
    let fold = |text: &str| if folds { text.to_ascii_lowercase() } else { text.to_owned() };
    let mut expected = Vec::new();
    for (path, lines) in files {
        for (number, line) in lines.iter().enumerate() {
            let columns: Vec<u64> = fold(line).match_indices(&fold(word)).map(|(at, _)| at as u64 + 1).collect();
            if !columns.is_empty() {
                let before = lines[number.saturating_sub(context)..number].to_vec();
                let after = lines[number + 1..lines.len().min(number + 1 + context)].to_vec();
                expected.push((path.clone(), number as u64 + 1, columns, line.clone(), before, after));
            }
        }
    }
    expected
}

#[test]
fn lines_columns_and_context_are_those_of_the_model() {
    let mut dice = Dice(0x5eed);
    for round in 0..25 {
        let tree = Tree::new();
        let files = grow(&tree, &mut dice);
        for (word, case) in
            [("alpha", Case::Smart), ("Beta", Case::Smart), ("bETA", Case::Insensitive), ("a.b", Case::Sensitive)]
        {
            let context = dice.roll(4) as usize;
            let folds = case == Case::Insensitive || (case == Case::Smart && word == "alpha");
            let request = Request { literal: true, case, context, ..tree.request(word) };
            let (found, _) = pages(&request, 1 + dice.roll(50) as usize).unwrap();
            let found: Vec<Expected> = found
                .into_iter()
                .map(|found| match found {
                    Match::Line(line) => {
                        let columns = if line.columns.is_empty() { vec![line.column] } else { line.columns };
                        (line.path, line.line, columns, line.text, line.before, line.after)
                    }
                    Match::Entry(entry) => panic!("{entry:?} is no line"),
                })
                .collect();
            assert_eq!(found, expect(&files, word, folds, context), "round {round}, `{word}`, context {context}");
        }
    }
}

#[test]
fn names_are_those_of_the_model() {
    let mut dice = Dice(0xfeed);
    for round in 0..25 {
        let tree = Tree::new();
        let files = grow(&tree, &mut dice);
        for word in ["f1", ".rs", "sub"] {
            let request = Request { kind: Kind::Files, literal: true, ..tree.request(word) };
            let (found, _) = pages(&request, 1 + dice.roll(20) as usize).unwrap();
            let mut found: Vec<&str> = found.iter().map(super::path_of).collect();
            found.retain(|path| tree.0.join(path).is_file());
            let expected: Vec<&str> =
                files.iter().map(|(path, _)| path.as_str()).filter(|path| path.contains(word)).collect();
            assert_eq!(found, expected, "round {round}, `{word}`");
        }
    }
}
