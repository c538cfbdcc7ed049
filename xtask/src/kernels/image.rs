//! The two disks of a guest: a Debian userland, made once, and the payload of this run.
//!
//! The userland is a real one, made by mmdebstrap from this machine's own release so that its C
//! library fits our binaries. It is attached with a snapshot, so each boot finds it as it was made.

use super::archive::{codename, sources};
use crate::packages;
use crate::shell::{About, Result, find_program, is_root, repo, run, run_quietly};
use crate::stage::{Built, Stage};
use crate::test::STRESS;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Brings the machine up and calls the runner; the results leave by the second serial line.
const INIT: &str = r#"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=755 tmpfs /run
mount -t cgroup2 -o nsdelegate cgroup2 /sys/fs/cgroup
ln -sf /proc/self/fd /dev/fd
ip link set lo up
hostname guest
# Tests may carry the path of the checkout they were built in.
checkout=$(cat /payload/checkout)
mkdir -p "$(dirname "$checkout")"
ln -s /var/cache/stockade-guest/repo "$checkout"
stty -F /dev/ttyS1 raw -echo
/payload/xtask guest $(cat /payload/words) > /dev/ttyS1
echo "runner ended with $?"
sleep 1
echo o > /proc/sysrq-trigger
while :; do sleep 1; done
"#;

/// What a machine that builds us has anyway: a shell, a toolchain.
const MORE: &[&str] = &["bash", "cargo", "mount"];

/// The userland disk, from the cache or made now.
pub fn userland(cache: &Path) -> Result<PathBuf> {
    let release = codename()?;
    let disk = cache.join(format!("userland-{release}.ext4"));
    let list = cache.join(format!("userland-{release}.packages"));
    let wanted: Vec<&str> = packages::all().chain(MORE.iter().copied()).collect();
    let wanted = wanted.join(",");
    if disk.exists() && fs::read_to_string(&list).is_ok_and(|text| text == wanted) {
        return Ok(disk);
    }
    if !is_root() {
        return Err("making the userland needs root\nhint: run `cargo xtask kernels` once as root".into());
    }
    if find_program("mmdebstrap").is_none() {
        packages::install(&["mmdebstrap"])?;
    }
    println!("  make the userland ({release})");
    let tree = cache.join("userland");
    let _ = fs::remove_dir_all(&tree);
    let mut make = Command::new("mmdebstrap");
    make.args(["--quiet", "--variant=essential", "--format=directory"]);
    make.arg("--aptopt=APT::Install-Recommends \"false\"");
    make.arg(format!("--include={wanted}"));
    make.arg("--customize-hook=mkdir -p \"$1/payload\"");
    make.arg(&release).arg(&tree).arg(sources(&[&release])?);
    run(&mut make)?;
    make_disk(&tree, &disk, "512M")?;
    fs::remove_dir_all(&tree).about(tree.display())?;
    fs::write(&list, &wanted).about(list.display())?;
    Ok(disk)
}

/// The payload disk: the staged tests, the runner (ourselves) and what it is to do.
pub fn payload(cache: &Path, built: &Built, words: &[String]) -> Result<PathBuf> {
    let tree = cache.join("payload");
    let _ = fs::remove_dir_all(&tree);
    let stage = Stage::fill(&tree.join("stage"), built, |binary| binary.integration && binary.name != STRESS)?;
    for program in stage.tests()?.iter().chain([&stage.program("stockade"), &stage.program("probe")]) {
        run_quietly(Command::new("strip").arg("--strip-debug").arg(program))?;
    }
    let runner = std::env::current_exe().about("ourselves")?;
    fs::copy(runner, tree.join("xtask")).about("copy ourselves")?;
    fs::write(tree.join("init"), INIT).about("init")?;
    let checkout = repo().canonicalize().about("the checkout")?;
    fs::write(tree.join("checkout"), checkout.as_os_str().as_encoded_bytes()).about("checkout")?;
    fs::write(tree.join("words"), words.join(" ")).about("words")?;
    let disk = cache.join("payload.ext4");
    make_disk(&tree, &disk, "64M")?;
    Ok(disk)
}

/// Packs a directory into an ext4 disk with some room to write.
fn make_disk(tree: &Path, disk: &Path, room: &str) -> Result {
    let size = crate::shell::output(Command::new("du").args(["-s", "--block-size=1M"]).arg(tree))?;
    let size: u64 = size.split_whitespace().next().unwrap_or("0").parse().about("du")?;
    let room: u64 = room.trim_end_matches('M').parse().about("room")?;
    let _ = fs::remove_file(disk);
    let mut make = Command::new("mke2fs");
    make.args(["-q", "-t", "ext4", "-m", "0", "-d"]);
    // Small files round up to blocks and the journal takes its share.
    make.arg(tree).arg(disk).arg(format!("{}M", size + size / 5 + room));
    run_quietly(&mut make)
}
