//! What both engines must do alike.

mod reading;
mod schema;
mod webhooks;
