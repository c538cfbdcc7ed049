//! The broker's side: cells it asked for, processes it started, output it holds. It never forks.

pub mod answer;
pub mod capture;
pub mod cell;
pub mod config;
pub mod fault;
pub mod output;
pub mod process;
pub mod proxy;
pub mod refused;
mod relay;
pub mod render;
pub mod request;
pub mod screen;
pub mod transcript;
pub mod state;
