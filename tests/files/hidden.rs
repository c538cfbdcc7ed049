//! Hidden paths: there, and closed.

use crate::support::Yard;
use libc::{EACCES, EBUSY, ENOENT, EROFS, EXDEV};
use std::fs;
use std::os::unix::fs::symlink;

fn yard(hidden: &str) -> Yard {
    Yard::away(&format!("[filesystem]\nhidden = [{hidden}]"))
}

#[test]
fn a_hidden_file_can_be_neither_read_nor_replaced() {
    let yard = yard("\".env\"");
    yard.workspace.file(".env", "TOKEN=1");
    yard.workspace.file("env", "plain");
    yard.workspace.file("sub/.env", "plain");
    yard.inside(&[
        ("read {w}/.env", EACCES),
        ("append {w}/.env", EACCES),
        ("truncate {w}/.env", EACCES),
        ("chmod {w}/.env 644", EROFS),
        ("remove {w}/.env", EBUSY),
        ("rename {w}/.env {w}/x", EBUSY),
        ("rename {w}/env {w}/.env", EBUSY),
        ("exchange {w}/env {w}/.env", EBUSY),
        ("link {w}/.env {w}/x", EXDEV),
        ("read {w}/env", 0),
        ("read {w}/sub/.env", 0),
    ]);
    assert_eq!(fs::read(yard.workspace.path().join(".env")).expect("still there"), b"TOKEN=1");
    yard.outside(&[("read {w}/.env", 0), ("append {w}/.env", 0), ("rename {w}/.env {w}/x", 0)]);
}

#[test]
fn a_hidden_directory_is_closed() {
    let yard = yard("\"secrets/\"");
    yard.workspace.file("secrets/key", "token");
    yard.workspace.file("secrets/deep/key", "token");
    let cases = [
        ("list {w}/secrets", EACCES),
        ("read {w}/secrets/key", EACCES),
        ("stat {w}/secrets/key", EACCES),
        ("enter {w}/secrets/deep", EACCES),
        ("create {w}/secrets/new", EACCES),
        ("remove {w}/secrets/new", EACCES),
        ("rename {w}/secrets {w}/open", EBUSY),
    ];
    yard.denied(&cases);
}

#[test]
fn a_pattern_hides_at_every_depth() {
    let yard = yard("\"**/*.pem\", \"**/private\"");
    for file in ["a.pem", "x/y/z/b.pem", "x/private/key", "x/pem", "x/c.pem2"] {
        yard.workspace.file(file, "text");
    }
    yard.denied(&[
        ("read {w}/a.pem", EACCES),
        ("read {w}/x/y/z/b.pem", EACCES),
        ("read {w}/x/private/key", EACCES),
        ("list {w}/x/private", EACCES),
        ("read {w}/x/pem", 0),
        ("read {w}/x/c.pem2", 0),
    ]);
}

#[test]
fn a_hidden_link_hides_what_it_points_to() {
    let yard = yard("\".env\"");
    yard.workspace.file("config/prod", "token");
    yard.workspace.file("config/dev", "plain");
    symlink("config/prod", yard.workspace.path().join(".env")).expect("a link");
    yard.inside(&[("read {w}/.env", EACCES), ("read {w}/config/prod", EACCES), ("read {w}/config/dev", 0)]);
    yard.outside(&[("read {w}/.env", 0), ("read {w}/config/prod", 0)]);
}

/// A link that leads out of the roots needs no hiding: what it points to is not there.
#[test]
fn a_hidden_link_to_the_outside_leads_nowhere() {
    let yard = yard("\".env\"");
    let secret = yard.beside.file("secret", "token");
    symlink(secret, yard.workspace.path().join(".env")).expect("a link");
    yard.denied(&[("read {w}/.env", ENOENT), ("read {b}/secret", ENOENT)]);
}

