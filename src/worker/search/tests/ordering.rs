//! The order of results: the same on every run, and the same from the first page to the last.

use super::super::order::Order;
use super::{Dice, Tree, pages, paths};
use std::collections::HashMap;

#[test]
fn twenty_runs_give_the_same_pages() {
    let tree = Tree::new();
    for number in 0..600 {
        // Files of very different length, so that hands overtake each other.
        let text = "needle\n".repeat(1 + number % 7) + &"hay\n".repeat(number * number % 9973);
        tree.write(format!("d{}/e{}/f{number}", number % 5, number % 13), text.as_bytes());
    }
    let (first, _) = pages(&tree.request("needle"), 37).unwrap();
    assert_eq!(first.len(), (0..600).map(|number| 1 + number % 7).sum::<usize>());
    for run in 1..20 {
        let (again, _) = pages(&tree.request("needle"), 1 + 50 * run).unwrap();
        assert!(again == first, "run {run} differs");
    }
}

#[test]
fn a_directory_comes_where_its_name_does() {
    let tree = Tree::with(&[("a.txt", "x"), ("a/z", "x"), ("a-b", "x"), ("B", "x"), ("a/a", "x")]);
    assert_eq!(paths(&tree.request("x")), ["B", "a/a", "a/z", "a-b", "a.txt"]);
    assert_eq!(paths(&tree.names("")), ["B", "a", "a/a", "a/z", "a-b", "a.txt"]);
}

/// A tree in numbers: an entry is a directory or a file with so many matches.
#[test]
fn whoever_works_when_the_order_is_that_of_the_tree() {
    let mut dice = Dice(7);
    for _ in 0..300 {
        let mut tree: HashMap<u64, Vec<Option<u64>>> = HashMap::new();
        let expected = plant(&mut tree, 0, 0, &mut dice);
        let mut order = Order::new(0, tree[&0].len() as u32);
        let mut given = Vec::new();
        let mut hands = Vec::new();
        while !order.is_empty() {
            if hands.len() < 4 && dice.roll(2) == 0 {
                hands.extend(order.take());
            } else if !hands.is_empty() {
                let taken = hands.swap_remove(dice.roll(hands.len() as u64) as usize);
                match tree[&taken.of][taken.index as usize] {
                    Some(child) => order.expand(taken.place, child, tree[&child].len() as u32),
                    None => {
                        for number in 0..taken.index % 3 {
                            order.add(taken.place, (taken.of, taken.index, number));
                            order.release(|found| given.push(found));
                        }
                    }
                }
                order.finish(taken.place);
                order.release(|found| given.push(found));
            }
        }
        assert!(hands.is_empty(), "the order was empty while hands were at work");
        assert_eq!(given, expected);
    }
}

fn plant(tree: &mut HashMap<u64, Vec<Option<u64>>>, id: u64, depth: u64, dice: &mut Dice) -> Vec<(u64, u32, u32)> {
    let mut entries = Vec::new();
    let mut expected = Vec::new();
    tree.insert(id, Vec::new());
    for index in 0..dice.roll(7) as u32 {
        if dice.roll(3) == 0 && depth < 4 {
            let child = tree.len() as u64;
            expected.extend(plant(tree, child, depth + 1, dice));
            entries.push(Some(child));
        } else {
            expected.extend((0..index % 3).map(|number| (id, index, number)));
            entries.push(None);
        }
    }
    tree.insert(id, entries);
    expected
}
