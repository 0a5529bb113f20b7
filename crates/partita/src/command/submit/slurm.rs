//! A job array of SLURM, and the job of the table that depends on it (sbatch(1): `--array`, `--dependency`, `--requeue`).

use super::script::{Series, quoted};
use std::path::Path;

/// The script that submits both jobs when a shell runs it. `options` are those of `sbatch` for the tasks.
pub(super) fn script(series: &Series<'_>, here: &Path, name: &str, options: &[String]) -> String {
    let options: Vec<String> = options.iter().map(|option| quoted(option)).collect();
    let options = options.join(" ");
    let (folder, here) = (quoted(&series.folder), quoted(&here.display().to_string()));
    let (tasks, task, table) = (
        series.tasks,
        series.task("$SLURM_ARRAY_TASK_ID"),
        series.table(),
    );
    // A task whose computer fails is put into the queue again by SLURM itself.
    format!(
        "#!/bin/sh\n\
         # Submits {tasks} shards of a series, and the table that waits for them.\n\
         set -eu\n\
         folder={folder}\n\
         mkdir -p \"$folder\"\n\
         shards=$(sbatch --parsable --job-name={name} --array=1-{tasks} --requeue --chdir={here} --output=\"$folder/%a.log\" \
         {options} <<'PARTITA_TASK'\n\
         #!/bin/sh\n\
         {task}\
         PARTITA_TASK\n\
         )\n\
         # The answer is JOB, or JOB;CLUSTER.\n\
         table=$(sbatch --parsable --job-name={name}-table --dependency=\"afterok:${{shards%%;*}}\" --chdir={here} \
         --output=\"$folder/table.log\" {options} <<'PARTITA_TABLE'\n\
         #!/bin/sh\n\
         {table}\
         PARTITA_TABLE\n\
         )\n\
         echo \"$folder/table.log will have the table: jobs $shards and $table\"\n"
    )
}
