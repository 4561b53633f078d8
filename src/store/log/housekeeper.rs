//! Prepares the next segment and removes purged ones, so that the writer never waits for either.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::store::error::StoreError;
use crate::store::fault::Faults;
use crate::store::files;
use crate::store::log::segment::Segment;

enum Job {
    Prepare { number: u64, capacity: usize },
    Remove(Vec<PathBuf>),
}

/// A thread with a list of jobs; it ends, with its jobs done, when this is dropped.
pub(crate) struct Housekeeper {
    folder: PathBuf,
    faults: Faults,
    jobs: Option<Sender<Job>>,
    prepared: Receiver<Result<Segment, StoreError>>,
    thread: Option<JoinHandle<()>>,
    spare: Option<Segment>,
    is_asked: bool,
}

impl Housekeeper {
    pub(crate) fn start(
        folder: PathBuf,
        faults: Faults,
        spare: Option<Segment>,
    ) -> Result<Housekeeper, StoreError> {
        let (jobs, job_list) = channel();
        let (answers, prepared) = channel();
        let worker = Worker { folder: folder.clone(), faults: faults.clone(), answers };
        let thread = std::thread::Builder::new()
            .name("log-housekeeper".to_owned())
            .spawn(move || worker.run(&job_list))
            .map_err(|source| StoreError::io("start a thread for", &folder, source))?;
        let (jobs, thread) = (Some(jobs), Some(thread));
        Ok(Housekeeper { folder, faults, jobs, prepared, thread, spare, is_asked: false })
    }

    /// Asks for segment `number`, unless there is a spare one or one was asked for.
    pub(crate) fn prepare(&mut self, number: u64, capacity: usize) {
        if self.spare.is_none() && !self.is_asked {
            self.is_asked = self.send(Job::Prepare { number, capacity });
        }
    }

    /// Segment `number` with room for `capacity` bytes; made now when it was not prepared.
    pub(crate) fn take(&mut self, number: u64, capacity: usize) -> Result<Segment, StoreError> {
        if self.is_asked {
            self.is_asked = false;
            // A failed preparation is tried again below: space may be free by now.
            self.spare = self.prepared.recv().ok().and_then(Result::ok);
        }
        match self.spare.take() {
            Some(spare) if spare.number == number && spare.capacity() >= capacity as u64 => {
                Ok(spare)
            }
            Some(_) | None => Segment::create(&self.folder, number, capacity, &self.faults),
        }
    }

    pub(crate) fn remove(&self, paths: Vec<PathBuf>) {
        if !paths.is_empty() {
            self.send(Job::Remove(paths));
        }
    }

    fn send(&self, job: Job) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok())
    }
}

impl Drop for Housekeeper {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the log's housekeeper ended in a panic");
        }
    }
}

struct Worker {
    folder: PathBuf,
    faults: Faults,
    answers: Sender<Result<Segment, StoreError>>,
}

impl Worker {
    fn run(&self, jobs: &Receiver<Job>) {
        for job in jobs {
            match job {
                Job::Prepare { number, capacity } => {
                    let segment = Segment::create(&self.folder, number, capacity, &self.faults);
                    if self.answers.send(segment).is_err() {
                        return;
                    }
                }
                Job::Remove(paths) => self.remove(&paths),
            }
        }
    }

    /// A file that stays is no error: it is purged, and the next purge or start removes it.
    fn remove(&self, paths: &[PathBuf]) {
        for path in paths {
            if let Err(error) = std::fs::remove_file(path) {
                tracing::warn!(file = %path.display(), %error, "cannot remove a purged segment");
            }
        }
        if let Err(error) = files::sync_folder(&self.folder, &self.faults) {
            tracing::warn!(%error, "cannot flush the removal of purged segments");
        }
    }
}
