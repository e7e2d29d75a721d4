package journey

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/replacement"
	"sigs.k8s.io/cluster-api/core/topologyplan"
)

// randomChange is a change of a Cluster; i is different for each.
type randomChange struct {
	name   string
	change func(cluster *clusterv1.Cluster, i int)
}

func randomChanges() []randomChange {
	first := func(c *clusterv1.Cluster) *clusterv1.MachineDeploymentTopology {
		return &c.Spec.Topology.Workers.MachineDeployments[0]
	}
	return []randomChange{
		{"a variable that a patch writes into templates", func(c *clusterv1.Cluster, i int) {
			setVariable("startupDuration", fmt.Sprintf("%dms", i+1))(c)
		}},
		{"labels of Machines", func(c *clusterv1.Cluster, i int) {
			label := map[string]string{"change": strconv.Itoa(i)}
			c.Spec.Topology.ControlPlane.Metadata.Labels, first(c).Metadata.Labels = label, label
		}},
		{"a timeout of a MachineDeployment and an annotation of the control plane", func(c *clusterv1.Cluster, i int) {
			first(c).MinReadySeconds = ptr.To(int32(i % 2))
			c.Spec.Topology.ControlPlane.Metadata.Annotations = map[string]string{"change": strconv.Itoa(i)}
		}},
		{"a new MachineDeployment", func(c *clusterv1.Cluster, i int) {
			c.Spec.Topology.Workers.MachineDeployments = append(c.Spec.Topology.Workers.MachineDeployments,
				clusterv1.MachineDeploymentTopology{Class: "default-worker", Name: fmt.Sprint("new-", i), Replicas: ptr.To[int32](1)})
		}},
		{"only one MachineDeployment", func(c *clusterv1.Cluster, _ int) {
			c.Spec.Topology.Workers.MachineDeployments = c.Spec.Topology.Workers.MachineDeployments[:1]
		}},
		{"the version", func(c *clusterv1.Cluster, _ int) { c.Spec.Topology.Version = newer }},
	}
}

// TestPlanAgreesWithOutcome makes random changes, and compares the plan of each with what happened.
func TestPlanAgreesWithOutcome(t *testing.T) {
	t.Parallel()
	seed, changes := planSetting(t, "CAPI_PLAN_SEED", 1), planSetting(t, "CAPI_PLAN_CHANGES", 6)
	w := shared.World(t)
	cluster := NewCluster("planned", w.Class(w.Tools.ProjectTemplate())).Workers(1).Variable("startupDuration", "0ms").Build()
	c := w.Subject(cluster)
	c.Eventually("the Cluster becomes ready", Ready, settled)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	order := random.Perm(changes)
	for i := range changes {
		all := randomChanges()
		one := all[order[i]%len(all)]
		reason := fmt.Sprintf("change %d of seed %d: %s", i, seed, one.name)
		before := c.Snapshot()
		changed := before.Cluster.DeepCopy()
		one.change(changed, i)
		plan := c.plan(changed)
		c.Change(func(live *clusterv1.Cluster) { one.change(live, i) })
		c.Eventually(reason, Ready, settled, sameDeployments(changed), c.nothingPlanned)
		after := c.Snapshot()
		if diff := cmp.Diff(predicted(plan), observed(before, after)); diff != "" {
			t.Errorf("%s: the plan differs from the outcome (-plan +outcome):\n%s", reason, diff)
		}
	}
	c.Gone()
}

func planSetting(t *testing.T, name string, fallback int) int {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return fallback
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatalf("%s is %q: it must be an integer", name, value)
	}
	return n
}

