//! The socket without a broker behind it: where it can be made, and who may connect.

use super::client::Line;
use super::{Bound, NAME, is_owner, message};
use crate::broker::output::folder::Folder;
use crate::broker::output::tests::Scratch;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_path_longer_than_an_address_is_bound_and_connected_to() {
    let scratch = Scratch::new("control");
    let long = scratch.0.join("d".repeat(150));
    std::fs::create_dir_all(&long).unwrap();
    runtime().block_on(async {
        let bound = Bound::bind(Arc::new(Folder::open(&long).unwrap())).unwrap();
        let mode = std::fs::metadata(long.join(NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let line = Line::connect(&long).unwrap();
        let (client, _) = bound.listener.accept().await.unwrap();
        assert!(is_owner(&client));
        drop((line, bound));
    });
    assert!(!long.join(NAME).exists(), "a broker that ends takes its socket with it");
    let gone = Line::connect(&long).unwrap_err();
    assert_eq!(gone.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_socket_that_a_broker_left_refuses_connections() {
    let scratch = Scratch::new("stale");
    runtime().block_on(async {
        let bound = Bound::bind(Arc::new(Folder::open(&scratch.0).unwrap())).unwrap();
        std::fs::rename(scratch.0.join(NAME), scratch.0.join("kept")).unwrap();
        drop(bound);
        std::fs::rename(scratch.0.join("kept"), scratch.0.join(NAME)).unwrap();
    });
    let refused = Line::connect(&scratch.0).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn requests_are_lines_that_say_what_is_asked() {
    let logs = message::Logs { proc_id: "p_1".into(), stream: message::Stream::All, tail: None, follow: true };
    let request = message::Request::Logs(logs);
    let text = serde_json::to_string(&request).unwrap();
    assert_eq!(text, r#"{"ask":"logs","proc_id":"p_1","stream":"all","tail":null,"follow":true}"#);
    assert_eq!(serde_json::from_str::<message::Request>(&text).unwrap(), request);
    let unknown = r#"{"ask":"logs","proc_id":"p_1","stream":"all","tail":null,"follow":true,"more":1}"#;
    assert!(serde_json::from_str::<message::Request>(unknown).is_err());
}
