//! What the operator at the terminal can say: the hypervisor prints it as help, the laboratory makes pages of it.

/// The prompt's commands, a line each: the command, at least two spaces, what it does. The last line says how to leave.
pub const HELP: &str = "\
vm list                 the VMs and what each is doing
vm stop NAME            power a VM off
vm start NAME           boot it
vm restart NAME         both
vm pause NAME           take its vCPUs off the harts
vm resume NAME          let them go on
stats                   what the performance monitor has counted
share NAME N            a VM's share of the shared harts
harts NAME 2,3          harts for a VM alone, one for each vCPU
harts NAME shared       back to the shared harts
spin METHOD             what a spinning vCPU does
wait METHOD             what a waiting vCPU does
ple NAME GAP WINDOW     in cycles: pause loops, and when they exit
translations METHOD     when a hart drops a vCPU's translations
help                    this text
An empty line leaves the prompt.";

/// The keys behind the escape key.
pub const KEYS: &str = "after Ctrl-]: n next VM, 1-9 VM by number, m prompt, q power off";

/// What the hypervisor says when the operator ends everything by the escape key.
pub const POWERS_OFF: &str = "the operator powers off";
