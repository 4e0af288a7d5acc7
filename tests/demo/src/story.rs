//! The story, step by step, as a user lives it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use demo::{DESCHEDULER_NAMESPACE, PROFILE, Stage};

use demo::shell::Shell;

/// The longest time that the machines may take; they need about twelve seconds.
const ROLLOUT: Duration = Duration::from_secs(120);

/// Plays all of it.
pub async fn play(shell: &mut Shell, stage: &mut Stage, operator: &Path) -> Result<()> {
    look_around(shell).await?;
    start_operator(shell, stage, operator).await?;
    ask_for_a_plan(shell).await?;
    read_the_change(shell).await?;
    approve(shell).await?;
    see_the_machines_update(shell).await?;
    see_what_was_done(shell).await?;
    let plan = somebody_edits(shell).await?;
    put_it_back(shell, &plan).await
}

async fn look_around(shell: &Shell) -> Result<()> {
    shell.heading("The cluster")?;
    shell.say(
        "A real API server. OpenShift Virtualization is installed, there is no descheduler yet, and a simulator plays\n\
         the machine-config operator and three worker machines, five times as fast as real ones.",
    )?;
    shell.show("kubectl get hyperconvergeds,kubedeschedulers --all-namespaces").await?;
    shell.show("kubectl get nodes,machineconfigpools").await?;
    Ok(())
}

async fn start_operator(shell: &mut Shell, stage: &mut Stage, program: &Path) -> Result<()> {
    shell.heading("1. The operator starts and advertises what it can do")?;
    stage.start_operator(program)?;
    if let Some(operator) = stage.operator() {
        shell.operator_ended = operator.ended();
    }
    shell.say(&format!(
        "virt-advisor run: its own user, with the rights of config/rbac/role.yaml. Its log: {}",
        stage.log().display()
    ))?;
    shell.show(&format!("kubectl wait virtplatformconfig/{PROFILE} --for=create --timeout=30s")).await?;
    wait_for(shell, "Ignored").await?;
    shell.show("kubectl get virtplatformconfigs").await?;
    shell.say("Action Ignore: it is not in use until somebody asks.")
}

async fn ask_for_a_plan(shell: &Shell) -> Result<()> {
    shell.heading("2. What would it change? DryRun plans, and writes nothing")?;
    patch(shell, r#"{"spec":{"action":"DryRun"}}"#).await?;
    wait_for(shell, "ReviewRequired").await?;
    shell.show("kubectl get virtplatformconfigs -o wide").await?;
    Ok(())
}

async fn read_the_change(shell: &Shell) -> Result<()> {
    shell.heading("3. The review: the exact change, as the API server computed it")?;
    shell
        .show(&format!(
            "kubectl get virtplatformconfig {PROFILE} -o jsonpath='{{range .status.items[*]}}\
             # {{.name}} (impact {{.impactSeverity}}) {{.message}}{{\"\\n\"}}{{.diff}}{{\"\\n\"}}{{end}}'"
        ))
        .await?;
    Ok(())
}

async fn approve(shell: &Shell) -> Result<()> {
    shell.heading("4. The approval: Apply, for the plan that was just read and no other")?;
    patch(shell, r#"{"spec":{"action":"Apply"}}"#).await
}

async fn see_the_machines_update(shell: &Shell) -> Result<()> {
    shell.heading("5. The machines reboot one by one, and the descheduler waits for them")?;
    let mut pool = shell.watch("kubectl get machineconfigpool worker --watch")?;
    let mut plan = shell.watch(&format!(
        "kubectl get virtplatformconfig {PROFILE} --watch -o jsonpath='{{.status.phase}}: {{.status.summary.text}}{{\"\\n\"}}'"
    ))?;
    shell.say("(Both at once, without repetitions.)")?;
    let (mut last_pool, mut last_plan) = (String::new(), String::new());
    let deadline = tokio::time::sleep(ROLLOUT);
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            line = pool.line() => {
                let line = line?;
                // Without the age, which always changes.
                let told = line.trim_end().rsplit_once(' ').map_or("", |(told, _)| told).trim_end().to_owned();
                if told != last_pool {
                    shell.progress(&told)?;
                    last_pool = told;
                }
            }
            line = plan.line() => {
                let line = line?;
                if line != last_plan {
                    shell.progress(&line)?;
                }
                match line.split(':').next() {
                    Some("Completed") => return Ok(()),
                    Some("Failed" | "CompletedWithErrors" | "Drifted") => bail!("the plan was not carried out: {line}"),
                    _ => last_plan = line,
                }
            }
            () = shell.operator_ended.cancelled() => bail!("the operator has ended by itself while the machines updated"),
            () = &mut deadline => bail!(
                "the machines did not finish within {} s; the last that was heard: {last_plan}; {last_pool}",
                ROLLOUT.as_secs()
            ),
        }
    }
}

