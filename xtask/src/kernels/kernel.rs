//! One kernel: fetched from Debian's archive, with the initramfs that finds the disks.
//!
//! The cloud kernels keep ext4, virtio and overlayfs in modules, so the initramfs loads those and
//! hands over to the userland on the first disk. What happens then is `guest.rs`.

use super::archive::Archive;
use super::cpio::Cpio;
use crate::shell::{About, Result, output};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the right answer of stockade is on a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The wall tests pass.
    Walls,
    /// `stockade` refuses and says what is missing.
    Refusal,
}

/// A kernel by the name a person gives it, and the suite that carries it.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    pub name: &'static str,
    suite: &'static str,
    pub expect: Expect,
}

pub const KERNELS: &[Kernel] = &[
    Kernel { name: "5.10", suite: "bullseye", expect: Expect::Refusal },
    Kernel { name: "6.1", suite: "bookworm", expect: Expect::Walls },
    Kernel { name: "6.12", suite: "trixie", expect: Expect::Walls },
    Kernel { name: "newest", suite: "sid", expect: Expect::Walls },
];

/// A kernel on disk, ready to be given to qemu.
#[derive(Debug)]
pub struct Bootable {
    pub image: PathBuf,
    pub initramfs: PathBuf,
    pub release: String,
}

/// Modules that a guest needs before its disks are there, and the filesystems the walls are made of.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_blk",
    "virtio_rng",
    // ext4 asks for these by another name, at mount time, when there is no modprobe.
    "crc32c_generic",
    "crc32c_intel",
    "ext4",
    "overlay",
];

