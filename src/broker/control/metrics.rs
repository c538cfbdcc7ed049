//! What the broker counts, as Prometheus reads it: the books' counters, with what only the broker knows put in.

use crate::broker::Broker;
use crate::broker::metrics::Number;

pub(super) fn render(broker: &Broker) -> String {
    let metrics = &broker.books.metrics;
    let sessions = broker.sessions();
    metrics.set_sessions(sessions.iter().map(|listed| (listed.session.as_str(), listed.running as u64)));
    let stored = broker.registry.all().iter().map(|managed| managed.output.disk_bytes()).sum();
    metrics.set(Number::OutputStored, stored);
    let deleted = broker.state.deleted();
    metrics.set(Number::RetentionFiles, deleted.processes);
    metrics.set(Number::RetentionBytes, deleted.bytes);
    let uptime = broker.started.elapsed().as_secs();
    format!(
        "{}# HELP stockade_uptime_seconds Since the broker was started\n# TYPE stockade_uptime_seconds gauge\n\
         stockade_uptime_seconds {uptime}\n",
        broker.books.render()
    )
}
