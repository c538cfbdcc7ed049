//! `stockade metrics`: what brokers count, in one text that Prometheus takes: each sample says whose it is, and each
//! metric is described once.

use super::MetricsArgs;
use super::find;
use crate::broker::control::client::Line;
use crate::broker::control::message::{Answer, Request};
use crate::cli::say::Complaint;
use std::io::Write;
use std::time::Duration;

pub fn metrics(args: &MetricsArgs) -> Result<u8, Complaint> {
    let mut page = Page::default();
    let mut count = 0;
    for broker in find::brokers()?.iter().filter(|broker| broker.status().is_some()) {
        if args.agent.as_ref().is_some_and(|agent| *agent != broker.found.agent) {
            continue;
        }
        let answer = Line::connect(&broker.found.path).and_then(|mut line| line.ask(&Request::Metrics, Duration::ZERO));
        // One that ended meanwhile has nothing to tell.
        if let Ok(Answer::Metrics { text }) = answer {
            page.add(&text, &[("agent", &broker.found.agent), ("broker", &broker.found.name)]);
            count += 1;
        }
    }
    if count == 0 {
        let whose = args.agent.as_ref().map_or(String::new(), |agent| format!(" of agent `{agent}`"));
        return Err(Complaint::not_found(format!("no broker{whose} runs")));
    }
    match std::io::stdout().write_all(page.text().as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(0),
    }
}

/// Metrics in the order they first came, each with what describes it and its samples.
#[derive(Debug, Default)]
struct Page(Vec<Family>);

#[derive(Debug, Default)]
struct Family {
    name: String,
    about: Vec<String>,
    samples: Vec<String>,
}

impl Page {
    fn add(&mut self, text: &str, labels: &[(&str, &str)]) {
        let mut current = String::new();
        for line in text.lines() {
            let described = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "));
            if let Some(rest) = described {
                current = rest.split(' ').next().unwrap_or_default().to_owned();
                let family = self.family(&current);
                if !family.about.iter().any(|known| known == line) {
                    family.about.push(line.to_owned());
                }
            } else if !line.is_empty() && !line.starts_with('#') {
                // A histogram's samples have longer names than itself.
                let name = line.split(['{', ' ']).next().unwrap_or_default();
                let family =
                    if !current.is_empty() && name.starts_with(&current) { current.clone() } else { name.into() };
                self.family(&family).samples.push(labelled(line, labels));
            }
        }
    }

    fn family(&mut self, name: &str) -> &mut Family {
        let at = self.0.iter().position(|family| family.name == name).unwrap_or_else(|| {
            self.0.push(Family { name: name.to_owned(), ..Family::default() });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    fn text(&self) -> String {
        let lines = self.0.iter().flat_map(|family| family.about.iter().chain(&family.samples));
        lines.map(|line| format!("{line}\n")).collect()
    }
}

/// The sample with these labels first.
fn labelled(sample: &str, labels: &[(&str, &str)]) -> String {
    let escape = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let own: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
    let end = sample.find(['{', ' ']).unwrap_or(sample.len());
    let (name, rest) = sample.split_at(end);
    match rest.strip_prefix('{') {
        Some(rest) => format!("{name}{{{},{rest}", own.join(",")),
        None => format!("{name}{{{}}}{rest}", own.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_brokers_make_one_text_that_says_whose_each_sample_is() {
        let text = "# HELP a A\n# TYPE a gauge\na 1\n# HELP h H\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_sum 3\n";
        let mut page = Page::default();
        page.add(text, &[("agent", "x\"y")]);
        page.add(text, &[("agent", "z")]);
        let expected = "# HELP a A\n# TYPE a gauge\na{agent=\"x\\\"y\"} 1\na{agent=\"z\"} 1\n\
                        # HELP h H\n# TYPE h histogram\nh_bucket{agent=\"x\\\"y\",le=\"1\"} 2\nh_sum{agent=\"x\\\"y\"} 3\n\
                        h_bucket{agent=\"z\",le=\"1\"} 2\nh_sum{agent=\"z\"} 3\n";
        assert_eq!(page.text(), expected);
    }
}
