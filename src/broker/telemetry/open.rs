//! Opens the database, whatever lies in its place.
//!
//! What is damaged, or is no file, is renamed to `telemetry.sqlite.damaged-<n>` with its journal: never followed, never
//! deleted, never written. A database of a newer stockade is left exactly as it is.

use super::FILE;
use nix::fcntl::{Flock, FlockArg};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Each brings a database one version on; `user_version` counts them.
pub(super) const MIGRATIONS: [&str; 2] = [
    "CREATE TABLE calls (
        id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, call_id TEXT NOT NULL, session TEXT, tool TEXT NOT NULL,
        program TEXT, summary TEXT NOT NULL, cwd TEXT, decision TEXT NOT NULL, duration_us INTEGER NOT NULL,
        proc_id TEXT, exit_code INTEGER, signal INTEGER, reason TEXT, bytes_in INTEGER NOT NULL,
        bytes_out INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX calls_at ON calls (at_ms);",
    "CREATE TABLE feedback (
        id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, rating INTEGER, text TEXT NOT NULL
    ) STRICT;",
];

/// Says in the header whose database it is: `stkd`.
const OURS: i32 = 0x7374_6b64;

/// Damaged ones kept; past them telemetry goes without, as something keeps on breaking it.
const MOST_DAMAGED: u32 = 10;

/// Another broker of this agent may be writing.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why there is no database.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing but an operator can change it.
    Lasting(String),
    /// Worth another try.
    Passing(String),
}

pub(super) fn open(directory: &Path) -> Result<Connection, Failure> {
    let passing = |error: io::Error| Failure::Passing(format!("`{FILE}`: {error}"));
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(passing)?;
    // SQLite is told to follow no link, and means every part of the path.
    let directory = directory.canonicalize().map_err(passing)?;
    let _held = hold(&directory).map_err(passing)?;
    match try_open(&directory) {
        Ok(connection) => Ok(connection),
        Err(Fault::Damaged(why)) => {
            let aside = set_aside(&directory)?;
            tracing::warn!("`{FILE}` is damaged ({why}); it is kept as `{aside}` and a new one begun");
            try_open(&directory).map_err(|fault| Failure::Passing(fault.why()))
        }
        Err(Fault::Newer(version)) => {
            let ours = MIGRATIONS.len();
            let why = format!("`{FILE}` has version {version}, this stockade knows {ours}; it is left as it is");
            Err(Failure::Lasting(why))
        }
        Err(Fault::Passing(why)) => Err(Failure::Passing(why)),
    }
}

/// Sets a database aside that turned out to be damaged while it was in use.
pub(super) fn discard(directory: &Path) -> Result<(), Failure> {
    let passing = |error: io::Error| Failure::Passing(format!("`{FILE}`: {error}"));
    let _held = hold(directory).map_err(passing)?;
    set_aside(directory).map(|_| ())
}

/// Whether an error says that the file itself is bad: its structure, or rows that were never written like this.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    let odd_row = matches!(
        error,
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..)
    );
    odd_row || matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

enum Fault {
    Damaged(String),
    Newer(i64),
    Passing(String),
}

impl Fault {
    fn why(self) -> String {
        match self {
            Fault::Damaged(why) | Fault::Passing(why) => why,
            Fault::Newer(version) => format!("it has version {version}"),
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        if is_damage(&error) { Fault::Damaged(error.to_string()) } else { Fault::Passing(error.to_string()) }
    }
}

fn try_open(directory: &Path) -> Result<Connection, Fault> {
    check_nodes(directory)?;
    let path = directory.join(FILE);
    check_header(&path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(&path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    // Should it turn out to be newer, closing it must not change it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    check_version(&connection)?;
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(Fault::Damaged(found));
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "trusted_schema", false)?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// A database is a file, and so is its journal; anything else could make SQLite wait or write elsewhere.
fn check_nodes(directory: &Path) -> Result<(), Fault> {
    for end in ["", "-wal", "-shm"] {
        match fs::symlink_metadata(directory.join(format!("{FILE}{end}"))) {
            Ok(facts) if !facts.is_file() => {
                return Err(Fault::Damaged(format!("`{FILE}{end}` is not a regular file")));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Fault::Passing(error.to_string())),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Makes the file if it is not there, owner-only, and asks its header before SQLite touches it.
fn check_header(path: &Path) -> Result<(), Fault> {
    let passing = |error: io::Error| Fault::Passing(error.to_string());
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let mut header = Vec::new();
    options.open(path).map_err(passing)?.take(100).read_to_end(&mut header).map_err(passing)?;
    if header.is_empty() {
        return Ok(());
    }
    if header.len() < 100 || !header.starts_with(b"SQLite format 3\0") {
        return Err(Fault::Damaged("it has no SQLite header".into()));
    }
    let version = header[60..64].iter().fold(0, |number, byte| number << 8 | i64::from(*byte));
    let application = header[68..72].iter().fold(0, |number, byte| number << 8 | i64::from(*byte));
    let newer = version > MIGRATIONS.len() as i64 && application == i64::from(OURS);
    if newer { Err(Fault::Newer(version)) } else { Ok(()) }
}

fn check_version(connection: &Connection) -> Result<(), Fault> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (version, application) = (number("user_version")?, number("application_id")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application == i64::from(OURS), tables) {
        (true, _) if version > MIGRATIONS.len() as i64 => Err(Fault::Newer(version)),
        (true, _) | (false, 0) => Ok(()),
        (false, _) => Err(Fault::Damaged("it is the database of something else".into())),
    }
}

fn migrate(connection: &mut Connection) -> Result<(), Fault> {
    let change = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let done = usize::try_from(version).unwrap_or(0).min(MIGRATIONS.len());
    for step in &MIGRATIONS[done..] {
        change.execute_batch(step)?;
    }
    change.pragma_update(None, "application_id", OURS)?;
    change.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    change.commit()?;
    // What the steps promise, whoever wrote the version.
    for table in ["calls", "feedback"] {
        let here = connection.table_exists(None, table)?;
        if !here {
            return Err(Fault::Damaged(format!("it has no table `{table}`")));
        }
    }
    Ok(())
}

/// One broker at a time opens or sets aside.
fn hold(directory: &Path) -> io::Result<Flock<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(directory.join("telemetry.lock"))?;
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| errno.into())
}

fn set_aside(directory: &Path) -> Result<String, Failure> {
    let name = |n: u32| format!("{FILE}.damaged-{n}");
    let is_free = |n: &u32| {
        let taken = |end: &str| fs::symlink_metadata(directory.join(format!("{}{end}", name(*n)))).is_ok();
        !["", "-wal", "-shm"].into_iter().any(taken)
    };
    let Some(free) = (1..=MOST_DAMAGED).find(is_free) else {
        let why = format!("`{FILE}` is damaged, and {MOST_DAMAGED} damaged ones lie there already; look into them");
        return Err(Failure::Lasting(why));
    };
    for end in ["-wal", "-shm", ""] {
        let (from, to): (PathBuf, PathBuf) =
            (directory.join(format!("{FILE}{end}")), directory.join(format!("{}{end}", name(free))));
        match fs::rename(from, to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::Passing(format!("`{FILE}{end}` cannot be set aside: {error}")));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(name(free))
}
