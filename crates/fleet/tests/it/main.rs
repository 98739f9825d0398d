//! The fleet against its stores.

mod same_as_memory;
