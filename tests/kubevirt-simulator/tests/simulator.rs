//! Owns the tests of the simulator against a real API server: what README.md says of KubeVirt must
//! be seen there. Nothing here measures time.

mod simulator {
    mod admission;
    mod claims;
    mod deletion;
    mod edits;
    mod power;
    mod world;
}
