package journey

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/replacement"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestPlanAgreesWithOutcome makes random changes of a Cluster, its ClusterClass and its templates, and compares the plan of each with what
// happened. CAPI_PLAN_CHANGES is their number, more in soak tests; CAPI_PLAN_SEED selects others.
func TestPlanAgreesWithOutcome(t *testing.T) {
	t.Parallel()
	some := 5
	if testenv.Soaks() {
		some = 20
	}
	seed, changes := planSetting(t, "CAPI_PLAN_SEED", 1), planSetting(t, "CAPI_PLAN_CHANGES", some)
	w := newExtensionWorld(t)
	c := plannedCluster(t, w)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	for i := range changes {
		before := c.owned()
		p := c.propose(random, i)
		reason := fmt.Sprintf("change %d of seed %d: %s", i, seed, strings.Join(p.names, ", "))
		t.Log(reason)
		plan, err := c.plan(p.objects()...)
		if err != nil {
			t.Fatalf("%s: planning: %v", reason, err)
		}
		c.carryOut(p)
		c.Eventually(reason, settled, c.nothingPlanned)
		if diff := cmp.Diff(predicted(plan, before), observed(before, c.owned())); diff != "" {
			t.Errorf("%s: the plan differs from the outcome (-plan +outcome):\n%s\n%s\n%s", reason, diff, rounds(plan), c.describe())
		}
	}
	testenv.Must(t, c.Client.Delete(t.Context(), c.Snapshot().Cluster))
	c.Eventually("the Cluster is deleted", func(p *Snapshot) error {
		if p.Cluster.Name != "" {
			return errors.New("the Cluster exists")
		}
		return nil
	})
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

// plan returns the plan for objects, with the client that `clusterctl plan` has.
func (c *Subject) plan(objects ...*unstructured.Unstructured) (*topologyplan.Plan, error) {
	if c.planning == nil {
		m, err := management.New(c.Config, c.Namespace)
		if err != nil {
			return nil, err
		}
		if c.planning, err = m.Discovering(topologyplan.Contracts, func() {}); err != nil {
			return nil, err
		}
	}
	return topologyplan.Compute(c.t.Context(), topologyplan.Input{
		Objects: objects, Cluster: c.Name, Namespace: c.Namespace, Live: c.planning, Now: time.Now(),
		ControlPlanes: map[schema.GroupKind]topologyplan.Outdated{replacement.Kind(): replacement.Reasons},
	})
}

// nothingPlanned is true when the topology controller has nothing left to do.
func (c *Subject) nothingPlanned(*Snapshot) error {
	cluster := &clusterv1.Cluster{}
	if err := c.Client.Get(c.t.Context(), c.Key(), cluster); err != nil {
		return err
	}
	plan, err := c.plan(file(c.t, cluster, "Cluster"))
	if err != nil {
		return err // such as a class that has not been reconciled yet
	}
	if len(plan.Rounds) > 0 || strings.Contains(plan.Waiting, "on hold") {
		return fmt.Errorf("rounds are left: %s", rounds(plan))
	}
	return settled(c.live()) // of objects that are not older than the plan
}

// live returns the current objects.
func (c *Subject) live() *Snapshot {
	c.t.Helper()
	p, err := c.snapshotFrom(c.t.Context(), c.Client)
	testenv.Must(c.t, err)
	return p
}

// rounds describes a plan.
func rounds(plan *topologyplan.Plan) string {
	var out strings.Builder
	for i, round := range plan.Rounds {
		fmt.Fprintf(&out, "round %d: hooks %v\n", i, round.Hooks)
		for _, change := range round.Changes {
			fmt.Fprintf(&out, "  %s %s %s %v\n", change.Action, change.Object().GetKind(), change.Object().GetName(), change.Fields)
		}
		for _, r := range round.Rollouts {
			fmt.Fprintf(&out, "  rollout of %s %s: %v for %v\n", r.Kind, r.Name, r.Machines, r.Reasons)
		}
	}
	return out.String() + plan.Waiting
}

// owned are the objects of a Cluster's topology, and its Machines, by kind and name.
type owned struct {
	specs    map[string]any
	machines map[string]*clusterv1.Machine
}

// owned returns the current objects.
func (c *Subject) owned() owned {
	c.t.Helper()
	o := owned{specs: map[string]any{}, machines: map[string]*clusterv1.Machine{}}
	for kind, version := range map[string]string{
		"KubeadmControlPlane": "controlplane.cluster.x-k8s.io/v1beta1", "MachineDeployment": "cluster.x-k8s.io/v1beta1",
		"MachinePool": "cluster.x-k8s.io/v1beta1", "MachineHealthCheck": "cluster.x-k8s.io/v1beta1",
		"KubeadmConfigTemplate": "bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfig": "bootstrap.cluster.x-k8s.io/v1beta1",
		"InMemoryCluster": "infrastructure.cluster.x-k8s.io/v1alpha1", "InMemoryMachineTemplate": "infrastructure.cluster.x-k8s.io/v1alpha1",
		"InMemoryMachinePool": "infrastructure.cluster.x-k8s.io/v1alpha1",
	} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(version)
		list.SetKind(kind + "List")
		testenv.Must(c.t, c.Client.List(c.t.Context(), list, client.InNamespace(c.Namespace),
			client.MatchingLabels{clusterv1.ClusterNameLabel: c.Name}, client.HasLabels{clusterv1.ClusterTopologyOwnedLabel}))
		for i := range list.Items {
			if owners := list.Items[i].GetOwnerReferences(); len(owners) > 0 && owners[0].Kind == "Machine" {
				continue // It belongs to a Machine.
			}
			o.specs[kind+" "+list.Items[i].GetName()] = specOf(&list.Items[i])
		}
	}
	for _, m := range c.live().Machines.Items {
		o.machines[m.Name] = &m
	}
	return o
}

