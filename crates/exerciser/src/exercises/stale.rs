use crate::harts::Hart;
pub fn shoot_down(_hart: &Hart) {}
