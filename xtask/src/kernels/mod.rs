//! `cargo xtask kernels`: the wall tests on other kernels, in virtual machines without hardware help.
//!
//! Kernels come from Debian's archive through this machine's own apt set-up and stay, with the userland, in
//! `target/kernels`; remove it to fetch newer ones. On a kernel without Landlock the right answer
//! is a refusal, and that is what is checked there. Not part of `.ci/run`: it takes minutes.

mod archive;
mod boot;
mod cpio;
pub mod guest;
mod image;
mod kernel;

use crate::shell::{About, Result, repo};
use crate::stage;
use boot::{Boot, Report};
use kernel::{Expect, KERNELS, Kernel};
use std::fs;
use std::path::Path;
use std::time::Duration;

pub const USAGE: &str =
    "kernels [5.10|6.1|6.12|newest|all]… [--kvm] [--minutes N] [FILTER…]   the wall tests on other kernels";

/// The words of the command line, understood.
#[derive(Debug)]
struct Request {
    kernels: Vec<Kernel>,
    accelerator: &'static str,
    limit: Duration,
    filters: Vec<String>,
}

pub fn run(words: &[String]) -> Result {
    let request = Request::parse(words)?;
    let cache = repo().join("target/kernels");
    fs::create_dir_all(&cache).about(cache.display())?;
    let built = stage::build()?;
    let userland = image::userland(&cache)?;
    let mut rows = Vec::new();
    for kernel in &request.kernels {
        println!("\n==== {}", kernel.name);
        let mode = match kernel.expect {
            Expect::Walls => "walls",
            Expect::Refusal => "refusal",
        };
        let mut task = vec![mode.to_owned()];
        task.extend(request.filters.iter().cloned());
        let bootable = kernel.prepare(&cache)?;
        let payload = image::payload(&cache, &built, &task)?;
        let boot = Boot {
            cache: &cache,
            name: kernel.name,
            kernel: &bootable,
            userland: &userland,
            payload: &payload,
            accelerator: request.accelerator,
            limit: request.limit,
        };
        let report = boot.run()?;
        if report.trouble.is_some() {
            show_end_of(&boot.log());
        }
        rows.push((*kernel, bootable.release, report));
    }
    conclude(&rows)
}

impl Request {
    fn parse(words: &[String]) -> Result<Request> {
        let mut request = Request {
            kernels: Vec::new(),
            accelerator: "tcg,thread=multi",
            limit: Duration::from_secs(40 * 60),
            filters: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let known = KERNELS.iter().find(|kernel| kernel.name == word);
            match (word.as_str(), known) {
                (_, Some(kernel)) => request.kernels.push(*kernel),
                ("all", _) => request.kernels.extend(KERNELS),
                ("--kvm", _) => request.accelerator = "kvm",
                ("--minutes", _) => {
                    let minutes = words.next().and_then(|word| word.parse::<u64>().ok());
                    let minutes = minutes.ok_or("`--minutes` wants a number")?;
                    request.limit = Duration::from_secs(minutes * 60);
                }
                (flag, _) if flag.starts_with('-') => {
                    return Err(format!("unknown flag `{flag}`\nusage: {USAGE}"));
                }
                (filter, _) => request.filters.push(filter.to_owned()),
            }
        }
        if request.kernels.is_empty() {
            request.kernels.extend(KERNELS);
        }
        Ok(request)
    }
}

/// Prints the table and turns any failure into an error.
fn conclude(rows: &[(Kernel, String, Report)]) -> Result {
    println!("\n{:8} {:26} {:>6} {:>7}  result", "kernel", "release", "up", "total");
    let mut sound = true;
    for (kernel, release, report) in rows {
        let up = report.up_after.map_or("-".into(), |up| format!("{} s", up.as_secs()));
        let total = format!("{} s", report.took.as_secs());
        let tallies = report.tallies.iter();
        let mut results: Vec<_> = tallies.map(|(who, tally)| format!("{who}: {tally}")).collect();
        results.extend(report.trouble.clone());
        sound &= report.is_sound();
        println!("{:8} {release:26} {up:>6} {total:>7}  {}", kernel.name, results.join("; "));
    }
    if sound { Ok(()) } else { Err("not every kernel gave the right answer".into()) }
}

impl Report {
    fn is_sound(&self) -> bool {
        self.trouble.is_none() && self.tallies.len() == 2 && self.tallies.iter().all(|(_, tally)| tally.failed == 0)
    }
}

fn show_end_of(log: &Path) {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(30);
    println!("-- the end of {}:\n{}", log.display(), lines[from..].join("\n"));
}
