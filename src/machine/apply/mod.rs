//! The match over all commands, with what every one of them has in common: the stamp, and the
//! remembered answers.
//!
//! A command's function says before it which refusals it knows, in the order in which it looks for
//! them. It changes the state through [`context::Context`] alone.

mod admin;
mod answer;
mod context;
mod ending;
mod expire;
mod fire;
mod gate;
mod grant;
mod job;
mod record;
mod request;
mod retention;
mod tenant;
mod trigger;
mod worker;

use crate::machine::Applied;
use crate::machine::apply::context::Context;
use crate::machine::command::{Command, Entry};
use crate::machine::reply::{Rejection, Reply};
use crate::machine::state::State;

pub(in crate::machine) fn apply(state: &mut State, index: u64, entry: &Entry) -> Applied {
    let mut context = Context::new(state, index, entry.stamp);
    request::forget_old(&mut context);
    let command = &entry.proposal.command;
    let reply = match &entry.proposal.request {
        None => reply_to(&mut context, command),
        Some(identity) => {
            request::answer_once(&mut context, identity, |context| reply_to(context, command))
        }
    };
    context.finish(reply)
}

fn reply_to(context: &mut Context<'_>, command: &Command) -> Reply {
    carry_out(context, command).unwrap_or_else(Reply::Rejected)
}

fn carry_out(context: &mut Context<'_>, command: &Command) -> Result<Reply, Rejection> {
    match command {
        Command::Bootstrap { cluster_id } => admin::bootstrap(context, cluster_id),
        Command::AllocateNode => Ok(admin::allocate_node(context)),
        Command::PutTenant(command) => tenant::put_tenant(context, command),
        Command::DeleteTenant { tenant } => tenant::delete_tenant(context, tenant),
        Command::PauseGroup { group } => tenant::pause_group(context, group),
        Command::ResumeGroup { group } => tenant::resume_group(context, group),
        Command::PutJob(command) => job::put_job(context, command),
        Command::DeleteJob { job, precondition } => job::delete_job(context, job, *precondition),
        Command::PauseJob { job } => job::pause_job(context, job),
        Command::ResumeJob { job } => job::resume_job(context, job),
        Command::PutTrigger(command) => trigger::put_trigger(context, command),
        Command::DeleteTrigger { job, trigger, precondition } => {
            trigger::delete_trigger(context, job, trigger, *precondition)
        }
        Command::PauseTrigger { job, trigger } => trigger::pause_trigger(context, job, trigger),
        Command::ResumeTrigger { job, trigger } => trigger::resume_trigger(context, job, trigger),
        Command::RequestFire(command) => fire::request_fire(context, command),
        Command::CancelFire { fire } => fire::cancel_fire(context, *fire),
        Command::RecordFires(command) => Ok(record::record_fires(context, command)),
        Command::Grant(command) => Ok(grant::grant(context, command)),
        Command::RegisterWorker(command) => worker::register_worker(context, command),
        Command::DrainWorker { worker } => worker::drain_worker(context, *worker),
        Command::RemoveWorkers { workers } => Ok(worker::remove_workers(context, workers)),
        Command::AnswerWork(command) => Ok(answer::answer_work(context, command)),
        Command::ExpireLeases { expired } => Ok(expire::expire_leases(context, expired)),
        Command::PruneHistory(command) => Ok(retention::prune_history(context, command)),
    }
}
