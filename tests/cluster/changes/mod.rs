//! What the world changes afterwards, and how the operator hears of it.

mod drift;
mod kinds;
mod overridden;
mod pruning;
mod shared_objects;
mod silent_groups;
mod watches;
mod writes;
