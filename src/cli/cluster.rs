//! `horolog cluster`: the members, and who they are.

use crate::cli::args::ClusterCommand;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::cli::table::{Cell, Table};
use crate::client::transport::Client;
use crate::wire::cluster::{Cluster, MemberRole};

/// # Errors
/// [`CliError`].
pub async fn run(
    client: &Client,
    command: ClusterCommand,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        ClusterCommand::Status => {
            let cluster = client.cluster().await?;
            if output.is_json() { output.json(&cluster) } else { show(&cluster, output) }
        }
        ClusterCommand::Remove { node } => {
            client.remove_member(node).await?;
            output.done(&format!("member {node} is removed"))
        }
        ClusterCommand::Transfer { to } => {
            client.transfer_leadership(to).await?;
            output.done("leadership was asked to move; see: horolog cluster status")
        }
    }
}

fn show(cluster: &Cluster, output: &Output) -> Result<(), CliError> {
    let leader = cluster.leader.map_or("none".to_owned(), |leader| leader.to_string());
    let fields: Vec<(&str, Cell)> = vec![
        ("cluster", cluster.cluster_id.clone().into()),
        ("leader", leader.into()),
        ("term", cluster.term.to_string().into()),
        ("answered by", cluster.node.to_string().into()),
        ("applied index", cluster.applied_index.to_string().into()),
    ];
    output.fields(&fields)?;
    output.text("")?;
    let mut table = Table::new(&["NODE", "ROLE", "LEADS", "API", "PEER", "MATCHED"]);
    for member in &cluster.members {
        let role = match member.role {
            MemberRole::Voter => "voter",
            MemberRole::Learner => "learner",
        };
        let matched = member.matched_index.map(|index| index.to_string());
        table.row(vec![
            member.node.to_string().into(),
            role.into(),
            if member.leader { "yes" } else { "" }.into(),
            member.api_addr.clone().into(),
            member.peer_addr.clone().into(),
            matched.unwrap_or_default().into(),
        ]);
    }
    output.table(&table)
}
