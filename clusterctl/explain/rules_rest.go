package explain

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
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
		return []Cause{v.cause(UpgradeHeld, Blocked, v.cluster, c, c.Message+"; held by "+strings.Join(held, ", ")).
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
	c := failing(v.cluster, clusterv1.TopologyReconciledCondition)
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
		c := failing(u, clusterv1.MachinesCreatedCondition)
		if !severe(c) || u.GetDeletionTimestamp() != nil || rolledOut(u) || waitsForControlPlane(c) {
			continue
		}
		reason, action := MachinesNotCreated, "Correct what the message names; it is retried by itself"
		if c.Reason == clusterv1.PreflightCheckFailedReason {
			reason, action = PreflightFailed, fmt.Sprintf(
				"Change the version of the workers or of the control plane to satisfy the version skew policy; to skip the checks, set annotation %s", clusterv1.MachineSetSkipPreflightChecksAnnotation)
		}
		list = append(list, v.cause(reason, Blocked, u, c, c.Message).do(action))
	}
	return list
}

// waitsForControlPlane reports whether a MachineSet creates no Machines until its control plane is provisioned or upgraded. Until then,
// versions may be further apart than allowed.
func waitsForControlPlane(c *tree.Condition) bool {
	return c.Reason == clusterv1.PreflightCheckFailedReason && (strings.Contains(c.Message, string(clusterv1.MachineSetPreflightCheckControlPlaneIsStable)) ||
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
		if c := failing(set, addonsv1.ResourcesAppliedCondition); c != nil &&
			(ownFailure || c.Reason == addonsv1.RetrievingResourceFailedReason || c.Reason == addonsv1.WrongSecretTypeReason) {
			list = append(list, v.cause(ResourcesNotApplied, Blocked, set, c, strings.TrimSuffix(c.Reason+": "+c.Message, ": ")).
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
			message = fmt.Sprintf("its controller has not reconciled the current spec: status.observedGeneration is %d, metadata.generation is %d", observed, u.GetGeneration())
		case reconciled(u) && len(status) == 0 && v.age(u) > grace:
			message, from = "no controller has reconciled it: it has no status", new(u.GetCreationTimestamp())
		default:
			continue
		}
		list = append(list, v.cause(NotReconciled, Blocked, u, nil, message+v.withoutDeployment(u)).from(from).
			do(fmt.Sprintf("Check that provider %s runs: `kubectl get deployments -A -l %s`, its log, and that one of its Pods is the leader: `kubectl get leases -A`",
				v.provider(u), providerLabel)))
	}
	return list
}

// specChanged returns when the spec of an object was last written, according to its managed fields; nil if that is unknown.
func specChanged(u *unstructured.Unstructured) *metav1.Time {
	var last *metav1.Time
	for _, entry := range u.GetManagedFields() {
		if entry.Time == nil || entry.Subresource != "" || entry.FieldsV1 == nil || !bytes.Contains(entry.FieldsV1.Raw, []byte(`"f:spec"`)) {
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
	return strings.HasSuffix(group, "cluster.x-k8s.io") && !strings.HasSuffix(kind, "Template") && !strings.HasSuffix(kind, "Binding") && kind != "ClusterClass" && kind != "IPAddress"
}

// progress finds what takes its time.
func (v *view) progress() []Cause {
	list := slices.Concat(v.provisioning(), v.leaving())
	if v.deleting() {
		return list
	}
	plane := v.controlPlane()
	if have, want := text(plane, "status", "version"), text(plane, "spec", "version"); plane != nil && !isKubeadm(plane) && have != "" && want != "" && have != want {
		list = append(list, v.cause(ControlPlaneProvisioning, Progressing, plane, nil, fmt.Sprintf("the control plane is being upgraded from %s to %s", have, want)))
	}
	for _, t := range []clusterv1.ConditionType{controlplanev1.MachinesSpecUpToDateCondition, controlplanev1.ResizedCondition} {
		if c := failing(plane, t); c != nil {
			list = append(list, v.cause(Reason(c.Reason), Progressing, plane, c, c.Message))
		}
	}
	for _, kind := range workerKinds() {
		for _, u := range v.Objects.Of(kind, v.Cluster) {
			if c := readiness(u); c != nil && (kind != tree.MachineSetKind || v.ownerOf(u) == nil) {
				list = append(list, v.cause(Reason(c.Reason), Progressing, u, c, c.Message))
			}
		}
	}
	return append(list, v.pending()...)
}

// pending finds what waits for something else to complete, which is listed before it.
func (v *view) pending() []Cause {
	var list []Cause
	for _, u := range v.Objects.Of(tree.MachineSetKind, v.Cluster) {
		if c := failing(u, clusterv1.MachinesCreatedCondition); severe(c) && waitsForControlPlane(c) && u.GetDeletionTimestamp() == nil && !rolledOut(u) {
			list = append(list, v.cause(PreflightFailed, Progressing, u, c, c.Message))
		}
	}
	if c := v.upgrade(); c != nil {
		list = append(list, v.cause(UpgradePending, Progressing, v.cluster, c, c.Message))
	}
	return list
}

// provisioning finds Machines that have no Node yet.
func (v *view) provisioning() []Cause {
	var list []Cause
	for _, m := range v.machines {
		if !joins(m) {
			continue
		}
		infrastructure, bootstrap := v.infrastructureOf(m), v.bootstrapOf(m)
		switch {
		case isTrue(m, "status", "infrastructureReady") && isTrue(m, "status", "bootstrapReady"):
			list = append(list, v.notJoined(m))
		case bootstrap != nil && !isTrue(m, "status", "bootstrapReady"):
			c := readiness(bootstrap)
			message := "the bootstrap data is not generated yet"
			if c != nil {
				message += ": " + strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
			}
			list = append(list, v.cause(BootstrapPending, Progressing, bootstrap, c, message))
		case infrastructure != nil:
			c := readiness(infrastructure)
			message := "the machine is being provisioned"
			if c != nil {
				message += ": " + strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
			}
			list = append(list, v.cause(MachineProvisioning, Progressing, infrastructure, c, message))
		}
	}
	return list
}

// joinTimeout is how long a provisioned machine may take to become a Node. MachineHealthChecks have the same default.
const joinTimeout = 10 * time.Minute

// notJoined explains a provisioned machine without a Node.
func (v *view) notJoined(m *unstructured.Unstructured) Cause {
	c := failing(m, clusterv1.MachineNodeHealthyCondition)
	message := fmt.Sprintf("the machine %s is provisioned, and its Node has not joined the workload cluster", text(m, "spec", "providerID"))
	if isControlPlane(m) && failing(v.cluster, clusterv1.ControlPlaneInitializedCondition) != nil {
		message = fmt.Sprintf("the machine %s is provisioned, and has not initialized the control plane", text(m, "spec", "providerID"))
	}
	if c != nil && c.Message != "" {
		message += ": " + c.Message
	}
	cause := v.cause(NodeNotJoined, Progressing, m, c, message).
		do(fmt.Sprintf("If it does not join within minutes, see the log of the bootstrap on the machine, such as /var/log/cloud-init-output.log, and that it reaches %s:%d",
			text(v.cluster, "spec", "controlPlaneEndpoint", "host"), number(v.cluster, "spec", "controlPlaneEndpoint", "port")),
			"A Node is recognized by spec.providerID: a cloud controller manager may have to set it")
	// The condition changes with what is tried to find the Node.
	if ready := tree.ConditionOf(m, string(clusterv1.InfrastructureReadyCondition)); ready != nil {
		cause = cause.from(since(ready))
	}
	if cause.Since != nil && v.Now.Sub(cause.Since.Time) > joinTimeout {
		cause.State = Blocked
	}
	return cause
}

// leaving finds Nodes that are being drained, and objects that are being deleted: those of Machines first, the Cluster last.
func (v *view) leaving() []Cause {
	var list []Cause
	for _, m := range v.machines {
		if m.GetDeletionTimestamp() == nil {
			continue
		}
		if c := v.deletion(m); c != nil {
			list = append(list, *c)
		}
	}
	objects := slices.Clone(v.tree)
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(len(v.chain(b)), len(v.chain(a))) })
	for _, u := range objects {
		if u.GetDeletionTimestamp() == nil || v.holdsDeletion(u) {
			continue
		}
		list = append(list, v.cause(Deleting, Progressing, u, nil, "it is being deleted; finalizers: "+strings.Join(u.GetFinalizers(), ", ")).from(u.GetDeletionTimestamp()))
	}
	return list
}

// holdsDeletion reports whether another object that belongs to this one exists: it is deleted first.
func (v *view) holdsDeletion(u *unstructured.Unstructured) bool {
	for _, other := range v.tree {
		if other != u && (v.parents[other] == u || u == v.cluster) && !strings.HasSuffix(other.GetKind(), "Template") {
			return true
		}
	}
	return false
}

// rolledOut reports whether a MachineSet is kept for its revision only. Its conditions are those of its last Machines.
func rolledOut(u *unstructured.Unstructured) bool {
	return u.GetKind() == tree.MachineSetKind.Kind && number(u, "spec", "replicas") == 0 && number(u, "status", "replicas") == 0
}

// other is the last resort: the object at the end of the chain that is not ready.
func (v *view) other() []Cause {
	deepest, depth := (*unstructured.Unstructured)(nil), -1
	for _, u := range v.tree {
		if d := len(v.chain(u)); readiness(u) != nil && d > depth && !rolledOut(u) {
			deepest, depth = u, d
		}
	}
	if deepest == nil {
		return nil
	}
	c, state := readiness(deepest), Progressing
	if c.Severity == "Error" {
		state = Blocked
	}
	return []Cause{v.cause(NotReady, state, deepest, c, strings.TrimSuffix(c.Reason+": "+c.Message, ": ")).
		do(fmt.Sprintf("See `kubectl describe %s -n %s`", resource(deepest), deepest.GetNamespace()))}
}
