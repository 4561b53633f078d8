//! Folders a node must not serve from: it says what is wrong and what to do, and ends.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cluster::firing::TENANT;
use crate::support::processes::Cluster;

/// K05: a healthy restart needs no flag, and a second bootstrap makes no second cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bootstrapping_again_keeps_the_cluster() {
    let mut cluster = Cluster::start(1).await;
    let url = format!("{}{TENANT}/jobs/default/kept", cluster.base(0));
    let made = cluster.http.put(&url, &json!({"executor": {"worker": {}}})).await.unwrap();
    assert_eq!(made.status, 201, "{}", made.body);
    let id = cluster.status(0).await.unwrap()["cluster_id"].clone();
    cluster.kill(0);
    cluster.start_node(0, &["--bootstrap".to_owned()]);
    cluster.wait_ready(0).await;
    assert_eq!(cluster.status(0).await.unwrap()["cluster_id"], id);
    assert_eq!(cluster.http.get(&url).await.unwrap().status, 200);
}

/// K05: nodes of two clusters refuse each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_of_another_cluster_is_refused() {
    let first = Cluster::start(1).await;
    let mut second = Cluster::start(1).await;
    second.kill(0);
    second.start_node(0, &first.join_flag());
    let code = second.wait_exit(0).await;
    assert_ne!(code, Some(0));
    let log = second.log_tail(0);
    assert!(log.contains("another folder"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_in_use_is_refused() {
    let mut cluster = Cluster::start(1).await;
    let folder = cluster.nodes[0].folder.clone();
    let other = cluster.add_in_folder(&folder, &[]);
    assert_ne!(cluster.wait_exit(other).await, Some(0));
    let log = cluster.log_tail(other);
    assert!(log.contains("in use by process"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_of_a_newer_format_is_refused() {
    let mut cluster = Cluster::start(1).await;
    cluster.kill(0);
    let format = cluster.nodes[0].folder.join("FORMAT");
    let newer = std::fs::read_to_string(&format).unwrap().replace('1', "99");
    std::fs::write(&format, newer).unwrap();
    cluster.start_node(0, &[]);
    assert_ne!(cluster.wait_exit(0).await, Some(0));
    let log = cluster.log_tail(0);
    assert!(log.contains("99") && log.contains("newer"), "{log}");
}

/// A flipped bit in the middle of the log: valid entries follow it, so it is damage and no torn
/// end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corrupt_log_is_refused_with_the_file_and_what_to_do() {
    let mut cluster = Cluster::start(1).await;
    for number in 0..50 {
        let url = format!("{}{TENANT}/jobs/default/job-{number}", cluster.base(0));
        let made = cluster.http.put(&url, &json!({"executor": {"worker": {}}})).await.unwrap();
        assert_eq!(made.status, 201, "{}", made.body);
    }
    cluster.kill(0);
    flip_a_bit_in(&first_segment(&cluster.nodes[0].folder.join("log")));
    cluster.start_node(0, &[]);
    assert_ne!(cluster.wait_exit(0).await, Some(0));
    let log = cluster.log_tail(0);
    assert!(log.contains("corrupt") || log.contains("damaged"), "{log}");
}

fn first_segment(folder: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files.into_iter().find(|path| std::fs::metadata(path).unwrap().len() > 4_096).unwrap()
}

fn flip_a_bit_in(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[2_048] ^= 1;
    std::fs::write(path, bytes).unwrap();
}
