//! An indexed Job of Kubernetes, and the Job of the table that waits for its shards (batch/v1: `completionMode: Indexed`,
//! `backoffLimitPerIndex`), as a list in JSON.

use super::script::Series;
use serde_json::{Value, json};

/// Times that a container of one shard may end in an error.
const MAX_ERRORS: u32 = 6;
/// Where containers see the claim.
const WORK: &str = "/work";

/// Both Jobs.
pub(super) fn jobs(
    series: &Series<'_>,
    name: &str,
    image: &str,
    claim: &str,
    parallelism: u32,
) -> String {
    let pod = |script: String| {
        json!({
            "spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": "partita",
                    "image": image,
                    "command": ["/bin/sh", "-c", script],
                    "workingDir": WORK,
                    "env": [{ "name": "PARTITA_CACHE", "value": format!("{WORK}/.partita-cache") }],
                    "volumeMounts": [{ "name": "work", "mountPath": WORK }],
                }],
                "volumes": [{ "name": "work", "persistentVolumeClaim": { "claimName": claim } }],
            },
        })
    };
    let job = |name: String, spec: Value| json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name }, "spec": spec });
    let shards = json!({
        "completionMode": "Indexed",
        "completions": series.tasks,
        "parallelism": parallelism.min(series.tasks),
        "backoffLimitPerIndex": MAX_ERRORS,
        "template": pod(series.task("$((JOB_COMPLETION_INDEX + 1))")),
    });
    let table = json!({
        "backoffLimit": MAX_ERRORS,
        "template": pod(waiting(series) + &series.table()),
    });
    let list = json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [job(String::from(name), shards), job(format!("{name}-table"), table)],
    });
    format!("{list:#}\n")
}

/// Waits until every shard is whole: a Job of Kubernetes cannot depend on another.
fn waiting(series: &Series<'_>) -> String {
    let folder = super::script::quoted(&series.folder);
    let tasks = series.tasks;
    format!(
        "folder={folder}\n\
         until [ \"$(find \"$folder\" -name '*.done' 2>/dev/null | wc -l)\" -ge {tasks} ]; do sleep 5; done\n"
    )
}
