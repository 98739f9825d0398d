//! The fleet against its stores.
