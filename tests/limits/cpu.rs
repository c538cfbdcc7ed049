//! CPU: a share that no number of spinning processes can stretch, and a total that ends the command.

use crate::ends::json;
use crate::support::Yard;

const SPINNERS: &str = "for i in 1 2 3 4; do timeout 2 sh -c 'while :; do :; done' & done; wait";

/// CPU time used per second of run time by four spinners.
fn share(cpus: &str) -> f64 {
    let yard = Yard::new().flag("--cpus").flag(cpus);
    let (_, result) = json(&yard, &["/bin/bash", "-c", SPINNERS]);
    let used = result["usage"]["cpu_ms"].as_f64().expect("a number");
    used / result["duration_ms"].as_f64().expect("a number")
}

#[test]
fn four_spinners_get_no_more_than_the_cells_share() {
    // A busy machine may give less than was granted, never more.
    for (cpus, least, most) in [("0.2", 0.08, 0.25), ("0.5", 0.15, 0.58), ("2", 0.26, 2.1)] {
        let share = share(cpus);
        assert!((least..=most).contains(&share), "{cpus} CPUs: {share}");
    }
}

#[test]
fn cpu_time_is_counted_over_all_processes_and_ends_them() {
    let yard = Yard::with("[limits]\ncpu_time = \"1s\"").flag("--timeout").flag("60s");
    // Each alone stays far below a second; only their sum can reach it.
    let script = "while :; do bash -c 'for ((i = 0; i < 20000; i++)); do :; done'; done";
    let (code, result) = json(&yard, &["/bin/bash", "-c", script]);
    assert_eq!((code, result["reason"].as_str()), (124, Some("timeout")), "{result}");
    let figure = |name: &serde_json::Value| name.as_u64().expect("a number");
    assert!((1000..3000).contains(&figure(&result["usage"]["cpu_ms"])), "{result}");
    assert!(figure(&result["duration_ms"]) < 59_000, "it was not the wall time: {result}");
    let (code, result) = json(&yard, &["/bin/bash", "-c", "sleep 1.5; echo finished"]);
    assert_eq!((code, result["stdout"].as_str()), (0, Some("finished\n")), "control: waiting is free: {result}");
}

#[test]
fn priority_cannot_be_raised() {
    let yard = Yard::new();
    assert_eq!(yard.probe(&["nice"]), libc::EACCES);
    assert_eq!(yard.probe(&["realtime"]), libc::EPERM);
    if crate::support::is_root() {
        assert_eq!(yard.probe_outside(&["nice"]), 0, "control");
    }
}
