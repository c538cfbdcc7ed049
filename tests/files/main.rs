//! The file wall: what a cell can read and write, by mount and by Landlock.
//!
//! The cases of `tests/ATTACKS.md`, groups FS, PR, FD and PL-17: [`outside`] the roots, [`grants`] and what they
//! allow, [`hidden`] paths, [`precedence`] where rules nest, [`nodes`] that are no plain files, `/proc` in [`kernel`],
//! [`descriptors`], and the working [`directory`].

#[path = "../support/mod.rs"]
mod support;

mod descriptors;
mod directory;
mod grants;
mod hidden;
mod kernel;
mod nodes;
mod outside;
mod precedence;
mod snapshot;
