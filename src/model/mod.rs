//! The nouns. Each file holds one, its parts and its states; who owns whom:
//!
//! | noun | belongs to | made by |
//! | --- | --- | --- |
//! | tenant | the cluster | a person |
//! | group | a tenant | being named by a job |
//! | job | a group | a person |
//! | trigger | a job | a person |
//! | fire | a job | an occurrence of a trigger, or a request |
//! | attempt, lease | a fire | a grant |
//! | worker | a tenant | a process that registers |

pub mod fire;
pub mod id;
pub mod job;
pub mod policy;
pub mod schedule;
pub mod tenant;
pub mod trigger;
pub mod worker;
