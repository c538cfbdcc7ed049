//! `--json`: the fields, how long output is cut, and that every byte is counted.

use crate::ends::json;
use crate::support::Yard;
use serde_json::{Value, json as value};

#[test]
fn a_result_has_these_fields_and_no_others() {
    let yard = Yard::new();
    let (code, mut result) = json(&yard, &["/bin/bash", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!(code, 3);
    let fields = result.as_object_mut().expect("an object");
    let proc_id = fields.remove("proc_id").expect("an id");
    assert!(proc_id.as_str().is_some_and(|id| id.starts_with("p-")), "{proc_id}");
    assert!(fields.remove("duration_ms").and_then(|ms| ms.as_u64()).is_some_and(|ms| ms < 10_000));
    let usage = fields.remove("usage").expect("usage");
    assert!(usage["cpu_ms"].is_u64() && usage["max_rss_kb"].as_u64().is_some_and(|kb| kb > 100), "{usage}");
    let expected = value!({
        "state": "exited", "exit_code": 3, "reason": "exit", "stdout": "out\n", "stderr": "err\n",
        "stdout_bytes": 4, "stderr_bytes": 4, "truncated": false, "cwd": yard.workspace.path(),
    });
    assert_eq!(result, expected);
}

#[test]
fn a_signal_is_named_instead_of_an_exit_code() {
    let (code, result) = json(&Yard::new(), &["/bin/bash", "-c", "kill -SEGV $$"]);
    assert_eq!(code, 139);
    assert_eq!((&result["signal"], &result["reason"]), (&value!("SIGSEGV"), &value!("signal")));
    assert_eq!(result.get("exit_code"), None::<&Value>);
}

#[test]
fn long_output_keeps_head_tail_and_errors_and_counts_the_rest() {
    let yard = Yard::with("[limits]\ninline_bytes = \"4K\"");
    let script = "echo FIRST; seq 1 50000; echo 'error: in the middle'; seq 1 50000; echo LAST";
    let (code, result) = json(&yard, &["/bin/bash", "-c", script]);
    assert_eq!(code, 0);
    let numbers: usize = (1..=50_000).map(|number: u32| number.to_string().len() + 1).sum();
    let total = "FIRST\nerror: in the middle\nLAST\n".len() + 2 * numbers;
    assert_eq!((&result["stdout_bytes"], &result["truncated"]), (&value!(total), &value!(true)));
    let shown = result["stdout"].as_str().expect("text");
    assert!(shown.starts_with("FIRST\n1\n2\n") && shown.ends_with("49999\n50000\nLAST\n"), "{shown}");
    let kept = 2048;
    assert!(shown.contains(&format!("\n[... {} bytes left out ...]\n", total - kept)), "{shown}");
    assert_eq!(result["highlights"], value!([{ "line": 50_002, "text": "error: in the middle" }]));
    let (_, short) = json(&yard, &["/bin/bash", "-c", "echo error"]);
    assert_eq!((&short["truncated"], short.get("highlights")), (&value!(false), None), "control");
}

#[test]
fn a_flood_is_counted_to_the_byte_and_kept_within_the_bound() {
    let script = "yes | head -c 20000000 & yes err | head -c 10000000 >&2; wait";
    let (code, result) = json(&Yard::new(), &["/bin/bash", "-c", script]);
    assert_eq!(code, 0);
    assert_eq!((&result["stdout_bytes"], &result["stderr_bytes"]), (&value!(20_000_000), &value!(10_000_000)));
    let kept = result["stdout"].as_str().expect("text").len() + result["stderr"].as_str().expect("text").len();
    assert!(kept < (16 << 10) + 200, "{kept}");
}

#[test]
fn bytes_that_are_not_utf8_are_replaced_and_counted() {
    let (_, result) = json(&Yard::new(), &["printf", "a\\xffb\\xfe\\xfdc\\xc3\\xa9"]);
    assert_eq!(result["stdout"], value!("a\u{fffd}b\u{fffd}\u{fffd}cé"));
    assert_eq!((&result["invalid_utf8"], &result["stdout_bytes"]), (&value!(3), &value!(8)));
    let (_, result) = json(&Yard::new(), &["printf", "a\\xc3\\xa9"]);
    assert_eq!((&result["stdout"], result.get("invalid_utf8")), (&value!("aé"), None), "control");
}

#[test]
fn a_command_that_cannot_start_is_an_error_and_no_result() {
    let output = Yard::new().command().args(["--json", "--", "no-such-program"]).output().expect("stockade starts");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(127), &b""[..]));
    assert!(
        String::from_utf8_lossy(&output.stderr).starts_with("error: `no-such-program`: No such file or directory\n")
    );
}

#[test]
fn many_tiny_writes_are_counted_and_cost_little() {
    let script = "import os\nfor _ in range(200000): os.write(1, b'\\n')";
    let (code, result) = json(&Yard::new(), &["python3", "-c", script]);
    assert_eq!((code, &result["stdout_bytes"]), (0, &value!(200_000)), "{result}");
    assert!(result["duration_ms"].as_u64().is_some_and(|ms| ms < 20_000), "{result}");
}
