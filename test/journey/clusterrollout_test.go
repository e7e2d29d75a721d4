package journey

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// revision applies a copy of the project's class, and of its templates, under names with a suffix, after a change, and returns its name.
func (w *World) revision(suffix string, change func(o *unstructured.Unstructured)) string {
	w.t.Helper()
	objects, err := readObjects(w.Tools.ProjectTemplate().Class)
	testenv.Must(w.t, err)
	name := ""
	for _, o := range objects {
		if o.GetKind() == "ClusterClass" {
			name = o.GetName() + suffix
			rename(o.Object, suffix)
		}
		o.SetName(o.GetName() + suffix)
		change(o)
		w.Applied(o)
	}
	return name
}

// rename adds a suffix to the names in all references of a class.
func rename(in any, suffix string) {
	switch v := in.(type) {
	case map[string]any:
		for key, value := range v {
			if ref, ok := value.(map[string]any); ok && (key == "templateRef" || key == "ref") {
				ref["name"] = fmt.Sprint(ref["name"]) + suffix
				continue
			}
			rename(value, suffix)
		}
	case []any:
		for _, item := range v {
			rename(item, suffix)
		}
	}
}

// rollout returns a rollout of a class to the Clusters of a namespace: first the canary, then all others at the same time.
func (v *vault) rollout(name, class string) *fleetv1.ClusterRollout {
	return &fleetv1.ClusterRollout{ObjectMeta: v.meta(name), Spec: fleetv1.ClusterRolloutSpec{
		Change: fleetv1.RolloutChange{ClassRef: fleetv1.RolloutClassReference{Name: class}},
		Strategy: &fleetv1.RolloutStrategy{
			ProgressDeadlineSeconds: ptr.To[int32](120),
			Stages: []fleetv1.RolloutStage{
				{Name: "canary", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}}},
				{Name: "rest", MaxConcurrent: ptr.To(intstr.FromString("100%")), Gate: fleetv1.RolloutGateApproval},
			},
		},
	}}
}

// planned is true when clusterctl makes the same plan as the controller, of a rollout that has changed the canary since.
func (v *vault) planned(r *fleetv1.ClusterRollout) {
	v.t.Helper()
	if out := v.command(r.Namespace, "plan", r.Name).Out; !strings.Contains(out, "spec.topology.classRef is applied by gitops") {
		v.t.Errorf("clusterctl plans:\n%s\nthe controller has planned %+v", out, r.Status.Plan)
	}
	status := v.command(r.Namespace, "status", r.Name).Out
	if !strings.Contains(status, "clusterctl rollout approve "+r.Name) || !strings.Contains(status, r.Status.Plan.Hash) {
		v.t.Errorf("the status is:\n%s", status)
	}
}

// command runs `clusterctl rollout`.
func (v *vault) command(namespace, verb string, args ...string) Result {
	v.t.Helper()
	args = append([]string{"rollout", verb, "--namespace", namespace, "--kubeconfig", v.Kubeconfig}, args...)
	r := v.Tools.Clusterctl(v.t.Context(), "", args...)
	if v.t.Log(r); r.Failed {
		v.t.Fatal(r)
	}
	return r
}