// specOf returns the spec of an object, without what providers write.
func specOf(u *unstructured.Unstructured) any {
	copied := u.DeepCopy()
	unstructured.RemoveNestedField(copied.Object, "spec", "providerIDList")
	unstructured.RemoveNestedField(copied.Object, "spec", "template", "spec", "bootstrap", "dataSecretName")
	return copied.Object["spec"]
}

// countedFor returns what a Machine is counted for.
func countedFor(m *clusterv1.Machine) string {
	if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
		return "KubeadmControlPlane"
	}
	return m.Labels[clusterv1.MachineDeploymentNameLabel] + m.Labels[clusterv1.MachinePoolNameLabel]
}

// outcome is what a plan predicts.
type outcome struct {
	// Replaced are Machines, except those of owners that are scaled down or deleted, and of MachinePools, whose provider decides.
	Replaced []string
	// Objects are what happens to objects in the end, by kind and name.
	Objects map[string]topologyplan.Action
}

// counted reports whether Machines of an owner are compared.
func counted(m *clusterv1.Machine, before, after map[string]int64) bool {
	if m.Labels[clusterv1.MachinePoolNameLabel] != "" {
		return false
	}
	return after[countedFor(m)] >= before[countedFor(m)]
}

// replicas returns the replicas of owners.
func replicas(specs map[string]any) map[string]int64 {
	out := map[string]int64{}
	for name, spec := range specs {
		kind, name, _ := strings.Cut(name, " ")
		if kind == "KubeadmControlPlane" {
			name = kind
		}
		if n, found, _ := unstructured.NestedInt64(map[string]any{"spec": spec}, "spec", "replicas"); found {
			out[name] = n
		}
	}
	return out
}

func predicted(plan *topologyplan.Plan, before owned) outcome {
	o := outcome{Objects: map[string]topologyplan.Action{}}
	after := maps.Clone(before.specs)
	for _, round := range plan.Rounds {
		for _, change := range round.Changes {
			name := change.Object().GetKind() + " " + change.Object().GetName()
			switch {
			case change.Object().GetKind() == "Cluster":
			case change.Action == topologyplan.Deleted:
				delete(after, name)
			default:
				after[name] = specOf(change.After)
			}
		}
	}
	o.Objects = compared(before.specs, after)
	for _, round := range plan.Rounds {
		for _, r := range round.Rollouts {
			for _, name := range r.Machines {
				if m := before.machines[name]; m != nil && counted(m, replicas(before.specs), replicas(after)) {
					o.Replaced = append(o.Replaced, name)
				}
			}
		}
	}
	slices.Sort(o.Replaced)
	return o
}

func observed(before, after owned) outcome {
	o := outcome{Objects: compared(before.specs, after.specs)}
	for name, m := range before.machines {
		if after.machines[name] == nil && counted(m, replicas(before.specs), replicas(after.specs)) {
			o.Replaced = append(o.Replaced, name)
		}
	}
	slices.Sort(o.Replaced)
	return o
}

// compared returns what happened to objects.
func compared(before, after map[string]any) map[string]topologyplan.Action {
	out := map[string]topologyplan.Action{}
	for name, spec := range after {
		old, existed := before[name]
		switch {
		case !existed:
			out[name] = topologyplan.Created
		case !equality.Semantic.DeepEqual(old, spec):
			out[name] = topologyplan.Modified
		}
	}
	for name := range before {
		// Others are deleted with what refers to them; templates with the last MachineSet in the history of a MachineDeployment.
		kind, _, _ := strings.Cut(name, " ")
		if _, exists := after[name]; !exists && slices.Contains([]string{"MachineDeployment", "MachinePool", "MachineHealthCheck"}, kind) {
			out[name] = topologyplan.Deleted
		}
	}
	return out
}

// settled is true when no rollout is in progress.
func settled(p *Snapshot) error {
	for i := range p.ControlPlanes.Items {
		s, n := &p.ControlPlanes.Items[i].Status, *p.ControlPlanes.Items[i].Spec.Replicas
		if s.ObservedGeneration != p.ControlPlanes.Items[i].Generation || s.UpdatedReplicas != n || s.Replicas != n || s.ReadyReplicas != n {
			return errors.New("the control plane is being rolled out")
		}
	}
	owners := map[string]bool{}
	for i := range p.Deployments.Items {
		md := &p.Deployments.Items[i]
		owners[md.Name] = md.DeletionTimestamp == nil
		n := *md.Spec.Replicas
		s := &md.Status
		if s.ObservedGeneration != md.Generation || s.UpdatedReplicas != n || s.Replicas != n || s.AvailableReplicas != n {
			return fmt.Errorf("MachineDeployment %s is being rolled out", md.Name)
		}
	}
	for i := range p.Pools.Items {
		pool := &p.Pools.Items[i]
		owners[pool.Name] = pool.DeletionTimestamp == nil
		n, s := *pool.Spec.Replicas, &pool.Status
		if s.ObservedGeneration != pool.Generation || s.Replicas != n || s.ReadyReplicas != n {
			return fmt.Errorf("MachinePool %s is being rolled out", pool.Name)
		}
	}
	for _, m := range p.Machines.Items {
		if m.DeletionTimestamp != nil {
			return fmt.Errorf("Machine %s is being deleted", m.Name)
		}
		if owner := countedFor(&m); owner != "" && owner != "KubeadmControlPlane" && !owners[owner] {
			return fmt.Errorf("Machine %s will be deleted with %s", m.Name, owner)
		}
	}
	for name, stays := range owners {
		if !stays {
			return fmt.Errorf("%s is being deleted", name)
		}
	}
	return nil
}
