//! Our launcher as a contender, without the command line: from the command handed over to the status known.
//!
//! *Warm* takes a process that already waits sealed and asks for the next one afterwards; *cold* asks for a process
//! and waits for it. All walls are on, cgroups included: a host that cannot have them is left out with its reason.

use super::measure::{Client, Contender};
use crate::shell::Result;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use stockade::broker::cell::{Cell, Ready, Stdio};
use stockade::host::{Host, System};
use stockade::plan::command::{CommandPlan, Request, Words};
use stockade::policy::{Overrides, Policy};
use stockade::sys::descriptor;
use stockade::wire::FromInit;
use stockade::{launch, plan};

/// Ready processes to begin with: as many as there are clients at once.
const POOL: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Warm,
    Cold,
}

/// Both ways, or why there are none. Must be called before any thread is started.
pub fn contenders(workspace: &Path) -> Result<Vec<Contender>> {
    let mut both = Vec::new();
    for (name, start) in [("launcher, warm", Start::Warm), ("launcher, cold", Start::Cold)] {
        let yard = Arc::new(Yard::make(workspace, start)?);
        both.push(Contender::new(name, move || {
            let yard = Arc::clone(&yard);
            let stdio = null()?;
            let client: Client = Box::new(move || yard.start_once(&stdio));
            Ok(client)
        }));
    }
    Ok(both)
}

struct Yard {
    cell: Mutex<Cell>,
    command: CommandPlan,
    start: Start,
}

impl Yard {
    fn make(workspace: &Path, start: Start) -> Result<Yard> {
        let launcher = launch::start(drop).map_err(|error| error.to_string())?;
        let policy = Policy::load(None, Some(workspace), &Overrides::default()).map_err(|error| error.to_string())?;
        let system = System::look(&plan::question(&policy)).map_err(|failed| failed.why)?;
        let cell = plan::make_cell(&policy, &Host::probe(), &system).map_err(|refusal| refusal.to_string())?;
        let request = Request { words: Words::Argv(vec!["/bin/true".into()]), cwd: None, env: Vec::new() };
        let command = plan::command::plan(&policy, &request, &[]).map_err(|refusal| refusal.to_string())?;
        let mut cell = Cell::make(launcher, cell).map_err(|trouble| trouble.to_string())?;
        if start == Start::Warm {
            for _ in 1..POOL {
                cell.prepare().map_err(|trouble| trouble.to_string())?;
            }
        }
        Ok(Yard { cell: Mutex::new(cell), command, start })
    }

    fn start_once(&self, stdio: &Stdio) -> Result {
        let ready = {
            let mut cell = self.cell.lock().map_err(|_| "a client panicked")?;
            cell.take().map_err(|trouble| trouble.to_string())?
        };
        ready.start(&self.command, stdio).map_err(|trouble| trouble.to_string())?;
        wait(&ready)?;
        // Only now: making the next one takes a core, which the command would have had.
        if self.start == Start::Warm {
            let cell = self.cell.lock().map_err(|_| "a client panicked");
            cell?.prepare().map_err(|trouble| trouble.to_string())?;
        }
        Ok(())
    }
}

/// Until PID 1 has told the status, which must be success.
fn wait(ready: &Ready) -> Result {
    let mut bytes = [0; FromInit::BYTES];
    loop {
        let got = descriptor::read(ready.leash.as_raw_fd(), &mut bytes).map_err(|errno| errno.to_string())?;
        match FromInit::from_bytes(&bytes[..got]) {
            Some(FromInit::Ready) => {}
            Some(FromInit::Exited { status: 0, .. }) => return Ok(()),
            other => return Err(format!("the process ended with {other:?}")),
        }
    }
}

fn null() -> Result<Stdio> {
    let open = || File::options().read(true).write(true).open("/dev/null").map_err(|error| error.to_string());
    Ok(Stdio::Descriptors([open()?.into(), open()?.into(), open()?.into()]))
}