async fn see_what_was_done(shell: &Shell) -> Result<()> {
    shell.heading("6. Done: what stands in the cluster now, and what happened")?;
    shell.show("kubectl get virtplatformconfigs -o wide").await?;
    shell.show(&format!("kubectl describe virtplatformconfig {PROFILE} | sed -n '/^  Summary:/,$p'")).await?;
    shell
        .show(&format!("kubectl get kubedescheduler cluster -n {DESCHEDULER_NAMESPACE} -o jsonpath='{{.spec}}'"))
        .await?;
    Ok(())
}

/// Returns the hash of the corrective plan.
async fn somebody_edits(shell: &Shell) -> Result<String> {
    shell.heading("7. Somebody changes what was applied, and the operator says what and who")?;
    shell
        .show(&format!(
            "kubectl patch kubedescheduler cluster -n {DESCHEDULER_NAMESPACE} --type=merge --field-manager=somebody \
             -p '{{\"spec\":{{\"deschedulingIntervalSeconds\":3600}}}}'"
        ))
        .await?;
    wait_for(shell, "Drifted").await?;
    shell.show("kubectl get virtplatformconfigs").await?;
    shell.show("kubectl get events --field-selector type=Warning").await?;
    shell
        .show(&format!(
            "kubectl get virtplatformconfig {PROFILE} -o jsonpath='{{range .status.items[?(@.operation==\"Update\")]}}{{.diff}}{{end}}'"
        ))
        .await?;
    shell.say("Nothing was put back: that is a plan too, and waits for a person. It has a hash:")?;
    let hash =
        shell.show(&format!("kubectl get virtplatformconfig {PROFILE} -o jsonpath='{{.status.planHash}}'")).await?;
    Ok(hash.trim().to_owned())
}

async fn put_it_back(shell: &Shell, plan: &str) -> Result<()> {
    shell.heading("8. The correction: approve that plan by its hash")?;
    patch(shell, &format!(r#"{{"spec":{{"approvedPlanHash":"{plan}"}}}}"#)).await?;
    wait_for(shell, "Completed").await?;
    shell.show("kubectl get virtplatformconfigs -o wide").await?;
    shell
        .show(&format!(
            "kubectl get kubedescheduler cluster -n {DESCHEDULER_NAMESPACE} -o jsonpath='{{.spec.deschedulingIntervalSeconds}}'"
        ))
        .await?;
    Ok(())
}

async fn patch(shell: &Shell, patch: &str) -> Result<()> {
    shell.show(&format!("kubectl patch virtplatformconfig {PROFILE} --type=merge -p '{patch}'")).await?;
    Ok(())
}

async fn wait_for(shell: &Shell, phase: &str) -> Result<()> {
    let shown = shell
        .show(&format!(
            "kubectl wait virtplatformconfig/{PROFILE} --for=jsonpath='{{.status.phase}}'={phase} --timeout=30s"
        ))
        .await;
    let Err(error) = shown else { return Ok(()) };
    let now = shell
        .run(&format!(
            "kubectl get virtplatformconfig {PROFILE} -o jsonpath='{{.status.phase}}: {{.status.summary.text}}'"
        ))
        .await
        .unwrap_or_else(|error| error.to_string());
    Err(error.context(format!("the configuration did not become {phase} in time; it is {}", now.trim())))
}
