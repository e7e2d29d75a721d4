package explain

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// workerKinds are the kinds with replicas of workers.
func workerKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{tree.MachineDeploymentKind, tree.MachineSetKind, tree.MachinePoolKind}
}

// upgrades finds upgrades of a topology that annotations stop.
func (v *view) upgrades() []Cause {
	c := v.upgrade()
	if c == nil {
		return nil
	}
	if held := v.held(); len(held) > 0 {
		return []Cause{v.cause(UpgradeHeld, Blocked, v.cluster, c, text(c)+"; held by "+strings.Join(held, ", ")).
			do("Remove the annotation from the topology of the Cluster to go on")}
	}
	if strings.HasSuffix(c.Reason, "Deferred") {
		return []Cause{v.cause(UpgradeDeferred, Blocked, v.cluster, c, c.Message).
			do(fmt.Sprintf("Remove annotation %s from the topology of the Cluster to go on", clusterv1.ClusterTopologyDeferUpgradeAnnotation))}
	}
	return nil
}

// upgrade returns the condition of a topology that reports an upgrade that is not complete, or nil.
func (v *view) upgrade() *tree.Condition {
	c := failing(v.cluster, clusterv1.TopologyReconciledV1Beta1Condition)
	if c == nil || !strings.HasSuffix(c.Reason, "Pending") && !strings.HasSuffix(c.Reason, "Deferred") {
		return nil
	}
	return c
}

// held returns the parts of the topology with the annotation that holds the sequence of upgrades.
func (v *view) held() []string {
	var list []string
	for _, group := range []string{"machineDeployments", "machinePools"} {
		items, _, _ := unstructured.NestedSlice(v.cluster.Object, "spec", "topology", "workers", group)
		for _, item := range items {
			one, ok := item.(map[string]any)
			if !ok {
				continue
			}
			annotations, _, _ := unstructured.NestedStringMap(one, "metadata", "annotations")
			if _, ok := annotations[clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation]; ok {
				list = append(list, fmt.Sprintf("annotation %s of %s %v", clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation, group, one["name"]))
			}
		}
	}
	return list
}

// replicas finds MachineSets that cannot create Machines.
func (v *view) replicas() []Cause {
	var list []Cause
	for _, u := range v.Objects.Of(tree.MachineSetKind, v.Cluster) {
		c := failing(u, clusterv1.MachinesCreatedV1Beta1Condition)
		if !severe(c) || u.GetDeletionTimestamp() != nil || rolledOut(u) || waitsForControlPlane(c) {
			continue
		}
		reason, action := MachinesNotCreated, "Correct what the message names; it is retried by itself"
		if c.Reason == clusterv1.PreflightCheckFailedV1Beta1Reason {
			reason, action = PreflightFailed, fmt.Sprintf(
				"Change the version of the workers or of the control plane to satisfy the version skew policy; to skip the checks, set annotation %s",
				clusterv1.MachineSetSkipPreflightChecksAnnotation)
		}
		list = append(list, v.cause(reason, Blocked, u, c, c.Message).do(action))
	}
	return list
}

// waitsForControlPlane reports whether a MachineSet creates no Machines until its control plane is provisioned or upgraded. Until then,
// versions may be further apart than allowed.
func waitsForControlPlane(c *tree.Condition) bool {
	return c.Reason == clusterv1.PreflightCheckFailedV1Beta1Reason &&
		(strings.Contains(c.Message, string(clusterv1.MachineSetPreflightCheckControlPlaneIsStable)) ||
			!strings.Contains(c.Message, "VersionSkew"))
}

// resourceSets finds ClusterResourceSets of the Cluster that cannot be applied.
func (v *view) resourceSets() []Cause {
	var list []Cause
	binding := v.Objects.Get(addonsv1.GroupVersion.WithKind("ClusterResourceSetBinding").GroupKind(), v.Cluster)
	if binding == nil {
		return nil
	}
	items, _, _ := unstructured.NestedSlice(binding.Object, "spec", "bindings")
	for _, item := range items {
		entry, ok := item.(map[string]any)
		if !ok {
			continue
		}
		key := v.Cluster
		key.Name, _ = entry["clusterResourceSetName"].(string)
		set := v.Objects.Get(ResourceSetKind.GroupKind(), key)
		if set == nil {
			continue
		}
		// What cannot be applied may concern other Clusters; what cannot be read concerns all.
		ownFailure := unapplied(entry)
		if c := failing(set, addonsv1.ResourcesAppliedV1Beta1Condition); c != nil &&
			(ownFailure || c.Reason == addonsv1.RetrievingResourceFailedV1Beta1Reason || c.Reason == addonsv1.WrongSecretTypeV1Beta1Reason) {
			list = append(list, v.cause(ResourcesNotApplied, Blocked, set, c, why(c)).
				do(fmt.Sprintf("Correct what the message names; see `kubectl describe clusterresourceset %s -n %s`", key.Name, key.Namespace)))
		}
	}
	return list
}

// unapplied reports whether a resource of a binding's entry is not applied.
func unapplied(entry map[string]any) bool {
	resources, _ := entry["resources"].([]any)
	return slices.ContainsFunc(resources, func(r any) bool {
		resource, ok := r.(map[string]any)
		return ok && resource["applied"] != true
	})
}

// stale finds objects that no controller reconciles, or whose spec no controller has reconciled.
func (v *view) stale() []Cause {
	var list []Cause
	for _, u := range v.tree {
		observed, found, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		status, _, _ := unstructured.NestedMap(u.Object, "status")
		message, from := "", specChanged(u)
		switch {
		case found && observed > 0 && observed < u.GetGeneration():
			message = fmt.Sprintf("its controller has not reconciled the current spec: status.observedGeneration is %d, metadata.generation is %d",
				observed, u.GetGeneration())
		case reconciled(u) && len(status) == 0 && v.age(u) > grace:
			message, from = "no controller has reconciled it: it has no status", new(u.GetCreationTimestamp())
		default:
			continue
		}
		list = append(list, v.cause(NotReconciled, Blocked, u, nil, message+v.withoutDeployment(u)).from(from).
			do(fmt.Sprintf("Check that provider %s runs: `kubectl get deployments -A -l %s`, its log, "+
				"and that one of its Pods is the leader: `kubectl get leases -A`",
				v.provider(u), providerLabel)))
	}
	return list
}

// specChanged returns when the spec of an object was last written, according to its managed fields, or when it was deleted, which is
// a new generation, too; nil if that is unknown.
func specChanged(u *unstructured.Unstructured) *metav1.Time {
	last := u.GetDeletionTimestamp()
	for _, entry := range u.GetManagedFields() {
		if entry.Time == nil || entry.Subresource != "" || entry.FieldsV1 == nil ||
			!bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:spec"`)) {
			continue
		}
		if last == nil || last.Before(entry.Time) {
			last = entry.Time
		}
	}
	return last
}

// reconciled reports whether objects of this kind get a status from a controller.
func reconciled(u *unstructured.Unstructured) bool {
	kind := u.GetKind()
	group := u.GroupVersionKind().Group
	return strings.HasSuffix(group, "cluster.x-k8s.io") && !strings.HasSuffix(kind, "Template") &&
		!strings.HasSuffix(kind, "Binding") && kind != "ClusterClass" && kind != "IPAddress"
}
