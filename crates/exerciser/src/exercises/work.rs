use crate::harts::Hart;
pub fn serve(_hart: &Hart) {}
