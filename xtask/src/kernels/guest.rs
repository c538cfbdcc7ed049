//! Inside the virtual machine: the same rounds as `cargo xtask test`, on this kernel.
//!
//! Not for people: `/payload/init` calls it as `xtask guest walls|refusal [FILTER…]` once the
//! machine is up. Results go to standard output, a second serial line that only we read.

use crate::identity::{Identity, Who};
use crate::round::Round;
use crate::shell::{About, Result};
use crate::stage::Stage;
use crate::suite::{BINARY_LIMIT_SECONDS, Tally};
use std::process::Stdio;

/// The last line of a guest that got to the end.
pub const END: &str = "guest: end";
/// The first line of a guest.
pub const UP: &str = "guest: up";

/// Where the second disk is, and where the rounds may write.
const STAGE: &str = "/payload/stage";
const WORK: &str = "/var/cache/stockade-guest";

pub fn run(words: &[String]) -> Result {
    let (mode, filters) = words.split_first().ok_or("guest: what to run?")?;
    println!("{UP}");
    let copied = std::process::Command::new("cp").args(["-r", STAGE, WORK]).status();
    copied.about("copy the stage")?;
    let stage = Stage { dir: WORK.into() };
    let round = Round {
        stage: &stage,
        filters,
        limit_seconds: 2 * BINARY_LIMIT_SECONDS,
        toolchain: None,
        env: vec![("STOCKADE_TEST_SLOW".into(), "1".into())],
    };
    for identity in [Identity::root(), Identity::user()?] {
        let tally = match mode.as_str() {
            "refusal" => refuses(&round, &identity),
            _ => round.run(&identity),
        };
        println!("{}: {}", identity.who, tally?);
    }
    println!("{END}");
    Ok(())
}

/// The exit code of a refusal: nothing was started.
const REFUSED: i32 = 125;

/// Without Landlock `stockade` must refuse, start nothing, and say why.
fn refuses(round: &Round, identity: &Identity) -> Result<Tally> {
    let own = round.stage.dir.join(identity.who.to_string());
    for folder in ["", "home", "tmp"] {
        identity.make_directory(&own.join(folder))?;
    }
    let mut tally = Tally::default();
    for words in [&["doctor"][..], &["run", "--", "true"]] {
        let program = round.stage.program("stockade");
        let mut command = round.command(identity, &program);
        let done = command.args(words).stdin(Stdio::null()).output();
        let done = done.about("stockade")?;
        let text = [done.stdout, done.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        println!("-- stockade {}: {}\n{text}", words.join(" "), done.status);
        let says = |word: &str| text.to_lowercase().contains(word);
        // `doctor` tells of every wall; `run` names the first one that stops it.
        let named = says("kernel") && (says("landlock") || words[0] == "run");
        let refused = done.status.code() == Some(REFUSED) || words[0] == "doctor";
        let passed = named && refused && !done.status.success();
        println!("{}", claim(words, identity.who, passed));
        tally += Tally { passed: u32::from(passed), failed: u32::from(!passed), skipped: 0 };
    }
    Ok(tally)
}

fn claim(words: &[&str], who: Who, holds: bool) -> String {
    let verdict = if holds { "ok" } else { "FAILED" };
    let words = words.join(" ");
    format!("test `stockade {words}` as {who} refuses and names what the kernel lacks ... {verdict}")
}
