//! The board: where things are, how the device tree says so, and what is in RAM at reset.
