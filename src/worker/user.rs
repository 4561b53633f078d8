//! The operating system's users, as far as a command may run as one of them.

use std::path::Path;

use rustix::process::{geteuid, getuid};

/// Where users are looked up. Users of a directory service are not seen: `unsafe` calls would be
/// needed.
const PASSWD: &str = "/etc/passwd";

/// Whom a program is to be started as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
    pub home: String,
}

/// Why a command cannot run as its user.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    #[error("cannot read {PASSWD} to look the user {name:?} up: {source}")]
    Unreadable { name: String, source: std::io::Error },
    #[error("there is no user {name:?} in {PASSWD} of this machine")]
    Unknown { name: String },
    #[error(
        "to run a command as {name:?} the worker must run as root or as {name:?}, \
         it runs as the user with the id {own_uid}"
    )]
    NotRoot { name: String, own_uid: u32 },
}

/// Whom to become for `name`: `None` when this process is that user already.
///
/// # Errors
/// When the user does not exist here, or when this process may not become it.
pub async fn user_to_become(name: &str) -> Result<Option<User>, UserError> {
    let read = tokio::fs::read_to_string(Path::new(PASSWD)).await;
    let passwd = read.map_err(|source| UserError::Unreadable { name: name.to_owned(), source })?;
    let user =
        find_user(&passwd, name).ok_or_else(|| UserError::Unknown { name: name.to_owned() })?;
    let own_uid = getuid().as_raw();
    if user.uid == own_uid {
        return Ok(None);
    }
    if !geteuid().is_root() {
        return Err(UserError::NotRoot { name: name.to_owned(), own_uid });
    }
    Ok(Some(user))
}

fn find_user(passwd: &str, name: &str) -> Option<User> {
    for line in passwd.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [line_name, _password, uid, gid, _comment, home, ..] = fields.as_slice() else {
            continue;
        };
        if *line_name == name {
            let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
            return Some(User { uid, gid, home: (*home).to_owned() });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nwww:x:33:34::/var/www:/bin/false\n";
        let www = User { uid: 33, gid: 34, home: "/var/www".to_owned() };
        assert_eq!(find_user(passwd, "www"), Some(www));
        assert_eq!(find_user(passwd, "ww"), None);
        assert_eq!(find_user(passwd, "broken"), None);
    }

    #[tokio::test]
    async fn unknown_users_are_refused_by_name() {
        let error = user_to_become("nobody-of-this-name").await.unwrap_err();
        assert!(error.to_string().contains("\"nobody-of-this-name\""), "{error}");
    }
}
