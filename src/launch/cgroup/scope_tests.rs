//! The peer is a script of bytes here; `dbus-daemon` judges the real ones where it is installed.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;

use super::*;

fn socket(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("stockade-scope-{name}-{}/systemd", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir.join("private")
}

/// A manager that lets us in and answers the first call with `kind` to `serial`.
fn answer(name: &str, kind: u8, serial: u32) -> io::Result<()> {
    let path = socket(name);
    let listener = UnixListener::bind(&path).unwrap();
    let manager = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut seen = Vec::new();
        let mut read_until = |stream: &mut UnixStream, end: &[u8]| {
            while !seen.windows(end.len()).any(|part| part == end) {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                seen.push(byte[0]);
            }
        };
        read_until(&mut stream, b"\r\n");
        stream.write_all(b"OK 1234deadbeef\r\n").unwrap();
        read_until(&mut stream, b"BEGIN\r\n");
        read_until(&mut stream, b"PIDs");
        // A signal first, that is not for us.
        stream.write_all(&[b'l', 4, 1, 1, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        let mut reply = Writer(vec![b'l', kind, 1, 1]);
        reply.number(0);
        reply.number(7);
        reply.array(8, |fields| {
            fields.field(4, "s", |value| value.string("org.freedesktop.systemd1.UnitExists"));
            fields.field(5, "u", |value| value.number(serial));
        });
        reply.align(8);
        stream.write_all(&reply.0).unwrap();
        let _ = stream.read(&mut [0; 1024]);
    });
    let result = start(&path, "stockade-1.scope", &[1, 2], Duration::from_millis(500));
    manager.join().unwrap();
    let _ = std::fs::remove_dir_all(path.parent().and_then(Path::parent).unwrap());
    result
}

#[test]
fn a_granted_scope_is_success() {
    answer("granted", METHOD_RETURN, 2).unwrap();
}

#[test]
fn an_error_reply_is_told_by_its_name() {
    let error = answer("refused", ERROR, 2).unwrap_err();
    assert!(error.to_string().contains("org.freedesktop.systemd1.UnitExists"), "{error}");
}

#[test]
fn an_answer_to_another_call_is_not_ours() {
    assert!(answer("other", METHOD_RETURN, 99).is_err());
}

#[test]
fn the_body_is_aligned_as_the_specification_says() {
    let body = transient_scope("a.scope", &[5, 6]);
    let array = 4 + 8 + 4 + 5;
    let array = array + (4 - array % 4);
    assert_eq!(&body[..12], b"\x07\0\0\0a.scope\0");
    let length = u32::from_le_bytes(body[array..array + 4].try_into().unwrap()) as usize;
    let first = (array + 4).next_multiple_of(8);
    // What follows the properties is the empty list of auxiliary units: a zero, padded to eight.
    let after = (first + length).next_multiple_of(4);
    assert_eq!(body.len(), (after + 4).next_multiple_of(8));
    assert!(body[after..].iter().all(|&byte| byte == 0));
}
