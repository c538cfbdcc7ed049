//! The file wall: what a cell can read and write, by mount and by Landlock.

mod support;

use support::Yard;

#[test]
fn a_file_outside_every_root_does_not_exist() {
    let yard = Yard::new();
    let secret = yard.beside.file("secret", "token");
    let secret = secret.to_str().expect("text");
    assert_eq!(yard.probe(&["read", secret]), libc::ENOENT);
    assert_eq!(yard.probe_outside(&["read", secret]), 0);
}

#[test]
fn a_read_only_root_cannot_be_written() {
    let yard = Yard::with("[filesystem]\nread_only_roots = [\"{beside}/data\"]");
    let file = yard.beside.file("data/file", "text");
    let file = file.to_str().expect("text");
    assert_eq!(yard.probe(&["read", file]), 0);
    assert_eq!(yard.probe(&["write", file]), libc::EROFS);
    assert_eq!(yard.probe_outside(&["write", file]), 0);
}
