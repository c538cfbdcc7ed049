//! An initramfs: the "newc" cpio format of the kernel's `buffer-format.rst`, files and directories only.

/// An archive being written.
#[derive(Debug, Default)]
pub struct Cpio {
    bytes: Vec<u8>,
    entries: u32,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

impl Cpio {
    pub fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY, &[]);
    }

    pub fn program(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, content);
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("an initramfs file is below 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("a name is short");
        // inode, mode, uid, gid, links, time, size, device (2), node (2), name size, checksum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend(content);
        self.align();
    }

    fn align(&mut self) {
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cpio;

    #[test]
    fn an_archive_is_aligned_and_ends_with_its_trailer() {
        let mut cpio = Cpio::default();
        cpio.directory("bin");
        cpio.program("init", b"hello");
        let bytes = cpio.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(text.matches("070701").count(), 3);
        assert!(text.contains("init\0\0hello") && text.contains("TRAILER!!!"));
    }
}
