//! What the broker knows of itself, as Prometheus reads it.

use crate::broker::Broker;
use std::fmt::Write;

pub(super) fn render(broker: &Broker) -> String {
    let running = broker.registry.running().len();
    let all = broker.registry.all();
    let bytes: u64 = all.iter().map(|managed| managed.output.totals().total_bytes).sum();
    let deleted = broker.state.deleted();
    let (states, gone) = ("stockade_processes", "stockade_retention_deleted");
    let mut text = String::new();
    let _ = write!(
        text,
        "# HELP {states} Processes by state\n# TYPE {states} gauge\n\
         {states}{{state=\"running\"}} {running}\n{states}{{state=\"exited\"}} {exited}\n\
         # HELP stockade_output_bytes Output of the processes that are listed\n# TYPE stockade_output_bytes gauge\n\
         stockade_output_bytes {bytes}\n\
         # HELP {gone}_processes_total Processes whose output was deleted\n# TYPE {gone}_processes_total counter\n\
         {gone}_processes_total {processes}\n\
         # HELP {gone}_bytes_total Bytes of output that were deleted\n# TYPE {gone}_bytes_total counter\n\
         {gone}_bytes_total {deleted_bytes}\n\
         # HELP stockade_uptime_seconds Since the broker was started\n# TYPE stockade_uptime_seconds gauge\n\
         stockade_uptime_seconds {uptime}\n",
        exited = all.len().saturating_sub(running),
        processes = deleted.processes,
        deleted_bytes = deleted.bytes,
        uptime = broker.started.elapsed().as_secs(),
    );
    text
}
