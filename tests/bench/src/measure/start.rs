//! From the start of the process until the advertised configurations exist, beside a CRD that was
//! just installed.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use controlplane::install_crds;
use demo::{PROFILE, our_crd};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;

use crate::bench::{Bench, tell};
use crate::observer::configs;
use crate::table::{Bound, Figure, Table};

const TIMES: usize = 5;
const CRD: &str = "virtplatformconfigs.advisor.kubevirt.io";
const PATIENCE: Duration = Duration::from_secs(60);
/// The API server holds every create of a kind back for two seconds if the kind is younger than
/// that (`serveResource` in apiextensions-apiserver's customresource_handler.go); ages are counted
/// in whole seconds.
const COME_OF_AGE: Duration = Duration::from_millis(3200);

pub async fn measure(bench: &mut Bench, table: &mut Table) -> Result<()> {
    tell("process start");
    let mut times = Vec::new();
    for _ in 0..TIMES {
        bench.stage.kill_operator();
        fresh_crd(bench).await?;
        let began = Instant::now();
        bench.stage.start_operator(&bench.operator)?;
        // Tight: a wait between two questions would be part of the figure.
        while configs(&bench.admin).get_opt(PROFILE).await?.is_none() {
            if began.elapsed() > PATIENCE {
                bail!("no configuration was advertised within {} s", PATIENCE.as_secs());
            }
        }
        times.push(began.elapsed());
    }
    table.row(
        format!("process start -> configurations advertised, {TIMES} times"),
        &Figure::times(&times),
        Bound::Under(180.0),
        "180 ms",
    );
    Ok(())
}

async fn fresh_crd(bench: &Bench) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(bench.admin.clone());
    crds.delete(CRD, &Default::default()).await.context("the CRD can't be removed")?;
    let began = Instant::now();
    while crds.get_opt(CRD).await?.is_some() {
        if began.elapsed() > PATIENCE {
            bail!("the CRD did not go within {} s", PATIENCE.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    install_crds(&bench.admin, &[our_crd()]).await?;
    tokio::time::sleep(COME_OF_AGE).await;
    Ok(())
}
