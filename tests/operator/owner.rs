//! Whose socket it is: another user is kept out by the directory, and if that were open, by the broker.

use crate::desk::Desk;
use crate::support::is_root;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Connects from inside the broker's directory and asks; prints what came, or the name of the error.
const ASK: &str = "
import errno, socket
s = socket.socket(socket.AF_UNIX)
try:
    s.connect('control')
    s.sendall(b'{\"ask\":\"status\"}\\n')
    print('answer' if s.recv(100) else 'hung up')
except OSError as error:
    print(errno.errorcode[error.errno])
";

fn ask_as(user: &str, directory: &Path) -> String {
    // Enters as root, who may, and becomes the other one there.
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups", "/usr/bin/python3", "-c", ASK]);
    let output = command.current_dir(directory).output().expect("setpriv starts");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn modes_keep_others_out() {
    let desk = Desk::new();
    let _server = desk.serve();
    let directory = &desk.brokers()[0];
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(directory), mode(&directory.join("control"))), (0o700, 0o600));
}

#[test]
fn another_user_is_hung_up_on() {
    if !is_root() {
        eprintln!("not run: only root can be another user");
        return;
    }
    let desk = Desk::new();
    let _server = desk.serve();
    let directory = desk.brokers().remove(0);
    assert_eq!(ask_as("0", &directory), "answer", "the control");
    assert_eq!(ask_as("65534", &directory), "EACCES");
    // Were the directory and the socket open to all, the broker still looks who it is.
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    open(&directory, 0o755);
    open(&directory.join("control"), 0o666);
    let said = ask_as("65534", &directory);
    assert!(said == "hung up" || said == "ECONNRESET" || said == "EPIPE", "{said}");
    assert_eq!(ask_as("0", &directory), "answer");
}
