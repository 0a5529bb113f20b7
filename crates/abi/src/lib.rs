//! What the hypervisor and the laboratory share: the system image, the monitor's records, the SBI extension.
#![no_std]
#![forbid(unsafe_code)]
