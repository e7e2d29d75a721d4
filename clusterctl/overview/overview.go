// Package overview summarizes many Clusters: one row each, with versions, replicas and what is going on.
//
// Rows is a pure function of objects; Read reads them with one list per kind, whatever the number of Clusters. What one Cluster
// waits for in detail is explained by package explain.
package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/ready"
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
	// Class is the name of its ClusterClass, as <namespace>/<name> if it is in another namespace; empty without one.
	Class string `json:"class,omitempty"`
	// Version is the desired Kubernetes version.
	Version string `json:"version,omitempty"`
	// CurrentVersion is that of the control plane while it is being upgraded to Version, empty otherwise.
	CurrentVersion string `json:"currentVersion,omitempty"`
	Phase          string `json:"phase,omitempty"`
	// ControlPlane is empty if the Cluster has none yet.
	ControlPlane *Replicas `json:"controlPlane,omitempty"`
	// Workers are those of all MachineDeployments and MachinePools.
	Workers Replicas `json:"workers"`
	// Ready is the status of condition Ready: True, False, Unknown, or empty.
	Ready  string `json:"ready,omitempty"`
	Paused bool   `json:"paused,omitempty"`
	// Operation is an operation of the fleet provider on the control plane, such as "ControlPlaneRestore monday"; empty without one.
	Operation string `json:"operation,omitempty"`
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
	return fmt.Sprintf("%d/%d", min(r.Ready, r.Desired), r.Desired) // A rollout has more Machines for a while.
}

// Rows returns the Clusters among the objects, sorted by namespace and name.
func Rows(objects *tree.Objects) []Row {
	workers := map[types.NamespacedName][]*unstructured.Unstructured{}
	var clusters []*unstructured.Unstructured
	for _, u := range objects.All() {
		switch u.GroupVersionKind().GroupKind() {
		case tree.ClusterKind.GroupKind():
			clusters = append(clusters, u)
		case tree.MachineDeploymentKind.GroupKind(), tree.MachinePoolKind.GroupKind():
			key := types.NamespacedName{Namespace: u.GetNamespace(), Name: tree.Text(u, "spec", "clusterName")}
			workers[key] = append(workers[key], u)
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

// className returns the name of the ClusterClass of a Cluster, as <namespace>/<name> if it is in another namespace; empty without one.
func className(c *unstructured.Unstructured) string {
	class, _ := tree.Class(c)
	if class.Name == "" || class.Namespace == c.GetNamespace() {
		return class.Name
	}
	return class.String()
}

func row(c, plane *unstructured.Unstructured, list []*unstructured.Unstructured) Row {
	var workers Replicas
	own := tree.NewObjects(c)
	for _, u := range list {
		workers = workers.add(u)
		own.Add(u)
	}
	r := Row{
		Namespace: c.GetNamespace(), Name: c.GetName(), Class: className(c),
		Version: cmp.Or(tree.Text(c, "spec", "topology", "version"), tree.Text(plane, "spec", "version")),
		Phase:   tree.Text(c, "status", "phase"), Workers: workers, Created: c.GetCreationTimestamp(),
		Infrastructure: tree.Text(c, "spec", "infrastructureRef", "kind"),
	}
	if host := tree.Text(c, "spec", "controlPlaneEndpoint", "host"); host != "" {
		r.Endpoint = fmt.Sprintf("%s:%d", host, tree.Number(c, "spec", "controlPlaneEndpoint", "port"))
	}
	if ready := tree.ConditionOf(c, string(clusterv1.ReadyV1Beta1Condition)); ready != nil {
		r.Ready = ready.Status
	}
	r.Paused = tree.True(c, "spec", "paused")
	if plane != nil {
		if op, err := fleetv1.OperationOf(plane); err == nil && op != nil {
			r.Operation = op.Kind + " " + op.Name
		}
		_, machines, _ := unstructured.NestedFieldNoCopy(plane.Object, "spec", "replicas")
		version := tree.Text(plane, "status", "version")
		r.ControlPlane = &Replicas{
			Kind: plane.GetKind(), Desired: tree.Number(plane, "spec", "replicas"), Ready: tree.Number(plane, "status", "readyReplicas"),
			Updated: tree.Number(plane, "status", "updatedReplicas"), current: tree.Number(plane, "status", "replicas"), machines: machines,
			upgraded: version == "" || version == r.Version,
		}
		if wanted := tree.Text(plane, "spec", "version"); wanted != "" && wanted != r.Version {
			r.ControlPlane.Updated = 0 // The upgrade has not reached the control plane.
		}
		if !r.ControlPlane.upgraded {
			r.CurrentVersion = version
		}
		own.Add(plane)
	}
	r.Activity = activity(c, r, own)
	return r
}

// activity returns the first of what goes on, in the order in which it happens.
func activity(c *unstructured.Unstructured, r Row, objects *tree.Objects) string {
	topology := tree.ConditionOf(c, string(clusterv1.TopologyReconciledV1Beta1Condition))
	initialized := tree.ConditionOf(c, string(clusterv1.ControlPlaneInitializedV1Beta1Condition))
	switch {
	case r.Paused:
		return "paused"
	case c.GetDeletionTimestamp() != nil:
		if topology != nil && topology.Status == "False" && topology.Message != "" {
			return "deletion waits for a lifecycle hook"
		}
		return "deleting"
	case r.Operation != "":
		return r.Operation + " is in progress"
	case tree.Text(c, "status", "failureReason") != "" || tree.Text(c, "status", "failureMessage") != "":
		return "failed permanently"
	case topology != nil && topology.Status == "False" && topology.Severity == "Error":
		return "class cannot be applied"
	case topology != nil && topology.Reason == clusterv1.TopologyReconciledHookBlockingV1Beta1Reason:
		return "waiting for a lifecycle hook"
	case r.Infrastructure == "" && topology != nil && topology.Status == "False":
		return "waiting for its class" // Or for a template of the class.
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
	if c := tree.ConditionOf(c, string(clusterv1.ReadyV1Beta1Condition)); c != nil && c.Status != "True" {
		return "not ready: " + c.Reason
	}
	if topology != nil && topology.Status == "False" {
		return pending(topology.Reason)
	}
	return missing(types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, objects)
}

// pending says what a part of a topology waits for.
func pending(reason string) string {
	switch reason {
	case clusterv1.TopologyReconciledControlPlaneUpgradePendingV1Beta1Reason:
		return "upgrade of control plane is pending"
	case clusterv1.TopologyReconciledMachineDeploymentsUpgradePendingV1Beta1Reason,
		clusterv1.TopologyReconciledMachinePoolsUpgradePendingV1Beta1Reason:
		return "upgrade of workers is pending"
	case clusterv1.TopologyReconciledMachineDeploymentsUpgradeDeferredV1Beta1Reason,
		clusterv1.TopologyReconciledMachinePoolsUpgradeDeferredV1Beta1Reason:
		return "upgrade of workers is deferred"
	case clusterv1.TopologyReconciledMachineDeploymentsCreatePendingV1Beta1Reason,
		clusterv1.TopologyReconciledMachinePoolsCreatePendingV1Beta1Reason:
		return "creation of workers is pending"
	}
	return reason
}

// missing returns what `clusterctl wait cluster` waits for first, "" for nothing: what the cases above do not tell apart.
func missing(name types.NamespacedName, objects *tree.Objects) string {
	list, err := ready.Remaining(name, objects)
	if err != nil {
		return err.Error()
	}
	if list = append(list, ready.Unready(name, objects)...); len(list) == 0 {
		return ""
	}
	text, _, _ := strings.Cut(list[0], " [")
	return "waiting for " + text
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
