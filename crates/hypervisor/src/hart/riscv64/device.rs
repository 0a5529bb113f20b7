//! Loads and stores of each width that may fault harmlessly. They stand among the routines of `unprivileged.rs`, where the trap vector steps over
//! an instruction that faults and sets the flag in t1.

use crate::hart::outcome::Outcome;

unsafe extern "C" {
    #[link_name = "hypervisor_device_load_byte"]
    pub fn load_byte(address: u64) -> Outcome;
    #[link_name = "hypervisor_device_load_half"]
    pub fn load_half(address: u64) -> Outcome;
    #[link_name = "hypervisor_device_load_word"]
    pub fn load_word(address: u64) -> Outcome;
    #[link_name = "hypervisor_device_load_double"]
    pub fn load_double(address: u64) -> Outcome;
    #[link_name = "hypervisor_device_store_byte"]
    pub fn store_byte(address: u64, value: u64) -> Outcome;
    #[link_name = "hypervisor_device_store_half"]
    pub fn store_half(address: u64, value: u64) -> Outcome;
    #[link_name = "hypervisor_device_store_word"]
    pub fn store_word(address: u64, value: u64) -> Outcome;
    #[link_name = "hypervisor_device_store_double"]
    pub fn store_double(address: u64, value: u64) -> Outcome;
}
