//! What a client must not send, and what it is answered. The server lives on.

use super::{initialize, over_socket};
use serde_json::{Value, json};

/// One error per line sent, and the server lives on.
async fn check(rows: &[(&str, &[u8], i32, Value)]) {
    let mut client = over_socket().initialized().await;
    for (name, sent, code, id) in rows {
        client.send(sent).await;
        let replies = client.replies().await;
        let [reply] = &replies[..] else { panic!("{name}: {replies:?}") };
        assert_eq!(reply["error"]["code"], *code, "{name}: {reply}");
        assert_eq!(&reply["id"], id, "{name}: {reply}");
        assert!(reply.as_object().unwrap().contains_key("id"), "{name}");
    }
}

#[tokio::test]
async fn what_is_not_json_is_a_parse_error() {
    let deep = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}"#, "[".repeat(200_000));
    let nested = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"x","arguments":{}1{}}}}}"#,
        r#"{"a":"#.repeat(100_000),
        "}".repeat(100_000)
    );
    let arrays = "[".repeat(200_000);
    check(&[
        ("truncated", br#"{"jsonrpc":"2.0","id":1,"method":"ping""#, -32700, Value::Null),
        ("plain text", b"hello there", -32700, Value::Null),
        ("content length", b"Content-Length: 52\r", -32700, Value::Null),
        ("invalid UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", -32700, Value::Null),
        ("NUL before", b"\0{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", -32700, Value::Null),
        ("NUL after", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\0", -32700, Value::Null),
        ("two on a line", br#"{"jsonrpc":"2.0","id":1,"method":"ping"}{}"#, -32700, Value::Null),
        (
            "lone surrogate",
            br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","arguments":{"a":"\ud800"}}}"#,
            -32700,
            json!(5),
        ),
        ("200 000 arrays", arrays.as_bytes(), -32700, Value::Null),
        ("unfinished depth", deep.as_bytes(), -32700, Value::Null),
        ("100 000 objects", nested.as_bytes(), -32700, json!(7)),
    ])
    .await;
}

#[tokio::test]
async fn json_that_is_no_request_is_an_invalid_request() {
    check(&[
        ("number", b"5", -32600, Value::Null),
        ("null", b"null", -32600, Value::Null),
        ("empty object", b"{}", -32600, Value::Null),
        ("empty batch", b"[]", -32600, Value::Null),
        ("batch of numbers", b"[1,2,3]", -32600, Value::Null),
        ("batch", br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, Value::Null),
        ("no version", br#"{"id":1,"method":"ping"}"#, -32600, json!(1)),
        ("wrong version", br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600, json!(1)),
        ("no method", br#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1)),
        ("method is a number", br#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600, json!(1)),
        ("method and result", br#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, -32600, json!(1)),
        ("id null", br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Value::Null),
        ("id float", br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, Value::Null),
        ("id 1.0", br#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#, -32600, Value::Null),
        ("id 2^70", br#"{"jsonrpc":"2.0","id":1180591620717411303424,"method":"ping"}"#, -32600, Value::Null),
        ("id object", br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, Value::Null),
        ("id twice", br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32600, Value::Null),
        ("method twice", br#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#, -32600, json!(1)),
        (
            "name twice",
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            -32600,
            json!(1),
        ),
        (
            "argument twice",
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":{"y":1,"y":2}}}}"#,
            -32600,
            json!(1),
        ),
        ("initialize again", initialize("again", "2024-11-05").as_bytes(), -32600, json!("again")),
    ])
    .await;
}

#[tokio::test]
async fn bad_parameters_and_methods_have_their_own_codes() {
    let long = "9".repeat(100_000);
    let digits = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":{{"timeout_ms":{long}}}}}}}"#
    );
    check(&[
        ("params null", br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}"#, -32602, json!(1)),
        ("no params", br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, -32602, json!(1)),
        ("params array", br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#, -32602, json!(1)),
        ("no name", br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{}}"#, -32602, json!("a")),
        (
            "arguments text",
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":"b"}}"#,
            -32602,
            json!(1),
        ),
        ("meta", br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":1}}"#, -32602, json!(1)),
        (
            "1e999999",
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"t":1e999999}}}"#,
            -32602,
            json!(1),
        ),
        ("100 kB of digits", digits.as_bytes(), -32602, json!(1)),
        ("unknown method", br#"{"jsonrpc":"2.0","id":1,"method":"tools/burn"}"#, -32601, json!(1)),
        ("not served", br#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#, -32601, json!(1)),
    ])
    .await;
}

#[tokio::test]
async fn what_nobody_waits_for_is_ignored() {
    let mut client = over_socket().initialized().await;
    for line in [
        "",
        " \t\r",
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard_of","params":[1]}"#,
    ] {
        client.send(line).await;
        assert_eq!(client.replies().await, Vec::<Value>::new(), "{line}");
    }
}
