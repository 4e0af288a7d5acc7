//! Asks the API server for our own rights: only after a refusal, to name the rule that is missing.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::api::{Api, PostParams};

use super::{Cluster, ClusterError, Served};

impl Cluster {
    /// Whether we may do `verb` with the object called `name`. Every client may ask this.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn is_allowed(
        &self,
        kind: &Served,
        namespace: Option<&str>,
        name: &str,
        verb: &str,
    ) -> Result<bool, ClusterError> {
        let attributes = ResourceAttributes {
            group: Some(kind.resource.group.clone()),
            version: Some(kind.resource.version.clone()),
            resource: Some(kind.resource.plural.clone()),
            namespace: namespace.map(str::to_owned),
            name: Some(name.to_owned()),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}
