//! Answers the calls about the cluster and its members.

use crate::api::answer::{Answer, done, ok};
use crate::api::extract::Call;
use crate::api::to_wire;
use crate::model::id::NodeId;
use crate::wire;

pub(in crate::api) async fn get(call: Call) -> Answer {
    ok(call.service().cluster().map(|view| to_wire::cluster(&view)))
}

pub(in crate::api) async fn transfer(mut call: Call) -> Answer {
    let body: wire::cluster::TransferRequest = call.json_or_default().await?;
    let caller = call.caller()?;
    call.service().transfer_leadership(&caller, body.to.map(NodeId)).await?;
    done()
}

pub(in crate::api) async fn remove(call: Call) -> Answer {
    let (member, caller) = (call.id::<u64>("member")?, call.caller()?);
    call.service().remove_member(&caller, NodeId(member)).await?;
    done()
}
