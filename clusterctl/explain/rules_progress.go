package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/ready"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// progress finds what takes its time.
func (v *view) progress() []Cause {
	list := slices.Concat(v.provisioning(), v.leaving())
	if v.deleting() {
		return list
	}
	plane := v.controlPlane()
	if have, want := tree.Text(plane, "status", "version"), tree.Text(plane, "spec", "version"); plane != nil &&
		!isKubeadm(plane) && have != "" && want != "" && have != want {
		list = append(list, v.cause(ControlPlaneProvisioning, Progressing, plane, nil,
			fmt.Sprintf("the control plane is being upgraded from %s to %s", have, want)))
	}
	for _, t := range []clusterv1.ConditionType{controlplanev1.MachinesSpecUpToDateV1Beta1Condition, controlplanev1.ResizedV1Beta1Condition} {
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

// rolloutsFirst puts rollouts before causes that all are part of the usual progress, and recent: they are why anything changes.
func (v *view) rolloutsFirst(causes []Cause) []Cause {
	if v.deleting() || slices.ContainsFunc(causes, func(c Cause) bool { return c.State == Blocked || c.Since != nil && !v.recent(c) }) {
		return causes
	}
	list := v.rollouts()
	for _, c := range causes {
		if !slices.ContainsFunc(list, func(r Cause) bool { return r.Object == c.Object }) {
			list = append(list, c)
		}
	}
	return list
}

// rollouts finds a control plane and workers that replace Machines.
func (v *view) rollouts() []Cause {
	var list []Cause
	if plane := v.controlPlane(); plane != nil && isKubeadm(plane) {
		if c := failing(plane, controlplanev1.MachinesSpecUpToDateV1Beta1Condition); c != nil {
			list = append(list, v.rollout(plane, c, "control plane Machines"))
		}
	}
	for _, u := range v.Objects.Of(tree.MachineDeploymentKind, v.Cluster) {
		if tree.Number(u, "status", "updatedReplicas") < min(tree.Number(u, "status", "replicas"), tree.Number(u, "spec", "replicas")) {
			list = append(list, v.rollout(u, readiness(u), "Machines"))
		}
	}
	return list
}

func (v *view) rollout(u *unstructured.Unstructured, c *tree.Condition, what string) Cause {
	updated, wanted := tree.Number(u, "status", "updatedReplicas"), tree.Number(u, "spec", "replicas")
	message := fmt.Sprintf("%d of %d %s are up to date", updated, wanted, what)
	if old := tree.Number(u, "status", "replicas") - updated; updated >= wanted && old > 0 {
		message = fmt.Sprintf("%d replaced %s are being deleted, all %d others are up to date", old, what, updated)
	}
	if version := versionOf(u); version != "" {
		message += ", for version " + version
	}
	return v.cause(RollingOut, Progressing, u, c, message)
}

func versionOf(u *unstructured.Unstructured) string {
	return cmp.Or(tree.Text(u, "spec", "version"), tree.Text(u, "spec", "template", "spec", "version"))
}

// pending finds what waits for something else to complete, which is listed before it.
func (v *view) pending() []Cause {
	var list []Cause
	for _, u := range v.Objects.Of(tree.MachineSetKind, v.Cluster) {
		if c := failing(u, clusterv1.MachinesCreatedV1Beta1Condition); severe(c) && waitsForControlPlane(c) &&
			u.GetDeletionTimestamp() == nil && !rolledOut(u) {
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
		case tree.True(m, "status", "infrastructureReady") && tree.True(m, "status", "bootstrapReady"):
			list = append(list, v.notJoined(m))
		case bootstrap != nil && !tree.True(m, "status", "bootstrapReady"):
			c := readiness(bootstrap)
			message := "the bootstrap data is not generated yet"
			if c != nil {
				message += ": " + why(c)
			}
			list = append(list, v.cause(BootstrapPending, Progressing, bootstrap, c, message))
		case infrastructure != nil:
			c := readiness(infrastructure)
			message := "the machine is being provisioned"
			if c != nil {
				message += ": " + why(c)
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
	c := failing(m, clusterv1.MachineNodeHealthyV1Beta1Condition)
	message := fmt.Sprintf("the machine %s is provisioned, and its Node has not joined the workload cluster",
		tree.Text(m, "spec", "providerID"))
	if isControlPlane(m) && failing(v.cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition) != nil {
		message = fmt.Sprintf("the machine %s is provisioned, and has not initialized the control plane", tree.Text(m, "spec", "providerID"))
	}
	if c != nil && c.Message != "" {
		message += ": " + c.Message
	}
	cause := v.cause(NodeNotJoined, Progressing, m, c, message).
		do(fmt.Sprintf("If it does not join within minutes, see the log of the bootstrap on the machine, "+
			"such as /var/log/cloud-init-output.log, and that it reaches %s:%d",
			tree.Text(v.cluster, "spec", "controlPlaneEndpoint", "host"), tree.Number(v.cluster, "spec", "controlPlaneEndpoint", "port")),
			"A Node is recognized by spec.providerID: a cloud controller manager may have to set it")
	// The condition changes with what is tried to find the Node.
	if ready := tree.ConditionOf(m, string(clusterv1.InfrastructureReadyV1Beta1Condition)); ready != nil {
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
		list = append(list, v.cause(Deleting, Progressing, u, nil, "it is being deleted; finalizers: "+
			strings.Join(u.GetFinalizers(), ", ")).from(u.GetDeletionTimestamp()))
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
	return u.GetKind() == tree.MachineSetKind.Kind && tree.Number(u, "spec", "replicas") == 0 && tree.Number(u, "status", "replicas") == 0
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
		return v.missingParts()
	}
	c, state := readiness(deepest), Progressing
	if c.Severity == "Error" {
		state = Blocked
	}
	return []Cause{v.cause(NotReady, state, deepest, c, why(c)).
		do(fmt.Sprintf("See `kubectl describe %s -n %s`", resource(deepest), deepest.GetNamespace()))}
}

// missingParts finds what `clusterctl wait cluster` waits for, if nothing else explains it.
func (v *view) missingParts() []Cause {
	list, err := ready.Remaining(v.Cluster, v.Objects)
	if err != nil || len(list) == 0 {
		return nil
	}
	return []Cause{v.cause(NotReady, Progressing, v.cluster, nil, "it waits for "+list[0])}
}
