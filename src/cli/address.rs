//! How jobs and triggers are written on the command line.

use std::str::FromStr;

use crate::base::bounded::{Name, NameError};

/// `group/name`, or `name` in the group `default`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobAddress {
    pub group: String,
    pub name: String,
}

/// `group/job/trigger`, or `job/trigger` in the group `default`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerAddress {
    pub job: JobAddress,
    pub trigger: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("a job is written group/name, or name in the group default")]
    Job,
    #[error("a trigger is written group/job/trigger, or job/trigger in the group default")]
    Trigger,
    #[error(transparent)]
    Name(#[from] NameError),
}

impl FromStr for JobAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<JobAddress, AddressError> {
        let (group, name) = text.split_once('/').unwrap_or(("default", text));
        if name.contains('/') {
            return Err(AddressError::Job);
        }
        let (group, name) = (checked(group)?, checked(name)?);
        Ok(JobAddress { group, name })
    }
}

impl FromStr for TriggerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<TriggerAddress, AddressError> {
        let (job, trigger) = text.rsplit_once('/').ok_or(AddressError::Trigger)?;
        let job = job.parse().map_err(|error| match error {
            AddressError::Job | AddressError::Trigger => AddressError::Trigger,
            AddressError::Name(_) => error,
        })?;
        Ok(TriggerAddress { job, trigger: checked(trigger)? })
    }
}

impl std::fmt::Display for JobAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.group, self.name)
    }
}

impl std::fmt::Display for TriggerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.job, self.trigger)
    }
}

fn checked(text: &str) -> Result<String, NameError> {
    Name::new(text).map(|name| name.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_may_be_left_out_and_nothing_else() {
        assert_eq!("a".parse::<JobAddress>().unwrap().to_string(), "default/a");
        assert_eq!("g/a".parse::<JobAddress>().unwrap().to_string(), "g/a");
        assert_eq!("a/t".parse::<TriggerAddress>().unwrap().to_string(), "default/a/t");
        assert_eq!("g/a/t".parse::<TriggerAddress>().unwrap().to_string(), "g/a/t");
        for text in ["", "/", "g/", "/a", "g/a/t", "g/..", "a b", "a:fire"] {
            assert!(text.parse::<JobAddress>().is_err(), "{text}");
        }
        for text in ["", "t", "a/", "g/a/t/x", "a/t:pause"] {
            assert!(text.parse::<TriggerAddress>().is_err(), "{text}");
        }
    }
}
