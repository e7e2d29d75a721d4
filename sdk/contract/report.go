package contract

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Reports returns the conditions without severities: status.v1beta2.conditions, or status.conditions if there are none, which may be those
// with severities of an object of V1Beta1. A reason that is absent becomes NoReasonReported.
func (o Object) Reports() ([]metav1.Condition, error) {
	conditions, found, err := structured[[]metav1.Condition](o, "status", "v1beta2", "conditions")
	if !found && err == nil {
		conditions, _, err = structured[[]metav1.Condition](o, "status", "conditions")
	}
	for i := range conditions {
		conditions[i].Reason = cmp.Or(conditions[i].Reason, clusterv1.NoReasonReportedReason)
	}
	return conditions, err
}

// InitializationField returns the path of the field that reports that a control plane is initialized.
func (c ControlPlane) InitializationField() string {
	if c.Contract == V1Beta2 {
		return "status.initialization.controlPlaneInitialized"
	}
	return "status.initialized"
}

// ProvisionedField returns the path of the field that reports that infrastructure is complete.
func (c InfrastructureCluster) ProvisionedField() string {
	if c.Contract == V1Beta2 {
		return "status.initialization.provisioned"
	}
	return "status.ready"
}

// Counts returns how many replicas a control plane has, as the status of a Cluster of v1beta2 shows them; what the control plane does not
// report is nil. In V1Beta1 they are in status.v1beta2; without it, replicas that are not unavailable are available.
func (c ControlPlane) Counts() (clusterv1.ClusterControlPlaneStatus, error) {
	desired, err := c.Replicas()
	if err != nil {
		return clusterv1.ClusterControlPlaneStatus{}, err
	}
	have, err := c.statusReplicas()
	if err != nil {
		return clusterv1.ClusterControlPlaneStatus{}, err
	}
	versions, err := c.versions(have.Total)
	if err != nil {
		return clusterv1.ClusterControlPlaneStatus{}, err
	}
	counts := clusterv1.ClusterControlPlaneStatus{
		DesiredReplicas: desired, Replicas: have.Total, UpToDateReplicas: have.Updated, ReadyReplicas: have.Ready, Versions: versions,
	}
	if c.Contract != V1Beta2 && have.Total != nil && desired != nil {
		counts.AvailableReplicas = ptr.To(max(0, *desired-ptr.Deref(have.Unavailable, 0)))
	}
	path := []string{"status", "v1beta2"}
	if c.Contract == V1Beta2 {
		path = path[:1]
	}
	for name, into := range map[string]**int32{
		"upToDateReplicas": &counts.UpToDateReplicas, "readyReplicas": &counts.ReadyReplicas, "availableReplicas": &counts.AvailableReplicas,
	} {
		n, err := c.count(append(slices.Clip(path), name)...)
		if err != nil {
			return clusterv1.ClusterControlPlaneStatus{}, err
		}
		if n != nil {
			*into = n
		}
	}
	return counts, nil
}

// versions returns status.versions. A control plane that reports only status.version is counted with all its replicas.
func (c ControlPlane) versions(replicas *int32) ([]clusterv1.StatusVersion, error) {
	versions, found, err := structured[[]clusterv1.StatusVersion](c.Object, "status", "versions")
	if found || err != nil {
		return versions, err
	}
	version, err := c.statusVersion()
	if err != nil || version == "" || ptr.Deref(replicas, 0) == 0 {
		return nil, err
	}
	return []clusterv1.StatusVersion{{Version: version, Replicas: replicas}}, nil
}
