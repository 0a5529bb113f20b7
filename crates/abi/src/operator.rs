//! Commands of the operator's prompt: the hypervisor prints them as help, the laboratory makes pages of them.

pub mod command;

/// The prompt's commands, a line each: the command, at least two spaces, its effect. The last line says how to leave.
pub const HELP: &str = "\
vm list                  list the VMs with their states
vm stop NAME             power a VM off
vm start NAME            boot a VM
vm restart NAME          power a VM off and boot it
vm pause NAME            take a VM's vCPUs off the harts
vm resume NAME           let a paused VM continue
vm resize NAME vcpus N   let at most so many vCPUs of a VM be started at a time
vm resize NAME memory N  ask the guest, by its balloon, to use so many MiB
stats                    print the performance monitor's report
share NAME N             set a VM's share of the shared harts
harts NAME 2,3           give a VM harts of its own, one for each vCPU
harts NAME shared        give them back
spin METHOD              set the policy for spinning vCPUs
wait METHOD              set the policy for waiting vCPUs
ple NAME GAP WINDOW      set a VM's pause-loop exiting, in cycles
tlb-purge METHOD         set when harts purge TLB entries of vCPUs
help                     print this text
An empty line leaves the prompt.";

/// The keys behind the escape key.
pub const KEYS: &str = "after Ctrl-]: n next VM, 1-9 VM by number, m prompt, q power off";

/// Message of the hypervisor when the operator powers off by the escape key.
pub const POWERS_OFF: &str = "the operator powers off";

/// Line of a hypervisor without the papers' methods at its start. The command finds by it in the file that they are lacking.
pub const WITHOUT_PAPERS: &str = "built without the papers' methods";
