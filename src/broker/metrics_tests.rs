//! Metrics are text that a scraper accepts: a small reader of the format, as strict as `promtool check metrics`.

use super::*;
use std::collections::{BTreeMap, HashSet};

/// Every sample by name and labels, or what is wrong.
fn parse(text: &str) -> Result<BTreeMap<String, f64>, String> {
    let (mut samples, mut types, mut helped) = (BTreeMap::new(), BTreeMap::new(), HashSet::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (kind, name, rest) = (words.next(), words.next().unwrap_or(""), words.next().unwrap_or(""));
            let fresh = match kind {
                Some("HELP") => helped.insert(name.to_owned()) && !rest.is_empty(),
                Some("TYPE") => types.insert(name.to_owned(), rest.to_owned()).is_none(),
                _ => false,
            };
            if !fresh {
                return Err(format!("bad comment: {line}"));
            }
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').ok_or(line)?;
        let value: f64 = value.parse().map_err(|_| format!("bad value: {line}"))?;
        let name = sample.split('{').next().unwrap_or("");
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let known =
            types.contains_key(name) || base.is_some_and(|base| types.get(base).is_some_and(|t| t == "histogram"));
        if !known || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(format!("no type: {line}"));
        }
        check_labels(&sample[name.len()..]).map_err(|why| format!("{why}: {line}"))?;
        if samples.insert(sample.to_owned(), value).is_some() {
            return Err(format!("twice: {line}"));
        }
    }
    Ok(samples)
}

fn check_labels(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Ok(());
    }
    let mut rest = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).ok_or("no braces")?;
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").ok_or("no label")?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Err("bad label name");
        }
        let mut escaped = false;
        let end = after.char_indices().find_map(|(at, c)| match c {
            _ if escaped => {
                escaped = false;
                None
            }
            '\\' => {
                escaped = true;
                None
            }
            '"' => Some(at),
            _ => None,
        });
        rest = after[end.ok_or("open quote")? + 1..].trim_start_matches(',');
    }
    Ok(())
}

#[test]
fn every_code_has_its_own_place_and_name() {
    for (index, code) in CODES.iter().enumerate() {
        assert_eq!(*code as usize, index, "{}", code.name());
    }
    assert_eq!(Number::ALL.map(|number| number as usize), std::array::from_fn(|index| index));
}

#[test]
fn counts_are_told_by_tool_and_code() {
    let metrics = Metrics::default();
    for code in CODES {
        metrics.count("run", Some(code), Duration::from_micros(700));
    }
    metrics.count("run", None, Duration::from_secs(3600));
    metrics.count("no\"such\ntool", None, Duration::ZERO);
    metrics.add(Number::BytesIn, 7);
    metrics.set(Number::OutputStored, 9);
    let samples = parse(&metrics.render()).expect("well-formed text");
    for code in CODES {
        assert_eq!(samples[&format!("stockade_calls_total{{tool=\"run\",code=\"{}\"}}", code.name())], 1.0);
    }
    let bucket =
        |bound: &str| samples[&format!("stockade_call_duration_seconds_bucket{{tool=\"run\",le=\"{bound}\"}}")];
    assert_eq!((bucket("0.0005"), bucket("0.001"), bucket("60"), bucket("+Inf")), (0.0, 23.0, 23.0, 24.0));
    assert_eq!(samples["stockade_call_duration_seconds_count{tool=\"run\"}"], 24.0);
    assert_eq!(samples["stockade_call_duration_seconds_sum{tool=\"run\"}"], 3600.0 + 23.0 * 0.0007);
    assert_eq!(samples["stockade_calls_total{tool=\"other\",code=\"OK\"}"], 1.0);
    assert_eq!(samples["stockade_request_bytes_total"], 7.0);
    assert_eq!(samples["stockade_output_stored_bytes"], 9.0);
}

#[test]
fn session_names_can_neither_break_the_text_nor_make_it_grow() {
    let metrics = Metrics::default();
    let names: Vec<String> = (0..1000).map(|n| format!("{n} \"}} 1\n\\{}", "x".repeat(500))).collect();
    metrics.set_sessions(names.iter().map(|name| (name.as_str(), 2)));
    let text = metrics.render();
    let samples = parse(&text).expect("well-formed text");
    let sessions: Vec<_> = samples.iter().filter(|(name, _)| name.starts_with("stockade_session_processes")).collect();
    assert_eq!(sessions.len(), MOST_SESSIONS + 1);
    assert_eq!(sessions.iter().map(|(_, running)| **running).sum::<f64>(), 2000.0);
    assert_eq!(samples["stockade_processes_running"], 2000.0);
    assert!(text.len() < 16_000, "{} bytes", text.len());
}

#[test]
fn the_reader_of_this_test_finds_what_is_wrong() {
    for bad in ["x 1", "# TYPE x counter\nx{a=\"b} 1", "# TYPE x counter\nx one", "# TYPE x counter\nx 1\nx 2"] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}