const INIT: &str = "#!/bin/busybox sh
bb=/bin/busybox
$bb mkdir -p /proc /dev /disk
$bb mount -t proc proc /proc
$bb mount -t devtmpfs dev /dev
for module in /modules/*; do $bb insmod $module || echo \"insmod $module: $?\"; done
while [ ! -b /dev/vdb ]; do $bb sleep 0.1; done
$bb mount -t ext4 /dev/vda /disk
$bb mount -t ext4 -o ro /dev/vdb /disk/payload
$bb umount /dev
$bb umount /proc
exec $bb switch_root /disk /bin/bash /payload/init
";

impl Kernel {
    /// Fetches the kernel unless it is in the cache, and makes its initramfs.
    pub fn prepare(&self, cache: &Path) -> Result<Bootable> {
        let tree = cache.join(self.name);
        let done = tree.join("complete");
        if !done.exists() {
            self.fetch(cache, &tree)?;
            fs::write(&done, "").about(done.display())?;
        }
        let modules = find_modules(&tree)?;
        let release = modules.file_name().unwrap_or_default().to_string_lossy();
        let images = [tree.join(format!("boot/vmlinuz-{release}")), modules.join("vmlinuz")];
        let image = images.iter().find(|path| path.exists());
        let initramfs = tree.join("initramfs");
        fs::write(&initramfs, make_initramfs(&tree, &modules)?).about(initramfs.display())?;
        Ok(Bootable {
            image: image.ok_or("the kernel has no vmlinuz")?.clone(),
            initramfs,
            release: release.into_owned(),
        })
    }

    /// The newest cloud kernel of the suite; since 7.x it comes in several packages.
    fn fetch(&self, cache: &Path, tree: &Path) -> Result {
        let archive = Archive::open(cache, &[self.suite])?;
        let _ = fs::remove_dir_all(tree);
        let mut wanted = vec!["linux-image-cloud-amd64".to_owned()];
        while let Some(package) = wanted.pop() {
            let parts = ["linux-image-", "linux-binary-", "linux-modules-"];
            let depends = archive.depends(&package)?.into_iter();
            wanted.extend(depends.filter(|name| parts.iter().any(|part| name.starts_with(part))));
            if package != "linux-image-cloud-amd64" {
                println!("  fetch {package}");
                archive.unpack(&package, tree)?;
            }
        }
        archive.unpack("busybox-static", tree)
    }
}

fn make_initramfs(tree: &Path, modules: &Path) -> Result<Vec<u8>> {
    let mut cpio = Cpio::default();
    let busybox = [tree.join("bin/busybox"), tree.join("usr/bin/busybox")];
    let busybox = busybox.iter().find(|path| path.exists());
    let busybox = busybox.ok_or("busybox-static holds no busybox")?;
    cpio.directory("bin");
    cpio.program("bin/busybox", &fs::read(busybox).about("busybox")?);
    cpio.program("init", INIT.as_bytes());
    cpio.directory("modules");
    for (at, module) in read_modules(modules)?.iter().enumerate() {
        cpio.program(&format!("modules/{at:02}.ko"), module);
    }
    Ok(cpio.finish())
}

/// The directory of the kernel's modules; its name is the kernel's release.
fn find_modules(tree: &Path) -> Result<PathBuf> {
    let homes = [tree.join("lib/modules"), tree.join("usr/lib/modules")];
    let entries = homes.iter().filter_map(|home| fs::read_dir(home).ok());
    let found = entries.flatten().flatten().next();
    let found = found.ok_or_else(|| format!("no modules below {}", tree.display()))?;
    Ok(found.path())
}

/// Contents of the wanted modules, each after those it depends on; built-in ones have none.
fn read_modules(home: &Path) -> Result<Vec<Vec<u8>>> {
    let mut files = BTreeMap::new();
    index_modules(home, &mut files);
    let mut order: Vec<(String, Vec<u8>)> = Vec::new();
    for name in MODULES {
        place_module(name, &files, &mut order)?;
    }
    Ok(order.into_iter().map(|(_, content)| content).collect())
}

fn index_modules(dir: &Path, files: &mut BTreeMap<String, PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            index_modules(&path, files);
        } else if let Some((name, _)) = entry.file_name().to_string_lossy().split_once(".ko") {
            // The kernel does not tell `-` from `_` in names.
            files.insert(name.replace('-', "_"), path);
        }
    }
}

fn place_module(name: &str, files: &BTreeMap<String, PathBuf>, order: &mut Vec<(String, Vec<u8>)>) -> Result {
    let name = name.replace('-', "_");
    let Some(path) = files.get(&name) else {
        return Ok(());
    };
    if order.iter().any(|(placed, _)| *placed == name) {
        return Ok(());
    }
    let content = read_module(path)?;
    for needed in needs_of(&content) {
        place_module(&needed, files, order)?;
    }
    order.push((name, content));
    Ok(())
}

/// What a module says of itself in its `.modinfo` section: `depends=a,b`, ended by a zero.
fn needs_of(module: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let Some(at) = module.windows(key.len()).position(|window| window == key) else {
        return Vec::new();
    };
    let value = module[at + key.len()..].split(|byte| *byte == 0).next();
    let value = String::from_utf8_lossy(value.unwrap_or_default());
    let names = value.split(',').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

fn read_module(path: &Path) -> Result<Vec<u8>> {
    if path.extension().is_some_and(|end| end == "ko") {
        return fs::read(path).about(path.display());
    }
    let done = Command::new("xz").arg("-dc").arg(path).output().about("xz")?;
    if done.status.success() { Ok(done.stdout) } else { Err(format!("{} is not an xz file", path.display())) }
}

/// The version of qemu that runs these kernels soundly: Debian 12's own 7.2 corrupts 6.12 now and then.
const QEMU_AT_LEAST: u32 = 8;

/// A qemu command, the machine's own or one unpacked in the cache.
pub fn qemu(cache: &Path) -> Result<Command> {
    let installed = output(Command::new("qemu-system-x86_64").arg("--version"));
    let major = installed.ok().and_then(|text| {
        let version = text.split("version ").nth(1)?;
        version.split('.').next()?.parse::<u32>().ok()
    });
    if major.is_some_and(|major| major >= QEMU_AT_LEAST) {
        return Ok(Command::new("qemu-system-x86_64"));
    }
    let tree = cache.join("qemu");
    let done = tree.join("complete");
    if !done.exists() {
        println!("  fetch qemu");
        let release = super::archive::codename()?;
        let backports = format!("{release}-backports");
        let suites: &[&str] = if release == "bookworm" { &[&backports, &release] } else { &[&release] };
        Archive::open(cache, suites)?.unpack_with_missing("qemu-system-x86", &tree)?;
        fs::write(&done, "").about(done.display())?;
    }
    let mut command = Command::new(tree.join("usr/bin/qemu-system-x86_64"));
    let libraries = [tree.join("usr/lib/x86_64-linux-gnu"), tree.join("lib/x86_64-linux-gnu")];
    let libraries = std::env::join_paths(libraries).about("library path")?;
    command.env("LD_LIBRARY_PATH", libraries);
    command.arg("-L").arg(tree.join("usr/share/qemu"));
    command.arg("-L").arg(tree.join("usr/share/seabios"));
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::needs_of;

    #[test]
    fn a_module_names_what_it_needs() {
        let module = b"\x7fELF\0license=GPL\0depends=jbd2,mbcache\0name=ext4\0";
        assert_eq!(needs_of(module), ["jbd2", "mbcache"]);
        assert!(needs_of(b"\0depends=\0name=jbd2\0").is_empty());
    }
}
