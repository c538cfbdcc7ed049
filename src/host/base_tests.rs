//! A directory with the right files is a good enough v2 hierarchy for choosing; permissions are
//! not tested here, because root passes them all.

use super::*;
use Controller::{Cpu, Memory, Pids};

struct Tree(PathBuf);

impl Tree {
    /// `path: controllers / subtree_control / type? / procs`.
    fn new(name: &str, groups: &[(&str, &str, &str, bool, &str)]) -> Tree {
        let root = std::env::temp_dir().join(format!("stockade-base-{name}-{}", std::process::id()));
        for (path, controllers, subtree, typed, procs) in groups {
            let group = root.join(path);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cgroup.controllers"), controllers).unwrap();
            fs::write(group.join("cgroup.subtree_control"), subtree).unwrap();
            fs::write(group.join("cgroup.procs"), procs).unwrap();
            if *typed {
                fs::write(group.join("cgroup.type"), "domain\n").unwrap();
            }
        }
        Tree(root)
    }

    fn choose(&self, own: &str, uid: u32) -> Base {
        let hierarchy = Hierarchy {
            version: Version::V2,
            mount: self.0.clone(),
            own: Some(self.0.join(own)),
            controllers: vec![Memory, Cpu, Pids],
            base: Base::Closed { why: String::new() },
        };
        let asker = Asker { uid, program: std::env::current_exe().unwrap(), runtime: self.0.join("run") };
        choose(&hierarchy, &asker)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const ALL: &str = "cpuset cpu io memory pids\n";

#[test]
fn root_takes_the_nearest_ancestor_that_passes_the_controllers_down() {
    let tree = Tree::new(
        "ancestor",
        &[
            ("", ALL, ALL, false, ""),
            ("system.slice", ALL, "cpu memory pids\n", true, ""),
            ("system.slice/ssh.service", "cpu memory pids\n", "", true, "1\n"),
        ],
    );
    assert_eq!(tree.choose("system.slice/ssh.service", 0), Base::Ready { path: tree.0.join("system.slice") });
}

#[test]
fn root_may_switch_controllers_on_at_the_true_root_only() {
    let tree = Tree::new("enable", &[("", ALL, "", false, "1\n")]);
    assert_eq!(tree.choose("", 0), Base::Enable { path: tree.0.join("") });
    let container = Tree::new("container", &[("", ALL, "", true, "1\n")]);
    let Base::Closed { why } = container.choose("", 0) else { panic!("a container's root with a foreign process") };
    assert!(why.contains("holds other processes"), "{why}");
}

#[test]
fn a_group_that_holds_only_us_is_settled() {
    let tree = Tree::new("settle", &[("", ALL, "", true, &format!("{}\n", std::process::id()))]);
    assert_eq!(tree.choose("", 0), Base::Settle { path: tree.0.join("") });
}

#[test]
fn an_ordinary_user_asks_the_service_manager_first() {
    let tree = Tree::new("scope", &[("", ALL, ALL, false, ""), ("user", ALL, ALL, true, "1\n")]);
    fs::create_dir_all(tree.0.join("run")).unwrap();
    fs::write(tree.0.join("run/bus"), "").unwrap();
    assert_eq!(tree.choose("user", 1000), Base::Scope { sockets: vec![tree.0.join("run/bus")] });
}

#[test]
fn a_controller_that_is_not_offered_is_named() {
    let tree = Tree::new("absent", &[("", "cpu memory\n", "", true, "1\n")]);
    let Base::Closed { why } = tree.choose("", 0) else { panic!("pids is not offered") };
    assert!(why.ends_with("does not offer pids"), "{why}");
}
