//! The plan in words.