// plan returns the plan for the Cluster as a file would have it.
func (c *Subject) plan(changed *clusterv1.Cluster) *topologyplan.Plan {
	c.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(changed)
	if err != nil {
		c.t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	plan, err := topologyplan.Compute(c.t.Context(), topologyplan.Input{
		Objects: []*unstructured.Unstructured{u}, Namespace: c.Namespace, Live: c.Client, Now: time.Now(),
		ControlPlanes: map[schema.GroupKind]topologyplan.Outdated{replacement.Kind(): replacement.Reasons},
	})
	if err != nil {
		c.t.Fatalf("planning: %v", err)
	}
	return plan
}

// nothingPlanned is true when the topology controller has nothing left to do.
func (c *Subject) nothingPlanned(*Snapshot) error {
	cluster := &clusterv1.Cluster{}
	if err := c.Client.Get(c.t.Context(), c.Key(), cluster); err != nil {
		return err
	}
	if plan := c.plan(cluster); len(plan.Rounds) > 0 || plan.Waiting != "" {
		return fmt.Errorf("%d rounds are left: %s", len(plan.Rounds), plan.Waiting)
	}
	p, err := c.snapshot(c.t.Context())
	if err != nil {
		return err
	}
	return settled(p) // of objects that are not older than the plan
}

// outcome is what a plan predicts.
type outcome struct {
	// Replaced are Machines, Created and Deleted MachineDeployments by their topology names.
	Replaced, Created, Deleted []string
}

func predicted(plan *topologyplan.Plan) outcome {
	var o outcome
	for _, round := range plan.Rounds {
		for _, r := range round.Rollouts {
			o.Replaced = append(o.Replaced, r.Machines...)
		}
		for _, change := range round.Changes {
			u := change.Object()
			if u.GetKind() != "MachineDeployment" {
				continue
			}
			name := u.GetLabels()[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
			switch change.Action {
			case topologyplan.Created:
				o.Created = append(o.Created, name)
			case topologyplan.Deleted:
				o.Deleted = append(o.Deleted, name)
			case topologyplan.Modified:
			}
		}
	}
	slices.Sort(o.Replaced)
	return o
}

func observed(before, after *Snapshot) outcome {
	var o outcome
	o.Created, o.Deleted = added(before, after), added(after, before)
	left := map[string]bool{}
	for _, m := range after.Machines.Items {
		left[m.Name] = true
	}
	for _, m := range before.Machines.Items {
		if !left[m.Name] && !slices.Contains(o.Deleted, m.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]) {
			o.Replaced = append(o.Replaced, m.Name)
		}
	}
	slices.Sort(o.Replaced)
	return o
}

// added returns the MachineDeployments of after that before does not have.
func added(before, after *Snapshot) []string {
	had := map[string]bool{}
	for _, md := range before.Deployments.Items {
		had[md.Name] = true
	}
	var names []string
	for _, md := range after.Deployments.Items {
		if !had[md.Name] {
			names = append(names, md.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel])
		}
	}
	slices.Sort(names)
	return names
}

// settled is true when no rollout is in progress.
func settled(p *Snapshot) error {
	for i := range p.ControlPlanes.Items {
		s := &p.ControlPlanes.Items[i].Status
		if s.ObservedGeneration != p.ControlPlanes.Items[i].Generation || s.UpdatedReplicas != 1 || s.Replicas != 1 || s.ReadyReplicas != 1 {
			return errors.New("the control plane is being rolled out")
		}
	}
	for i := range p.Deployments.Items {
		md := &p.Deployments.Items[i]
		n := *md.Spec.Replicas
		s := &md.Status
		if s.ObservedGeneration != md.Generation || s.UpdatedReplicas != n || s.Replicas != n || s.AvailableReplicas != n {
			return fmt.Errorf("MachineDeployment %s is being rolled out", md.Name)
		}
	}
	for _, m := range p.Machines.Items {
		if m.DeletionTimestamp != nil {
			return fmt.Errorf("Machine %s is being deleted", m.Name)
		}
	}
	return nil
}

// sameDeployments is true when there are the MachineDeployments of a topology.
func sameDeployments(cluster *clusterv1.Cluster) Condition {
	return func(p *Snapshot) error {
		if have, want := len(p.Deployments.Items), len(cluster.Spec.Topology.Workers.MachineDeployments); have != want {
			return fmt.Errorf("there are %d MachineDeployments, want %d", have, want)
		}
		return nil
	}
}
