//! Every unsafe call, one per function, with no policy in sight.

pub mod probe;
