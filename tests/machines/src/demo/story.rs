//! The story, step by step.

use std::path::Path;

use anyhow::{Result, bail};
use demo::shell::Shell;
use machines_stage::Stage;

/// Plays all of it.
pub(super) async fn play(shell: &Shell, stage: &Stage, program: &Path) -> Result<()> {
    let folder = stage.plane().kubeconfig().with_file_name("machines");
    std::fs::create_dir_all(&folder)?;
    let program = program.display().to_string();
    templates(shell).await?;
    live(shell, &folder, &program).await?;
    restart(shell, &folder, &program).await?;
    grow(shell).await?;
    remove(shell).await?;
    taken(shell).await?;
    delete(shell).await
}

fn machine(name: &str, spec: &str) -> String {
    format!("apiVersion: vitistack.io/v1alpha1\nkind: Machine\nmetadata:\n  name: {name}\nspec:\n{spec}\n")
}

/// Applies a Machine, and shows it as it would be typed.
async fn apply(shell: &Shell, name: &str, spec: &str) -> Result<()> {
    shell.show(&format!("kubectl apply -f - <<EOF\n{}EOF", machine(name, spec))).await?;
    Ok(())
}

async fn wait(shell: &Shell, name: &str, what: &str) -> Result<()> {
    shell.show(&format!("kubectl wait machine/{name} --for={what} --timeout=60s")).await?;
    Ok(())
}

async fn templates(shell: &Shell) -> Result<()> {
    shell.heading("1. A Machine for each template")?;
    shell.say("The cluster is a real API server with KubeVirt's kinds; a simulator plays KubeVirt and the guests.")?;
    for name in ["small", "medium", "large"] {
        apply(shell, name, &format!("  template: {name}")).await?;
    }
    for name in ["small", "medium", "large"] {
        wait(shell, name, "condition=Ready").await?;
    }
    shell.show("kubectl get machines,virtualmachines,persistentvolumeclaims").await?;
    Ok(())
}

/// Writes a Machine to a file and shows what applying it would do; differences are no failure.
async fn diff(shell: &Shell, folder: &Path, program: &str, name: &str, spec: &str) -> Result<String> {
    let file = folder.join(format!("{name}.yaml"));
    std::fs::write(&file, machine(name, spec))?;
    let command = format!("{program} diff -f {}", file.display());
    let shown = shell.show(&format!("{command} || test $? = 1")).await?;
    Ok(shown)
}

fn expect(shown: &str, words: &str) -> Result<()> {
    if shown.contains(words) { Ok(()) } else { bail!("the demo expected {words:?}") }
}

async fn live(shell: &Shell, folder: &Path, program: &str) -> Result<()> {
    shell.heading("2. An edit that reaches the running machine, told before it is made")?;
    let migrate = r#"{"spec":{"workloadUpdateStrategy":{"workloadUpdateMethods":["LiveMigrate"]}}}"#;
    shell.say("This cluster migrates machines to complete an edit, and the machine's disk is shared:")?;
    shell
        .show(&format!(
            "kubectl apply -f - <<EOF\n{{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"KubeVirt\",\"metadata\":{{\"name\":\"kubevirt\"}},{}\nEOF",
            migrate.trim_start_matches('{')
        ))
        .await?;
    let spec = "  template: small\n  disks:\n  - {name: root, size: 20Gi, accessMode: ReadWriteMany}";
    apply(shell, "shared", spec).await?;
    wait(shell, "shared", "condition=Ready").await?;
    let more = format!("{spec}\n  resources:\n    cpu: {{sockets: 2}}");
    let shown = diff(shell, folder, program, "shared", &more).await?;
    expect(&shown, "# Live: VirtualMachine/spec.template.spec.domain.cpu.sockets from 1 to 2")?;
    apply(shell, "shared", &more).await?;
    let sockets = "jsonpath={.status.currentCPUTopology.sockets}=2";
    shell.show(&format!("kubectl wait virtualmachineinstance/shared --for={sockets} --timeout=60s")).await?;
    Ok(())
}

async fn restart(shell: &Shell, folder: &Path, program: &str) -> Result<()> {
    shell.heading("3. An edit that needs a restart, told before it is made")?;
    let spec = "  template: large";
    let shown = diff(shell, folder, program, "small", spec).await?;
    expect(&shown, "# Restart: VirtualMachine/spec.template.spec.domain.cpu.cores from 1 to 4")?;
    apply(shell, "small", spec).await?;
    wait(shell, "small", "condition=RestartRequired").await?;
    shell.show("kubectl get machine small -o jsonpath='{range .status.pending[*]}{.effect}: {.path} {.from} -> {.to}{\"\\n\"}{end}'").await?;
    shell.say("Nothing restarts it but a person, or the word Restart:")?;
    shell.show("kubectl patch machine small --type=merge -p '{\"spec\":{\"updates\":\"Restart\"}}'").await?;
    shell
        .show("kubectl wait virtualmachineinstance/small --for=jsonpath={.spec.domain.cpu.cores}=4 --timeout=60s")
        .await?;
    Ok(())
}

async fn grow(shell: &Shell) -> Result<()> {
    shell.heading("4. A disk grows")?;
    apply(shell, "medium", "  template: medium\n  disks:\n  - {name: root, size: 50Gi}\n  - {name: data, size: 10Gi}")
        .await?;
    let size = "jsonpath={.status.capacity.storage}=50Gi";
    shell.show(&format!("kubectl wait pvc/medium-root --for={size} --timeout=60s")).await?;
    Ok(())
}

async fn remove(shell: &Shell) -> Result<()> {
    shell.heading("5. A disk leaves the Machine, and its claim stays")?;
    shell.show("kubectl wait pvc/medium-data --for=jsonpath={.status.phase}=Bound --timeout=60s").await?;
    apply(shell, "medium", "  template: medium\n  disks:\n  - {name: root, size: 50Gi}").await?;
    wait(shell, "medium", "condition=DisksDetached").await?;
    shell.show("kubectl get machine medium -o jsonpath='{.status.conditions[?(@.type==\"DisksDetached\")].message}{\"\\n\"}'").await?;
    shell.show("kubectl get pvc medium-data").await?;
    Ok(())
}

async fn taken(shell: &Shell) -> Result<()> {
    shell.heading("6. A name that somebody else has is not touched")?;
    shell
        .show(
            "kubectl apply -f - <<EOF\n{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"VirtualMachine\",\"metadata\":{\"name\":\"precious\"},\
             \"spec\":{\"runStrategy\":\"Halted\",\"template\":{\"spec\":{\"domain\":{\"devices\":{}}}}}}\nEOF",
        )
        .await?;
    apply(shell, "precious", "  template: small").await?;
    wait(shell, "precious", "condition=NameTaken").await?;
    shell.show("kubectl get machine precious -o jsonpath='{.status.message}{\"\\n\"}'").await?;
    Ok(())
}

async fn delete(shell: &Shell) -> Result<()> {
    shell.heading("7. A Machine is deleted, and the claim that is marked stays")?;
    shell.show("kubectl annotate pvc medium-data machine.vitistack.io/on-delete=Keep").await?;
    shell.show("kubectl delete machine medium --timeout=60s").await?;
    shell.show("kubectl get pvc").await?;
    shell
        .show("kubectl get events --field-selector reason=ClaimKept -o custom-columns=REASON:.reason,MESSAGE:.message")
        .await?;
    let shown = shell.run("kubectl get pvc -o name").await?;
    expect(&shown, "medium-data")
}
