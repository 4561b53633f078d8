//! Between the machine's changes and the store's records.

use crate::machine::Machine;
use crate::machine::change::Change;
use crate::store::entities::{load_state, to_operations};
use crate::store::error::StoreError;
use crate::store::records::{AppliedMark, RecordBatch, Records};

/// The machine as the records hold it.
pub(crate) fn load(records: &Records) -> Result<Machine, StoreError> {
    load_state(records).map(Machine::new)
}

/// The batch for the changes of some entries, in their order.
pub(crate) fn batch(
    records: &Records,
    changes: &[Change],
    applied: AppliedMark,
) -> Result<RecordBatch, StoreError> {
    let operations = to_operations(records, changes)?;
    Ok(RecordBatch { puts: operations.puts, deletes: operations.deletes, applied })
}
