//! The agent's cell: made in the background while the client is greeted, waited for by the first who needs it.

use super::cell::Cell;
use super::pool::Pool;
use super::refused::Refused;
use crate::host::{Host, System};
use crate::launch::Launcher;
use crate::path::CellPath;
use crate::plan;
use crate::plan::refusal::{Refusal, Wall};
use crate::policy::Policy;
use std::sync::Arc;
use tokio::sync::watch;

#[derive(Debug)]
pub struct Home(watch::Receiver<Making>);

/// What is to be known of a cell that was made.
#[derive(Debug, Clone)]
pub struct Walls {
    /// Those that stand, by name.
    pub standing: Vec<(&'static str, bool)>,
    /// The paths that are covered in it.
    pub hidden: Vec<CellPath>,
}

#[derive(Debug, Clone)]
enum Making {
    Underway,
    Made(Arc<Pool>, Arc<Walls>),
    Failed(Refused),
}

impl Home {
    pub fn make(policy: Policy, launcher: Launcher) -> Home {
        let (tell, told) = watch::channel(Making::Underway);
        let making = tokio::task::spawn_blocking(move || make(&policy, launcher));
        tokio::spawn(async move {
            let made = match making.await {
                Ok(Ok((cell, walls))) => match Pool::new(cell) {
                    Ok(pool) => Making::Made(Arc::new(pool), Arc::new(walls)),
                    Err(error) => Making::Failed(unavailable(&error.to_string())),
                },
                Ok(Err(refused)) => Making::Failed(refused),
                Err(_) => Making::Failed(unavailable("the cell could not be made")),
            };
            if let Making::Failed(refused) = &made {
                tracing::error!("{}", refused.message);
            }
            let _ = tell.send(made);
        });
        Home(told)
    }

    pub async fn pool(&self) -> Result<Arc<Pool>, Refused> {
        // Almost always: made long ago.
        if let Making::Made(pool, _) = &*self.0.borrow() {
            return Ok(Arc::clone(pool));
        }
        let mut told = self.0.clone();
        let made = told.wait_for(|making| !matches!(making, Making::Underway)).await;
        match made.as_deref() {
            Ok(Making::Made(pool, _)) => Ok(Arc::clone(pool)),
            Ok(Making::Failed(refused)) => Err(refused.clone()),
            Ok(Making::Underway) | Err(_) => Err(unavailable("the cell could not be made")),
        }
    }

    /// What stands, or why nothing does; `None` while it is being made.
    pub fn walls(&self) -> Option<Result<Arc<Walls>, Refused>> {
        match &*self.0.borrow() {
            Making::Underway => None,
            Making::Made(_, walls) => Some(Ok(Arc::clone(walls))),
            Making::Failed(refused) => Some(Err(refused.clone())),
        }
    }

    /// Takes it apart and waits for that.
    pub async fn close(&self) {
        if let Ok(pool) = self.pool().await {
            pool.close().await;
        }
    }
}

fn make(policy: &Policy, launcher: Launcher) -> Result<(Cell, Walls), Refused> {
    let system = System::look(&plan::question(policy)).map_err(Refusal::from)?;
    let plan = plan::make_cell(policy, &Host::probe(), &system)?;
    let standing = vec![
        (Wall::Namespaces.name(), true),
        (Wall::Landlock.name(), plan.landlock.is_some()),
        (Wall::Seccomp.name(), plan.filter.is_some()),
        (Wall::Cgroups.name(), plan.groups.is_some()),
    ];
    let walls = Walls { standing, hidden: plan.hidden().cloned().collect() };
    Ok((Cell::make(launcher, plan)?, walls))
}

fn unavailable(why: &str) -> Refused {
    Refused::new(super::refused::Code::SandboxUnavailable, why)
}
