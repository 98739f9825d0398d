//! The page about webhooks, held against the code.
