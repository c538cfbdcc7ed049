//! What is kept, what makes room, and what is no backup.

use super::{Backups, Limits};
use crate::broker::refused::Code;
use crate::worker::ask::Previous;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

const HOUR: Duration = Duration::from_secs(3600);

struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("stockade-backup-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    fn backups(&self, files: usize, bytes: u64) -> Backups {
        Backups::new(Ok(self.0.clone()), Limits { age: HOUR, files, bytes })
    }

    fn count(&self) -> usize {
        fs::read_dir(self.0.join("backups")).unwrap().count()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn previous(content: &[u8]) -> Previous {
    Previous { size: content.len() as u64, mode: 0o640, content: Some(content.to_vec()) }
}

#[test]
fn what_was_kept_comes_back_as_it_was() {
    let place = Place::new();
    let backups = place.backups(10, 1000);
    let id = backups.keep("/w/a", &previous(b"one\ntwo\n\xff")).unwrap();
    let found = backups.find(&id).unwrap();
    assert_eq!((found.path.as_str(), found.mode, &found.content[..]), ("/w/a", 0o640, &b"one\ntwo\n\xff"[..]));
    let file = place.0.join("backups").join(&id);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(place.backups(10, 1000).find(&id).unwrap(), found, "a later broker has it too");
}

#[test]
fn an_id_is_no_path_and_half_a_backup_is_none() {
    let place = Place::new();
    let backups = place.backups(10, 1000);
    let id = backups.keep("/w/a", &previous(b"content")).unwrap();
    for wrong in ["", "b_", "../x", "b_../../../etc/pass", "b_aaaaaaaaaaaaaaaa", "b_AAAAAAAAAAAAAAAA", "\0"] {
        assert_eq!(backups.find(wrong).unwrap_err().code, Code::NotFound, "{wrong:?}");
    }
    let file = place.0.join("backups").join(&id);
    let whole = fs::read(&file).unwrap();
    for cut in [0, 5, whole.len() - 1] {
        fs::write(&file, &whole[..cut]).unwrap();
        assert_eq!(backups.find(&id).unwrap_err().code, Code::NotFound, "cut at {cut}");
    }
    let mut changed = whole;
    *changed.last_mut().unwrap() ^= 1;
    fs::write(&file, &changed).unwrap();
    assert_eq!(backups.find(&id).unwrap_err().code, Code::NotFound, "a changed byte");
}

#[test]
fn the_oldest_make_room_by_number_by_size_and_by_age() {
    let place = Place::new();
    let backups = place.backups(10, 1_000_000);
    let ids: Vec<String> =
        (0..11).map(|number| backups.keep("/w/a", &previous(format!("{number}").as_bytes())).unwrap()).collect();
    assert!(place.count() <= 9, "{} are left", place.count());
    assert!(backups.find(&ids[0]).is_err() && backups.find(&ids[10]).is_ok());

    let small = place.backups(100, 4000);
    for _ in 0..10 {
        small.keep("/w/a", &previous(&[b'x'; 1000])).unwrap();
    }
    let bytes: u64 =
        fs::read_dir(place.0.join("backups")).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes <= 5200, "{bytes} bytes are left");
    assert!(small.keep("/w/a", &previous(&[0; 4001])).unwrap_err().contains("more than the 4000"));

    small.sweep(SystemTime::now() + 2 * HOUR);
    assert_eq!(place.count(), 0);
}

#[test]
fn why_nothing_is_kept_is_told() {
    let limits = Limits { age: HOUR, files: 10, bytes: 1000 };
    let nowhere = Backups::new(Err("the disk is full".into()), limits);
    assert_eq!(nowhere.keep("/w/a", &previous(b"x")).unwrap_err(), "the disk is full");
    let large = Previous { size: 1 << 40, mode: 0o644, content: None };
    assert!(nowhere.keep("/w/a", &large).unwrap_err().contains("unreadable or more than"));
}
