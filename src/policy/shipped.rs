//! The policies that come with stockade, embedded so that their names always work.

/// Name and text of each, `default` first.
const SHIPPED: [(&str, &str); 9] = [
    ("default", include_str!("../../policies/default.toml")),
    ("read-only", include_str!("../../policies/read-only.toml")),
    ("coder", include_str!("../../policies/coder.toml")),
    ("repl", include_str!("../../policies/repl.toml")),
    ("debugger", include_str!("../../policies/debugger.toml")),
    ("build", include_str!("../../policies/build.toml")),
    ("git-read", include_str!("../../policies/git-read.toml")),
    ("reverse", include_str!("../../policies/reverse.toml")),
    ("networked", include_str!("../../policies/networked.toml")),
];

/// What every policy starts from: nothing granted, everything bounded.
pub(super) const BASE: &str = include_str!("base.toml");

pub fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

pub fn text(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The sentence a shipped policy opens with: whom it is for.
pub fn summary(name: &str) -> Option<String> {
    let opening = text(name)?.lines().map_while(|line| line.strip_prefix('#'));
    Some(opening.map(str::trim).collect::<Vec<_>>().join(" "))
}
