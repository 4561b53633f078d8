//! The cluster's own commands: its first entry, and the numbers of its members.

use crate::base::bounded::Name;
use crate::machine::apply::context::Context;
use crate::machine::reply::{Rejection, Reply};
use crate::machine::state::Meta;
use crate::model::id::NodeId;
use crate::model::tenant::Tenant;

// Refusals: AlreadyBootstrapped.
pub(in crate::machine) fn bootstrap(
    context: &mut Context<'_>,
    cluster_id: &str,
) -> Result<Reply, Rejection> {
    if !context.state().meta().cluster_id.is_empty() {
        return Err(Rejection::AlreadyBootstrapped);
    }
    let stamp = context.now();
    context.put_meta(Meta { cluster_id: cluster_id.to_owned(), stamp });
    let name = Name::default_name();
    if !context.state().tenants().contains_key(&name) {
        let description = String::new();
        context.put_tenant(Tenant { name, description, created_at: stamp });
    }
    Ok(Reply::Done)
}

// Refusals: none.
pub(in crate::machine) fn allocate_node(context: &Context<'_>) -> Reply {
    Reply::Node(NodeId(context.index()))
}