/// Hiding protects what is there when the cell is made; what the agent makes under that name is its own.
#[test]
fn a_hidden_name_that_is_missing_is_neither_made_nor_in_the_way() {
    let yard = yard("\".env\", \"no/such/file\"");
    yard.inside(&[("stat {w}/.env", ENOENT), ("stat {w}/no", ENOENT), ("read {w}", libc::EISDIR)]);
    assert_eq!(fs::read_dir(yard.workspace.path()).expect("the workspace").count(), 0);
    yard.inside(&[("create {w}/.env", 0), ("mkdir {w}/no", 0)]);
    // It is hidden from the next cell on, the agent's own as well.
    yard.inside(&[("read {w}/.env", EACCES)]);
}

#[test]
fn a_grant_inside_a_hidden_directory_opens_only_itself() {
    let yard = Yard::away(
        "[filesystem]\nhidden = [\"vault\"]\nread_only_roots = [\"{workspace}/vault/shown\"]\n\
         allowed_roots = [\"{workspace}\", \"{workspace}/vault/work\"]",
    );
    for file in ["vault/key", "vault/shown/file", "vault/work/file", "vault/deep/key"] {
        yard.workspace.file(file, "text");
    }
    yard.inside(&[
        ("read {w}/vault/shown/file", 0),
        ("append {w}/vault/shown/file", EROFS),
        ("append {w}/vault/work/file", 0),
        ("create {w}/vault/work/new", 0),
        ("list {w}/vault", EACCES),
        ("read {w}/vault/key", ENOENT),
        ("read {w}/vault/deep/key", ENOENT),
        ("create {w}/vault/new", EROFS),
        ("chmod {w}/vault 755", EROFS),
        ("rename {w}/vault {w}/open", EBUSY),
    ]);
    yard.outside(&[("read {w}/vault/key", 0), ("stat {w}/vault/work/new", 0), ("stat {w}/vault/new", ENOENT)]);
}

#[test]
fn an_absolute_path_hides_in_any_root() {
    let yard = Yard::away("[filesystem]\nread_only_roots = [\"{beside}/data\"]\nhidden = [\"{beside}/data/key\"]");
    yard.beside.file("data/key", "token");
    yard.beside.file("data/file", "text");
    yard.workspace.file("key", "plain");
    yard.denied(&[("read {b}/data/key", EACCES), ("read {b}/data/file", 0), ("read {w}/key", 0)]);
}

/// Moving the parent takes the mask along; within the cell's life there is no way around it.
#[test]
fn a_hidden_file_cannot_be_moved_away_with_its_parent() {
    let yard = yard("\"conf/secret\"");
    yard.workspace.file("conf/secret", "token");
    yard.inside(&[
        ("rename {w}/conf {w}/moved", EBUSY),
        ("read {w}/conf/secret", EACCES),
        ("link {w}/conf/secret {w}/x", EXDEV),
        ("remove {w}/conf/secret", EBUSY),
    ]);
    yard.outside(&[("rename {w}/conf {w}/moved", 0), ("read {w}/moved/secret", 0)]);
}

/// Where the search for a pattern does not reach, nothing could be hidden: then there is no cell.
#[test]
fn what_cannot_be_searched_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let yard = yard("\"**/secret\"");
    yard.workspace.file("closed/secret", "token");
    let closed = yard.workspace.path().join("closed");
    let mode = |mode| fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).expect("a mode");
    assert_eq!(yard.run(&["/bin/cat", "closed/secret"]).code, 1, "control: it is hidden where it can be found");
    mode(0);
    let outcome = yard.run(&["/bin/true"]);
    mode(0o755);
    // Root searches whatever its mode.
    let expected = if crate::support::is_root() { 0 } else { 125 };
    assert_eq!(outcome.code, expected, "{outcome:?}");
    assert_eq!(outcome.stderr.contains("cannot be searched"), expected == 125, "{outcome:?}");
}

/// A file name is bytes.
#[test]
fn a_name_that_is_no_text_is_hidden_too() {
    use std::os::unix::ffi::OsStrExt;
    let yard = yard("\"**/*.pem\"");
    let name = std::ffi::OsStr::from_bytes(b"\xff.pem");
    fs::write(yard.workspace.path().join(name), "token").expect("a file");
    let outcome = yard.run(&["/bin/bash", "-c", "ls | wc -l; cat *.pem"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, "1\n"), "{outcome:?}");
}
