//! A worker that says anything: whoever waits learns that it is gone, and nothing else happens.

use super::{Answer, MAX_FRAME, Reply, Waiting, frame, listen, lock};
use crate::worker::ask::Told;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

fn framed(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_ne_bytes()[..], text.as_bytes()].concat()
}

/// What somebody who waits for answer 7 gets when the worker says these bytes and hangs up.
async fn heard(bytes: &[u8]) -> Option<Answer> {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let waiting = Waiting::default();
    let (tell, told) = oneshot::channel();
    lock(&waiting).insert(7, tell);
    let listening = tokio::spawn(listen(ours.into_split().0, Arc::clone(&waiting)));
    // It may stop listening before all is said.
    let _ = theirs.write_all(bytes).await;
    drop(theirs);
    listening.await.unwrap();
    assert!(lock(&waiting).is_empty(), "nobody waits for a dead worker");
    told.await.ok()
}

#[tokio::test]
async fn what_is_no_answer_is_the_workers_end() {
    let deep = format!("{{\"id\":7,\"answer\":{}", "[".repeat(100_000));
    let large = ((MAX_FRAME + 1) as u32).to_ne_bytes().to_vec();
    for (what, bytes) in [
        ("nothing", Vec::new()),
        ("half a length", vec![1, 0]),
        ("a length alone", 100_u32.to_ne_bytes().to_vec()),
        ("too large", large),
        ("the largest length", vec![0xff; 64]),
        ("no JSON", framed("}{")),
        ("no UTF-8", [&4_u32.to_ne_bytes()[..], &[0xff; 4]].concat()),
        ("depth", framed(&deep)),
        ("another shape", framed("{\"id\":\"7\",\"answer\":null}")),
        ("an unknown code", framed("{\"id\":7,\"answer\":{\"failed\":{\"code\":\"ROOT\",\"message\":\"\"}}}")),
        ("a negative number", framed("{\"id\":-7,\"answer\":\"bare\"}")),
    ] {
        assert!(heard(&bytes).await.is_none(), "{what}");
    }
}

#[tokio::test]
async fn answers_to_nobody_are_dropped_and_the_right_one_arrives() {
    let reply = |id| frame(&Reply { id, answer: Answer::Told(Told::SearchStopped(true)) }).unwrap();
    let said = [reply(u64::MAX), reply(3), reply(7), reply(7)].concat();
    assert!(matches!(heard(&said).await, Some(Answer::Told(Told::SearchStopped(true)))));
}
