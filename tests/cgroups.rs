//! The wall of limits, on whatever cgroup layout this machine has. Needs root or a delegated
//! subtree; where there is neither, every test fails and says so.

use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use stockade::host::{Base, CgroupLayout, Controller, Host, Version};
use stockade::launch::cgroup::{CellGroup, Enter, GaugeKind, Gauges, GroupError, GroupLimits, Slot};
use stockade::launch::cgroup::{prepare, remove_locations, sweep};

const MIB: u64 = 1 << 20;

fn layout() -> &'static CgroupLayout {
    static LAYOUT: OnceLock<CgroupLayout> = OnceLock::new();
    LAYOUT.get_or_init(|| {
        let mut layout = Host::probe().cgroups;
        prepare(&mut layout, &[std::process::id()]).expect("these tests need root or a delegated cgroup subtree");
        layout
    })
}

/// A cell that is removed when the test ends, however it ends.
struct Cell(CellGroup);

impl Cell {
    fn new(name: &str, limits: &GroupLimits) -> Cell {
        Cell(CellGroup::create(layout(), std::process::id(), name, limits).expect("a cell"))
    }

    fn file(&self, slot: usize, file: &str) -> String {
        let paths = self.0.locations().iter().map(|cell| cell.join(format!("s{slot}/{file}")));
        let path: Vec<PathBuf> = paths.filter(|path| path.exists()).collect();
        fs::read_to_string(path.first().unwrap_or_else(|| panic!("no {file} in slot {slot}"))).unwrap()
    }

    fn slots(&self) -> usize {
        let entries = self.0.locations().iter().flat_map(|cell| fs::read_dir(cell).unwrap());
        entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with('s') && entry.path().is_dir())
            .count()
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        let locations = self.0.locations().to_vec();
        self.0.remove();
        if !std::thread::panicking() {
            assert!(locations.iter().all(|location| !location.exists()), "a cgroup is left: {locations:?}");
        }
    }
}

fn limits() -> GroupLimits {
    GroupLimits { memory: 64 * MIB, cpus: 2.0, processes: 16, spare: 8 }
}

/// Runs a shell script inside the slot; it waits until it was put there.
fn start(slot: &Slot, script: &str) -> Child {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("read go || exit 9; {script}")]).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("a shell");
    let pid = child.id().to_string();
    for tasks in slot.enter.tasks() {
        nix::unistd::write(tasks, pid.as_bytes()).expect("the slot takes the child");
    }
    if let Some(into) = slot.enter.directory() {
        let procs = format!("/proc/self/fd/{}/cgroup.procs", into.as_raw_fd());
        fs::write(procs, &pid).expect("the slot takes the child");
    }
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    child
}

