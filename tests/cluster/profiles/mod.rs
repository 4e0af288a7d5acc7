//! What each profile plans, on each release and each shape of a cluster.

mod advertising;
mod baseline;
mod clusters;
mod density;
mod example;
mod hyper_converged;
mod options;
mod overrides;
mod prerequisites;
mod releases;
mod samples;
mod topologies;
