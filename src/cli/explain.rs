//! `stockade explain`.
use super::ExplainArgs;
use super::say::Complaint;

pub fn explain(_args: &ExplainArgs) -> Result<u8, Complaint> {
    Ok(0)
}