fn run(slot: &Slot, script: &str) -> Option<i32> {
    let mut child = start(slot, script);
    let mut status = None;
    until("the script ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.and_then(|status| status.code())
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn has_event(slot: &Slot) -> bool {
    let Some(event) = slot.oom_event() else { return false };
    let mut poll = [PollFd::new(event, PollFlags::POLLIN)];
    nix::poll::poll(&mut poll, PollTimeout::ZERO).unwrap() == 1
}

fn memory_version() -> Version {
    layout().carrier(Controller::Memory).unwrap().version
}

#[test]
fn out_of_memory_is_counted_in_the_slot_of_the_victim() {
    let mut cell = Cell::new("oom", &limits());
    let (victim, bystander) = (cell.0.take_slot().unwrap(), cell.0.take_slot().unwrap());
    let mut sleeper = start(&bystander, "exec sleep 1000");
    assert_eq!(run(&victim, "exit 7"), Some(7), "control: a small process lives");
    assert_eq!(victim.gauges().oom_kills(), 0, "control");

    let mut hog = start(&victim, "sleep 1000 & tail /dev/zero; exec sleep 1000");
    until("an OOM kill is counted", || victim.gauges().oom_kills() > 0);
    match memory_version() {
        Version::V1 => assert!(has_event(&victim), "v1 signals the eventfd"),
        Version::V2 => {
            hog.wait().unwrap();
            until("the kernel killed the whole slot", || cell.file(1, "cgroup.procs").is_empty());
        }
    }
    assert_eq!(bystander.gauges().oom_kills(), 0);
    assert!(sleeper.try_wait().unwrap().is_none(), "the bystander lives");
    assert!(victim.gauges().peak_bytes().is_none_or(|peak| peak > 32 * MIB && peak <= 64 * MIB));
    cell.0.remove();
    hog.wait().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn a_fork_beyond_the_limit_is_refused() {
    let mut cell = Cell::new("pids", &limits());
    let slot = cell.0.take_slot().unwrap();
    let few = "for i in 1 2 3 4 5 6 7 8; do sleep 0.1 & done; wait";
    assert_eq!(run(&slot, few), Some(0), "control: within the limit");
    assert!(cell.file(1, "pids.events").contains("max 0"), "control");

    let mut bomb = start(&slot, "while :; do sleep 1000 & done");
    bomb.wait().unwrap();
    assert!(!cell.file(1, "pids.events").contains("max 0"), "the kernel refused a fork");
    assert!(cell.file(1, "pids.current").trim().parse::<u64>().unwrap() <= limits().processes + 1);
}

#[test]
fn the_quota_slows_a_busy_loop() {
    let mut cell = Cell::new("cpu", &GroupLimits { cpus: 0.2, ..limits() });
    let slot = cell.0.take_slot().unwrap();
    let started = Instant::now();
    let mut spinner = start(&slot, "while :; do :; done");
    until("100 ms of CPU time are used", || slot.gauges().cpu_time() >= Duration::from_millis(100));
    assert!(started.elapsed() >= Duration::from_millis(250), "a fifth of a CPU: {:?}", started.elapsed());
    cell.0.remove();
    spinner.wait().unwrap();
}

#[test]
fn a_clean_slot_is_used_again_and_counts_from_zero() {
    let mut cell = Cell::new("recycle", &limits());
    let slot = cell.0.take_slot().unwrap();
    assert_eq!(run(&slot, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"), Some(0));
    assert!(slot.gauges().cpu_time() > Duration::from_millis(1));
    let before = cell.slots();
    cell.0.give_back(slot);
    assert_eq!(cell.slots(), before, "it was kept");

    let slot = cell.0.take_slot().unwrap();
    assert_eq!(cell.slots(), before, "no new one was made");
    assert_eq!(slot.gauges().cpu_time(), Duration::ZERO);
    assert_eq!(slot.gauges().oom_kills(), 0);
    assert!(slot.gauges().peak_bytes().is_none_or(|peak| peak < 8 * MIB));
}

#[test]
fn a_slot_that_holds_memory_is_not_used_again() {
    let mut cell = Cell::new("dirty", &limits());
    let slot = cell.0.take_slot().unwrap();
    let file = std::env::temp_dir().join(format!("stockade-dirty-{}", std::process::id()));
    assert_eq!(run(&slot, &format!("head -c 8388608 /dev/zero > {}", file.display())), Some(0));
    cell.0.give_back(slot);
    until("it is removed", || cell.0.retry_removals() == 0);
    assert_eq!(cell.slots(), 0);
    fs::remove_file(file).unwrap();
}

#[test]
fn a_slot_with_a_survivor_is_removed_when_it_is_gone() {
    let mut cell = Cell::new("busy", &limits());
    let slot = cell.0.take_slot().unwrap();
    let mut survivor = start(&slot, "exec sleep 1000");
    cell.0.give_back(slot);
    assert_eq!(cell.0.retry_removals(), 1);
    survivor.kill().unwrap();
    survivor.wait().unwrap();
    until("it is removed", || cell.0.retry_removals() == 0);
    assert_eq!(cell.slots(), 0);
}

#[test]
fn removal_kills_whatever_lives_inside() {
    let mut cell = Cell::new("kill", &GroupLimits { processes: 64, ..limits() });
    let slot = cell.0.take_slot().unwrap();
    let stubborn = "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; sleep 1000 & sleep 1000' &); while :; do sleep 1000 & done";
    let mut child = start(&slot, stubborn);
    until("it has forked", || cell.file(1, "cgroup.procs").lines().count() > 10);
    let pids: Vec<String> = cell.file(1, "cgroup.procs").lines().map(str::to_owned).collect();
    let locations = cell.0.locations().to_vec();
    drop(slot);
    let started = Instant::now();
    cell.0.remove();
    assert!(started.elapsed() < Duration::from_secs(2));
    child.wait().unwrap();
    assert!(locations.iter().all(|location| !location.exists()));
    let is_dead =
        |pid: &String| fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "));
    // A task leaves its group shortly before it is a zombie.
    until("every process is dead", || pids.iter().all(is_dead));
}

#[test]
fn paths_alone_are_enough_to_remove_a_cell() {
    let mut cell = Cell::new("paths", &limits());
    let slot = cell.0.take_slot().unwrap();
    let mut child = start(&slot, "exec sleep 1000");
    let locations = cell.0.locations().to_vec();
    remove_locations(&locations);
    assert!(locations.iter().all(|location| !location.exists()));
    child.wait().unwrap();
}

#[test]
fn a_sweep_takes_a_dead_brokers_groups_and_no_others() {
    let mut broker = Command::new("sleep").arg("1000").spawn().unwrap();
    let mut orphaned = CellGroup::create(layout(), broker.id(), "orphaned", &limits()).unwrap();
    let slot = orphaned.take_slot().unwrap();
    let mut child = start(&slot, "exec sleep 1000");
    sweep(layout());
    assert!(orphaned.locations().iter().all(|location| location.exists()), "control: its broker lives");

    broker.kill().unwrap();
    let own = Cell::new("own", &limits());
    // Not reaped yet: a zombie is dead.
    until("the sweep takes it", || {
        sweep(layout());
        orphaned.locations().iter().all(|location| !location.exists())
    });
    broker.wait().unwrap();
    assert!(own.0.locations().iter().all(|location| location.exists()));
    child.wait().unwrap();
}

#[test]
fn gauges_are_read_by_whoever_holds_their_descriptors() {
    let mut cell = Cell::new("gauges", &limits());
    let slot = cell.0.take_slot().unwrap();
    run(&slot, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
    let passed = slot.gauges().descriptors().iter().map(|gauge| gauge.try_clone_to_owned().unwrap()).collect();
    let kind: GaugeKind = serde_json::from_str(&serde_json::to_string(&slot.gauges().kind()).unwrap()).unwrap();
    let there = Gauges::from_descriptors(kind, passed).unwrap();
    assert!(there.cpu_time() > Duration::from_millis(1));
    assert_eq!(there.cpu_time(), slot.gauges().cpu_time());
    assert_eq!(there.peak_bytes(), slot.gauges().peak_bytes());
}

#[test]
fn a_controller_without_a_hierarchy_is_refused_by_name() {
    let mut poor = layout().clone();
    for hierarchy in &mut poor.hierarchies {
        hierarchy.controllers.retain(|&controller| controller != Controller::Pids);
    }
    let error = CellGroup::create(&poor, std::process::id(), "poor", &limits()).unwrap_err();
    assert!(matches!(error, GroupError::Missing { controller: Controller::Pids }), "{error}");

    let mut closed = layout().clone();
    let last = closed.hierarchies.last_mut().unwrap();
    last.base = Base::Closed { why: "not yours".to_owned() };
    let error = CellGroup::create(&closed, std::process::id(), "closed", &limits()).unwrap_err();
    assert!(error.to_string().contains("not yours"), "{error}");
}

/// The figures are printed for `--nocapture`; on a noisy machine only their order is certain.
#[test]
fn slots_cost_little() {
    let mut cell = Cell::new("cost", &limits());
    let mut fresh = Vec::new();
    let mut slots = Vec::new();
    for _ in 0..24 {
        let started = Instant::now();
        slots.push(cell.0.take_slot().unwrap());
        fresh.push(started.elapsed());
    }
    let (mut back, mut again) = (Vec::new(), Vec::new());
    for slot in slots {
        let started = Instant::now();
        cell.0.give_back(slot);
        back.push(started.elapsed());
    }
    let slots: Vec<Slot> = (0..24)
        .map(|_| {
            let started = Instant::now();
            let slot = cell.0.take_slot().unwrap();
            again.push(started.elapsed());
            slot
        })
        .collect();
    assert!(slots.iter().all(|slot| !matches!(slot.enter, Enter::Tasks(ref tasks) if tasks.is_empty())));
    println!("on {:?}", layout().hierarchies);
    for (what, times) in [("new", &mut fresh), ("back", &mut back), ("again", &mut again)] {
        times.sort();
        println!("{what}: median {:?}, worst {:?}", times[times.len() / 2], times[times.len() - 1]);
    }
    assert!(again[12] * 5 < fresh[12], "using a slot again is far cheaper than a new one");
}
