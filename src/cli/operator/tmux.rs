//! `attach --tmux`: the same view in a tmux window of its own.

use crate::cli::say::Complaint;
use std::ffi::OsString;
use std::process::Command;

/// Opens a window in the tmux we are in, otherwise a session in the background; says how to get there.
pub fn open(proc_id: &str, may_write: &[&str]) -> Result<u8, Complaint> {
    let name = format!("stockade-{proc_id}");
    let is_inside = std::env::var_os("TMUX").is_some();
    let mut tmux = Command::new("tmux");
    match is_inside {
        true => tmux.args(["new-window", "-n", &name]),
        false => tmux.args(["new-session", "-d", "-s", &name]),
    };
    tmux.arg("--").args(words(proc_id, may_write)?);
    let output = tmux.output().map_err(|error| {
        Complaint::new(format!("`tmux` cannot be started: {error}")).hint("install tmux, or leave `--tmux` out")
    })?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Complaint::new(format!("tmux: {why}")));
    }
    match is_inside {
        true => println!("window `{name}` is open"),
        false => println!("session `{name}` is there; join it with: tmux attach -t {name}"),
    }
    Ok(0)
}

/// A tmux server has an environment of its own, which need not say where our state is.
fn words(proc_id: &str, may_write: &[&str]) -> Result<Vec<OsString>, Complaint> {
    let mut words: Vec<OsString> = vec!["env".into()];
    for name in ["XDG_STATE_HOME", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            let mut word = OsString::from(format!("{name}="));
            word.push(value);
            words.push(word);
        }
    }
    words.extend([std::env::current_exe()?.into(), "attach".into(), proc_id.into()]);
    words.extend(may_write.iter().map(OsString::from));
    Ok(words)
}
