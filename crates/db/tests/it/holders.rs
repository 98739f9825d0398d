//! One process owns a file: everyone else is told who, whatever name they use for it.

use std::os::unix::fs::symlink;
use std::path::Path;

use lavra_db::{Duck, DuckOptions, Error, Holder, Schema, lock_holder};

use crate::support::child::{self, role, tell};
use crate::support::place::{File, open};

const URL: &str = "http://127.0.0.1:8700";

/// Who is said to hold the file, if it cannot be opened.
fn held_by(path: &Path) -> Option<Holder> {
    match Duck::open(path, Schema::default(), DuckOptions::default()) {
        Ok(_) => None,
        Err(Error::Held { holder, .. }) => Some(holder),
        Err(other) => panic!("neither opened nor held: {other}"),
    }
}

#[test]
fn child() {
    let Some((role, path)) = role() else { return };
    match role.as_str() {
        "hold" => {
            let duck = open(&path);
            duck.announce(URL).unwrap();
            tell("held");
            std::thread::park();
        }
        "try" => match held_by(&path) {
            Some(holder) => tell(holder),
            None => tell("opened"),
        },
        other => panic!("no such role: {other}"),
    }
}

fn tried_by_another_process(path: &Path) -> Vec<String> {
    child::finish(child::command(module_path!(), "try", path))
}

#[test]
fn a_second_opener_in_the_same_process_is_told_our_pid() {
    let file = File::new();
    let _duck = file.open();
    let holder = held_by(&file.path()).expect("the file was opened twice");
    assert_eq!(holder.pid, Some(std::process::id()));
    assert_eq!(holder.url, None);
}

#[test]
fn another_process_is_told_the_pid_and_once_announced_the_url() {
    let file = File::new();
    let duck = file.open();
    let pid = std::process::id();
    assert_eq!(tried_by_another_process(&file.path()), [format!("the process {pid}")]);
    duck.announce(URL).unwrap();
    let expected = format!("the lavra process {pid}, which serves it at {URL}");
    assert_eq!(tried_by_another_process(&file.path()), [expected]);
}

#[test]
fn a_holder_that_is_killed_lets_go() {
    let file = File::new();
    let mut holder = child::start(child::command(module_path!(), "hold", &file.path()));
    assert_eq!(holder.hear().as_deref(), Some("held"));
    let told = lock_holder(&file.path()).unwrap().expect("nobody is said to hold it");
    assert_eq!((told.pid, told.url.as_deref()), (Some(holder.pid()), Some(URL)));
    assert_eq!(held_by(&file.path()).unwrap().pid, Some(holder.pid()));
    holder.kill();
    assert!(lock_holder(&file.path()).unwrap().is_none());
    assert!(held_by(&file.path()).is_none());
}

#[test]
fn a_holder_that_is_dying_is_waited_for() {
    let file = File::new();
    for _ in 0..10 {
        let mut holder = child::start(child::command(module_path!(), "hold", &file.path()));
        assert_eq!(holder.hear().as_deref(), Some("held"));
        holder.kill_and_leave();
        let told = held_by(&file.path());
        assert!(told.is_none(), "held by {}", told.unwrap());
    }
}

#[test]
fn the_lock_of_a_process_that_is_gone_is_waited_for_but_not_forever() {
    let file = File::new();
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let gone = ended.id();
    let path = file.directory().join("lavra.duckdb.lock");
    let said = format!(r#"{{"pid":{gone},"url":"{URL}","token":"t"}}"#);
    std::fs::write(&path, said).unwrap();
    let lock = std::fs::File::open(&path).unwrap();
    lock.lock().unwrap();
    assert_eq!(held_by(&file.path()).unwrap().pid, Some(gone));

    let letting_go = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(lock);
    });
    assert!(held_by(&file.path()).is_none());
    letting_go.join().unwrap();
}

#[test]
fn a_dropped_handle_has_closed_the_file() {
    let file = File::new();
    for _ in 0..5 {
        drop(file.open());
        assert!(lock_holder(&file.path()).unwrap().is_none());
    }
}

#[test]
fn a_link_leads_to_the_same_lock() {
    let file = File::new();
    let link = file.directory().join("link.duckdb");
    symlink(file.path(), &link).unwrap();
    // The file is not there yet; the link already names it.
    let by_link = open(&link);
    assert_eq!(by_link.path(), file.path().canonicalize().unwrap());
    assert!(held_by(&file.path()).is_some(), "opened beside the link");
    assert!(lock_holder(&link).unwrap().is_some());
    drop(by_link);
    let _by_name = file.open();
    assert!(held_by(&link).is_some(), "opened through the link");
}

#[test]
fn reading_the_file_ourselves_does_not_give_it_away() {
    let file = File::new();
    let _duck = file.open();
    std::fs::read(file.path()).unwrap();
    let told = tried_by_another_process(&file.path());
    assert_eq!(told, [format!("the process {}", std::process::id())]);
}

#[test]
fn those_who_only_ask_do_not_stand_in_the_way() {
    let file = File::new();
    drop(file.open());
    let path = file.path();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    lock_holder(&path).unwrap();
                    std::thread::sleep(std::time::Duration::from_micros(200));
                }
            });
        }
        let refused = (0..20).filter(|_| held_by(&path).is_some()).count();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(refused, 0, "someone who asked was taken for a holder");
    });
}

#[test]
fn the_lock_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let file = File::new();
    let _duck = file.open();
    let lock = file.directory().join("lavra.duckdb.lock");
    assert_eq!(std::fs::metadata(lock).unwrap().permissions().mode() & 0o777, 0o600);
}
