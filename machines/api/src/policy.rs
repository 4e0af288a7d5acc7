//! What is refused at admission.
