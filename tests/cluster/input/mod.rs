//! What people and programs hand in: accepted, refused, or kept to itself.

pub mod bad_input;
mod hostile;
mod odd_objects;
mod restored;
mod schema;
mod secrecy;
