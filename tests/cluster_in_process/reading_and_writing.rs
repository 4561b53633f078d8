//! Elections, proposals and reads.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use horolog::base::time::Span;
use horolog::machine::reply::Reply;
use horolog::model::id::{Seq, WorkerId};
use horolog::replica::config::Start;
use horolog::replica::error::ProposeError;
use horolog::replica::leader_call::{ExtendVerdict, LeaderAnswer, LeaderCall, LeaderHandler};

use crate::cluster_in_process::support::{cluster, has_tenant, leader, start, tenant, try_start};
use crate::support::poll::{LONG, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_is_a_cluster_and_recovers_what_it_acknowledged() {
    let member = start(Start::Bootstrap).await;
    let proposed = member.replica.propose(tenant("alpha"), LONG).await.unwrap();
    assert!(matches!(proposed.reply, Reply::Tenant(..)), "{:?}", proposed.reply);
    let cluster_id = member.replica.status().cluster_id;
    let (folder, peer) = member.stop().await;
    let member = try_start(&folder, &peer, Start::Restart).await.unwrap();
    member.replica.recovered().await.unwrap();
    assert!(has_tenant(&member.replica.view(), "alpha"));
    assert_eq!(member.replica.status().cluster_id, cluster_id);
    assert!(member.replica.view().applied_index >= proposed.index);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_member_acknowledged_every_other_reads_at_once() {
    let members = cluster(3).await;
    for (place, writer) in members.iter().enumerate() {
        let name = format!("tenant-{place}");
        let proposed = writer.replica.propose(tenant(&name), LONG).await.unwrap();
        assert!(has_tenant(&writer.replica.view(), &name), "its own next read shows it");
        for reader in &members {
            let view = reader.replica.linearizable(LONG).await.unwrap();
            assert!(has_tenant(&view, &name), "{name} on {:?}", reader.id());
            assert!(view.applied_index >= proposed.index);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_members_go_on_without_two() {
    let mut members = cluster(5).await;
    members.pop().unwrap().stop().await;
    let place = leader(&members).await;
    members.remove(place).stop().await;
    for member in &members {
        member.replica.propose(tenant(&format!("from-{}", member.id())), LONG).await.unwrap();
    }
    let view = members[0].replica.linearizable(LONG).await.unwrap();
    for member in &members {
        assert!(has_tenant(&view, &format!("from-{}", member.id())));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_leader_is_replaced_and_comes_back_as_a_follower() {
    let mut members = cluster(3).await;
    members[0].replica.propose(tenant("before"), LONG).await.unwrap();
    let place = leader(&members).await;
    let term = members[place].replica.leadership().borrow().term;
    let (folder, peer) = members.remove(place).stop().await;
    members[0].replica.propose(tenant("meanwhile"), LONG).await.unwrap();
    let next = leader(&members).await;
    assert!(members[next].replica.leadership().borrow().term > term);
    let back = try_start(&folder, &peer, Start::Restart).await.unwrap();
    back.replica.recovered().await.unwrap();
    let view = back.replica.linearizable(LONG).await.unwrap();
    assert!(has_tenant(&view, "before") && has_tenant(&view, "meanwhile"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_cluster_restarts_with_everything_it_acknowledged() {
    let members = cluster(3).await;
    for number in 0..20 {
        let member = &members[number % 3];
        member.replica.propose(tenant(&format!("tenant-{number}")), LONG).await.unwrap();
    }
    let mut stopped = Vec::new();
    for member in members {
        stopped.push(member.stop().await);
    }
    let mut members = Vec::new();
    for (folder, peer) in &stopped {
        members.push(try_start(folder, peer, Start::Restart).await.unwrap());
    }
    for member in &members {
        member.replica.recovered().await.unwrap();
        for number in 0..20 {
            assert!(has_tenant(&member.replica.view(), &format!("tenant-{number}")));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proposal_of_another_term_is_refused() {
    let members = cluster(3).await;
    let place = leader(&members).await;
    let old = members[place].replica.leadership().borrow().term;
    let taken = members[place].replica.propose_leading(old, vec![tenant("a"), tenant("b")]).await;
    let taken = taken.unwrap();
    assert_eq!(taken[1].index, taken[0].index + 1);
    members[place].replica.transfer_leadership(None, LONG).await.unwrap();
    let next = leader(&members).await;
    assert_ne!(next, place);
    members[next].replica.transfer_leadership(Some(members[place].id()), LONG).await.unwrap();
    assert_eq!(leader(&members).await, place, "it leads again, in another term");
    let refused = members[place].replica.propose_leading(old, vec![tenant("late")]).await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, ProposeError::NotLeader { .. }), "{refused}");
    assert!(!refused.is_unknown());
    for member in &members {
        let view = member.replica.linearizable(LONG).await.unwrap();
        assert!(has_tenant(&view, "a") && has_tenant(&view, "b"));
        assert!(!has_tenant(&view, "late"), "a refusal changed nothing");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proposals_that_arrive_together_share_appends() {
    const CALLERS: usize = 256;
    let members = cluster(3).await;
    let place = leader(&members).await;
    for asked in [place, (place + 1) % 3] {
        let before = members[place].replica.status().log_appends;
        let replica = &members[asked].replica;
        let calls = (0..CALLERS)
            .map(|number| replica.propose(tenant(&format!("caller-{asked}-{number}")), LONG));
        for answer in futures_util::future::join_all(calls).await {
            answer.unwrap();
        }
        let appends = members[place].replica.status().log_appends - before;
        assert!(appends < CALLERS as u64 / 4, "{appends} appends for {CALLERS} proposals");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_refuses_early_and_loses_nothing_it_took() {
    let members = cluster(1).await;
    let replica = &members[0].replica;
    let calls = (0..20_000).map(|number| {
        let replica = replica.clone();
        async move { replica.propose(tenant(&format!("many-{number}")), LONG).await }
    });
    let answers = futures_util::future::join_all(calls).await;
    let refused = answers.iter().filter(|answer| answer.is_err()).count();
    assert!(refused > 0, "20,000 at once are more than the queue holds");
    let view = replica.linearizable(LONG).await.unwrap();
    for (number, answer) in answers.iter().enumerate() {
        match answer {
            Ok(_) => assert!(has_tenant(&view, &format!("many-{number}"))),
            Err(error) => assert_eq!(*error, ProposeError::Overloaded),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_nothing_is_acknowledged() {
    let mut members = cluster(3).await;
    let keep = leader(&members).await;
    let kept = members.remove(keep);
    for member in members {
        member.stop().await;
    }
    let short = Duration::from_secs(2);
    let answer = kept.replica.propose(tenant("lonely"), short).await;
    assert!(answer.is_err(), "{answer:?}");
    let read = kept.replica.linearizable(short).await;
    assert!(read.is_err(), "a read without a majority is a stale read");
}

struct Echo;

impl LeaderHandler for Echo {
    fn handle(
        &self,
        term: u64,
        _call: LeaderCall,
    ) -> BoxFuture<'static, Result<LeaderAnswer, ProposeError>> {
        let ttl = Span::from_secs(i64::try_from(term).unwrap());
        let verdict = ExtendVerdict::Extended { ttl, cancel_requested: false };
        Box::pin(async move { Ok(LeaderAnswer::Extended(vec![verdict])) })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_the_leader_are_answered_by_it_on_every_member() {
    let members = cluster(3).await;
    let place = leader(&members).await;
    let call = LeaderCall::Extend { worker: WorkerId(Seq::new(1, 0)), runs: Vec::new() };
    let refused = members[place].replica.call_leader(call.clone(), LONG).await;
    assert_eq!(refused, Err(ProposeError::NoLeader), "nobody has been set to answer");
    members[place].replica.set_leader_handler(Arc::new(Echo));
    let term = members[place].replica.leadership().borrow().term;
    let ttl = Span::from_secs(i64::try_from(term).unwrap());
    let verdict = ExtendVerdict::Extended { ttl, cancel_requested: false };
    for member in &members {
        let answer = member.replica.call_leader(call.clone(), LONG).await;
        assert_eq!(answer, Ok(LeaderAnswer::Extended(vec![verdict.clone()])));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_lets_the_log_go_and_a_restart_goes_on_from_it() {
    let member = start(Start::Bootstrap).await;
    for number in 0..350 {
        member.replica.propose(tenant(&format!("tenant-{number}")), LONG).await.unwrap();
    }
    until("the log was purged", || async { member.replica.status().purged_index > 0 }).await;
    let (folder, peer) = member.stop().await;
    let member = try_start(&folder, &peer, Start::Restart).await.unwrap();
    member.replica.recovered().await.unwrap();
    let view = member.replica.view();
    for number in 0..350 {
        assert!(has_tenant(&view, &format!("tenant-{number}")));
    }
}