// TestClusterRollout: a new class reaches the canary, and after an approval the others. One with machines that never start is stopped at the canary,
// which goes back.
func TestClusterRollout(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	class := v.Class(v.Tools.ProjectTemplate())
	var all []*Subject
	for _, name := range []string{"one", "two", "three"} {
		cluster := NewCluster(name, class).Workers(1).Build()
		if name == "one" {
			cluster.Labels = map[string]string{"stage": "canary"}
		}
		all = append(all, v.Subject(cluster))
	}
	for _, c := range all {
		c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1))
	}
	before := all[0].Snapshot()

	// A GitOps controller applies the class of one of them, so that it is left to it.
	v.owned("three", class)
	good := v.rollout("good", v.revision("-2", labeled))
	v.create(good)
	v.settled(good, fleetv1.RolloutCompletedCondition, "False WaitingForApproval", "rest")
	if p := good.Status.Plan; *p.InPlace != 2 || *p.Machines != 0 || *p.Forbidden != 1 || p.Hash == "" {
		t.Errorf("the plan of a class with another label is %+v", p)
	}
	v.planned(good)
	v.command(good.Namespace, "approve", good.Name, "--plan-hash", good.Status.Plan.Hash)
	v.settled(good, fleetv1.RolloutCompletedCondition, "True Completed", "2 Clusters changed, 1 skipped")
	v.command(good.Namespace, "status", good.Name)
	all[0].Eventually("no Machine was replaced", Ready, SameMachines((*Snapshot).ControlPlane, before), SameMachines((*Snapshot).Workers, before))

	bad := v.rollout("bad", v.revision("-3", neverStarting))
	bad.Spec.Force = ptr.To(true)
	bad.Spec.Strategy.OnFailure, bad.Spec.Strategy.ProgressDeadlineSeconds = fleetv1.RolloutRollback, ptr.To[int32](10)
	v.create(bad)
	v.settled(bad, fleetv1.RolloutHaltedCondition, "True TooManyFailures", "1 Cluster of stage canary failed")
	if p := bad.Status.Plan; *p.Replacing != 3 || *p.Machines != 3 {
		t.Errorf("the plan of a class with other machines is %+v", p)
	}
	v.settled(bad, fleetv1.RolloutCompletedCondition, "False Halted", "")
	for i, is := range []string{class + "-2", class + "-2", class} {
		all[i].Eventually("the Cluster is as it was", Ready, ControlPlanes(1), Workers(1), classIs(is))
	}
	for _, c := range all {
		c.Delete()
	}
}

// classIs is true when the Cluster has a class.
func classIs(name string) Condition {
	return func(p *Snapshot) error {
		if p.Cluster.Spec.Topology.Class != name {
			return fmt.Errorf("the class is %s", p.Cluster.Spec.Topology.Class)
		}
		return nil
	}
}

// owned makes another field manager apply the class of a Cluster.
func (v *vault) owned(name, class string) {
	v.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": clusterv1.GroupVersion.String(), "kind": "Cluster",
		"metadata": map[string]any{"namespace": v.Namespace, "name": name},
		"spec":     map[string]any{"topology": map[string]any{"class": class, "version": "v1.30.5"}},
	}}
	apply := client.ApplyConfigurationFromUnstructured(u)
	testenv.Must(v.t, v.World.Client.Apply(v.t.Context(), apply, client.FieldOwner("gitops")))
}

// labeled adds a label to the workers of a class, which is changed in place.
func labeled(o *unstructured.Unstructured) {
	workers, found, err := unstructured.NestedSlice(o.Object, "spec", "workers", "machineDeployments")
	if err != nil || !found {
		return
	}
	for _, w := range workers {
		class, _ := w.(map[string]any)
		class["metadata"] = map[string]any{"labels": map[string]any{"revision": "2"}}
	}
	o.Object["spec"].(map[string]any)["workers"].(map[string]any)["machineDeployments"] = workers
}

// neverStarting has new workers take an hour to start.
func neverStarting(o *unstructured.Unstructured) {
	labeled(o)
	if o.GetKind() == "InMemoryMachineTemplate" && strings.Contains(o.GetName(), "worker") {
		o.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"behaviour": map[string]any{
			"vm": map[string]any{"provisioning": map[string]any{"startupDuration": "1h"}},
		}}}}
	}
	patches, _, _ := unstructured.NestedSlice(o.Object, "spec", "patches")
	for _, p := range patches {
		definitions, _, _ := unstructured.NestedSlice(p.(map[string]any), "definitions")
		for _, d := range definitions {
			unstructured.RemoveNestedField(d.(map[string]any), "selector", "matchResources", "machineDeploymentClass")
		}
		p.(map[string]any)["definitions"] = definitions
	}
	if len(patches) > 0 {
		o.Object["spec"].(map[string]any)["patches"] = patches
	}
}
