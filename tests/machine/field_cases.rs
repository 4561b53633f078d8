//! What other schedulers got wrong in the field, by the numbers of the case list.
