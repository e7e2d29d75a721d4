// Package overview summarizes many Clusters: one row each, with versions, replicas and what is going on.
//
// Rows is a pure function of objects; Read reads them with one list per kind, whatever the number of Clusters. What one Cluster
// waits for in detail is explained by package explain.
package overview

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// List is the output of `clusterctl get clusters -o json`.
type List struct {
	Items []Row `json:"items"`
}

// Row is one Cluster.
type Row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Class is the name of its ClusterClass, empty without one.
	Class string `json:"class,omitempty"`
	// Version is the desired Kubernetes version.
	Version string `json:"version,omitempty"`
	Phase   string `json:"phase,omitempty"`
	// ControlPlane is empty if the Cluster has none yet.
	ControlPlane *Replicas `json:"controlPlane,omitempty"`
	// Workers are those of all MachineDeployments and MachinePools.
	Workers Replicas `json:"workers"`
	// Ready is the status of condition Ready: True, False, Unknown, or empty.
	Ready  string `json:"ready,omitempty"`
	Paused bool   `json:"paused,omitempty"`
	// Activity is what is going on, such as "upgrading control plane 1/3"; empty for nothing.
	Activity string      `json:"activity,omitempty"`
	Created  metav1.Time `json:"created"`
	// Infrastructure is the kind of the infrastructure cluster.
	Infrastructure string `json:"infrastructure,omitempty"`
	// Endpoint is the control plane endpoint, as host:port.
	Endpoint string `json:"endpoint,omitempty"`
}

// Replicas counts Machines.
type Replicas struct {
	// Kind is the kind of the control plane; empty for workers.
	Kind    string `json:"kind,omitempty"`
	Desired int64  `json:"desired"`
	Ready   int64  `json:"ready"`
	// Updated Machines have the current spec.
	Updated int64 `json:"updated"`

	current  int64
	upgraded bool // the version of all Machines is the desired one, as far as it is reported
	machines bool // the control plane has Machines
}

// String returns "ready/desired".
func (r *Replicas) String() string {
	if r == nil || r.Kind != "" && !r.machines {
		return "-"
	}
	return fmt.Sprintf("%d/%d", r.Ready, r.Desired)
}

// Rows returns the Clusters among the objects, sorted by namespace and name.
func Rows(objects *tree.Objects) []Row {
	workers := map[types.NamespacedName]Replicas{}
	var clusters []*unstructured.Unstructured
	for _, u := range objects.All() {
		switch u.GroupVersionKind().GroupKind() {
		case tree.ClusterKind.GroupKind():
			clusters = append(clusters, u)
		case tree.MachineDeploymentKind.GroupKind(), tree.MachinePoolKind.GroupKind():
			key := types.NamespacedName{Namespace: u.GetNamespace(), Name: tree.Text(u, "spec", "clusterName")}
			workers[key] = workers[key].add(u)
		}
	}
	rows := make([]Row, 0, len(clusters))
	for _, c := range clusters {
		rows = append(rows,
			row(c, objects.Resolve(c, "spec", "controlPlaneRef"), workers[types.NamespacedName{Namespace: c.GetNamespace(), Name: c.GetName()}]))
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) })
	return rows
}

// add adds a MachineDeployment or MachinePool.
func (r Replicas) add(u *unstructured.Unstructured) Replicas {
	r.Desired += tree.Number(u, "spec", "replicas")
	r.Ready += tree.Number(u, "status", "readyReplicas")
	r.current += tree.Number(u, "status", "replicas")
	if u.GetKind() == tree.MachinePoolKind.Kind {
		r.Updated += tree.Number(u, "status", "replicas") // MachinePools do not report it.
	} else {
		r.Updated += tree.Number(u, "status", "updatedReplicas")
	}
	return r
}

func row(c, plane *unstructured.Unstructured, workers Replicas) Row {
	r := Row{
		Namespace: c.GetNamespace(), Name: c.GetName(), Class: tree.Text(c, "spec", "topology", "class"),
		Version: cmp.Or(tree.Text(c, "spec", "topology", "version"), tree.Text(plane, "spec", "version")),
		Phase:   tree.Text(c, "status", "phase"), Workers: workers, Created: c.GetCreationTimestamp(),
		Infrastructure: tree.Text(c, "spec", "infrastructureRef", "kind"),
	}
	if host := tree.Text(c, "spec", "controlPlaneEndpoint", "host"); host != "" {
		r.Endpoint = fmt.Sprintf("%s:%d", host, tree.Number(c, "spec", "controlPlaneEndpoint", "port"))
	}
	if ready := tree.ConditionOf(c, string(clusterv1.ReadyCondition)); ready != nil {
		r.Ready = ready.Status
	}
	r.Paused = tree.True(c, "spec", "paused")
	if plane != nil {
		_, machines, _ := unstructured.NestedFieldNoCopy(plane.Object, "spec", "replicas")
		version := tree.Text(plane, "status", "version")
		r.ControlPlane = &Replicas{
			Kind: plane.GetKind(), Desired: tree.Number(plane, "spec", "replicas"), Ready: tree.Number(plane, "status", "readyReplicas"),
			Updated: tree.Number(plane, "status", "updatedReplicas"), current: tree.Number(plane, "status", "replicas"), machines: machines,
			upgraded: version == "" || version == r.Version,
		}
	}
	r.Activity = activity(c, r)
	return r
}

// activity returns the first of what goes on, in the order in which it happens.
func activity(c *unstructured.Unstructured, r Row) string {
	topology := tree.ConditionOf(c, string(clusterv1.TopologyReconciledCondition))
	initialized := tree.ConditionOf(c, string(clusterv1.ControlPlaneInitializedCondition))
	switch {
	case r.Paused:
		return "paused"
	case c.GetDeletionTimestamp() != nil:
		return "deleting"
	case tree.Text(c, "status", "failureReason") != "" || tree.Text(c, "status", "failureMessage") != "":
		return "failed permanently"
	case topology != nil && topology.Status == "False" && topology.Severity == "Error":
		return "class cannot be applied"
	case topology != nil && topology.Reason == clusterv1.TopologyReconciledHookBlockingReason:
		return "waiting for a lifecycle hook"
	case !tree.True(c, "status", "infrastructureReady"):
		return "waiting for infrastructure"
	case initialized == nil || initialized.Status != "True":
		return "waiting for control plane"
	}
	if p := r.ControlPlane; p != nil && p.machines {
		if text := p.change("control plane"); text != "" {
			return text
		}
	}
	w := r.Workers
	w.upgraded = true
	if text := w.change("workers"); text != "" {
		return text
	}
	if ready := tree.ConditionOf(c, string(clusterv1.ReadyCondition)); ready != nil && ready.Status != "True" {
		return "not ready: " + ready.Reason
	}
	if topology != nil && topology.Status == "False" {
		return topology.Reason
	}
	return ""
}

// change describes a difference between desired and current Machines; empty for none.
func (r *Replicas) change(what string) string {
	switch {
	case !r.upgraded:
		return fmt.Sprintf("upgrading %s %d/%d", what, r.Updated, r.Desired)
	case r.Updated < min(r.current, r.Desired):
		return fmt.Sprintf("rolling out %s %d/%d", what, r.Updated, r.Desired)
	case r.current != r.Desired:
		return fmt.Sprintf("scaling %s %d/%d", what, r.current, r.Desired)
	case r.Ready < r.Desired:
		return fmt.Sprintf("waiting for %s %d/%d", what, r.Ready, r.Desired)
	}
	return ""
}
