//! Owns the tests of the simulator against a real API server: what `machine-config-pools.md`
//! observed must come out, as sequences of distinct states of the pools. Nothing here measures
//! time.

mod simulator {
    mod content;
    mod kubelet;
    mod machines;
    mod pools;
    mod real_crds;
    mod timeline;
    mod world;
}
