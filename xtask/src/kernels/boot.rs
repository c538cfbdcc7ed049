//! One boot: qemu with a kernel and two disks, watched until it ends or its time is up.
//!
//! The kernel's console goes to a log file; the second serial line carries the results and is
//! read here line by line. A guest that does not come up, or does not end, is killed.

use super::guest::{END, UP};
use super::kernel::{Bootable, qemu};
use crate::shell::{About, Result};
use crate::suite::{Tally, follow};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

/// Measured: 10 to 25 s without hardware help on two busy cores.
const UP_WITHIN: Duration = Duration::from_secs(180);

/// What a boot is given.
#[derive(Debug)]
pub struct Boot<'a> {
    pub cache: &'a Path,
    pub name: &'a str,
    pub kernel: &'a Bootable,
    pub userland: &'a Path,
    pub payload: &'a Path,
    pub accelerator: &'a str,
    pub limit: Duration,
}

/// What a boot gave.
#[derive(Debug, Default)]
pub struct Report {
    pub up_after: Option<Duration>,
    pub took: Duration,
    /// One tally for each identity that finished.
    pub tallies: Vec<(String, Tally)>,
    /// Why the guest did not get to its end.
    pub trouble: Option<String>,
}

impl Boot<'_> {
    pub fn log(&self) -> PathBuf {
        self.cache.join(format!("{}.log", self.name))
    }

    pub fn run(&self) -> Result<Report> {
        let start = Instant::now();
        let mut child = self.start()?;
        let out = child.stdout.take().ok_or("qemu has no output")?;
        let lines = follow(out);
        let mut report = Report::default();
        report.trouble = listen(&lines, start, self.limit, &mut report);
        if report.trouble.is_none() {
            // The guest powers itself off; it has nothing more to say.
            thread::sleep(Duration::from_millis(200));
        }
        let _ = child.kill();
        let _ = child.wait();
        report.took = start.elapsed();
        Ok(report)
    }

    fn start(&self) -> Result<Child> {
        let log = self.log();
        let errors = File::create(self.cache.join("qemu.log")).about("qemu.log")?;
        let _ = fs::remove_file(&log);
        let mut command = qemu(self.cache)?;
        command.args(["-machine", "q35", "-cpu", "max", "-smp", "2", "-m", "3072"]);
        command.args(["-accel", self.accelerator]);
        command.args(["-nodefaults", "-display", "none", "-no-reboot"]);
        command.arg("-kernel").arg(&self.kernel.image);
        command.arg("-initrd").arg(&self.kernel.initramfs);
        command.arg("-append");
        command.arg("console=ttyS0 loglevel=4 panic=-1 random.trust_cpu=on");
        command.arg("-serial").arg(format!("file:{}", log.display()));
        command.args(["-serial", "stdio"]);
        for disk in [self.userland, self.payload] {
            let disk = disk.display();
            let drive = format!("file={disk},format=raw,if=virtio,snapshot=on,cache=unsafe");
            command.args(["-drive", &drive]);
        }
        command.args(["-device", "virtio-rng-pci"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        command.spawn().about("qemu-system-x86_64")
    }
}

/// Follows the results until the end mark; gives back why it stopped earlier.
fn listen(lines: &Receiver<String>, start: Instant, limit: Duration, report: &mut Report) -> Option<String> {
    loop {
        let allowed = if report.up_after.is_some() { limit } else { UP_WITHIN };
        let left = allowed.saturating_sub(start.elapsed());
        let Ok(line) = lines.recv_timeout(left) else {
            let seconds = start.elapsed().as_secs();
            return Some(match report.up_after {
                None => format!("did not come up ({seconds} s)"),
                Some(_) => format!("did not get to its end ({seconds} s)"),
            });
        };
        if line == END {
            return None;
        }
        if line == UP {
            report.up_after = Some(start.elapsed());
        } else {
            println!("{line}");
        }
        if let Some((who, text)) = line.split_once(": ")
            && let Some(tally) = Tally::parse(text)
        {
            report.tallies.push((who.to_owned(), tally));
        }
    }
}
