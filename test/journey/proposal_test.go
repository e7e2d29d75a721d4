package journey

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// proposal is a random change of a Cluster and what it is made of.
type proposal struct {
	t     testing.TB
	names []string
	// cluster and class are changed; templates are new.
	cluster, liveCluster *clusterv1.Cluster
	class, liveClass     *clusterv1.ClusterClass
	templates            []*unstructured.Unstructured
	// i is different for each proposal.
	i int
}

// randomChange is one change of a proposal.
type randomChange struct {
	name   string
	change func(p *proposal, c *Subject, random *rand.Rand)
}

// clusterChanges can be made together, classChanges one at a time: several objects are not applied at once.
func clusterChanges() []randomChange {
	return []randomChange{
		{"a variable that a patch writes into templates", func(p *proposal, _ *Subject, _ *rand.Rand) {
			setVariable("startupDuration", fmt.Sprintf("%dms", p.i+1))(p.cluster)
		}},
		{"a variable that an extension writes into templates", func(p *proposal, _ *Subject, _ *rand.Rand) {
			setVariable("greeting", fmt.Sprint("moin ", p.i))(p.cluster)
		}},
		{"the value of a variable for one MachineDeployment", func(p *proposal, _ *Subject, random *rand.Rand) {
			value := clusterv1.ClusterVariable{Name: "startupDuration", Value: apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `"%dms"`, p.i+1)}}
			p.deployment(random).Variables = &clusterv1.MachineDeploymentVariables{Overrides: []clusterv1.ClusterVariable{value}}
		}},
		{"labels of Machines", func(p *proposal, _ *Subject, random *rand.Rand) {
			label := map[string]string{"change": strconv.Itoa(p.i)}
			p.cluster.Spec.Topology.ControlPlane.Metadata.Labels, p.deployment(random).Metadata.Labels = label, label
		}},
		{"annotations of the control plane and of a MachinePool", func(p *proposal, _ *Subject, _ *rand.Rand) {
			annotation := map[string]string{"change": strconv.Itoa(p.i)}
			p.cluster.Spec.Topology.ControlPlane.Metadata.Annotations = annotation
			for i := range p.workers().MachinePools {
				p.workers().MachinePools[i].Metadata.Annotations = annotation
			}
		}},
		{"minReadySeconds, strategy and timeouts", func(p *proposal, _ *Subject, random *rand.Rand) {
			md, timeout := p.deployment(random), &metav1.Duration{Duration: time.Duration(p.i+1) * time.Minute}
			md.MinReadySeconds, md.NodeDrainTimeout, p.cluster.Spec.Topology.ControlPlane.NodeDrainTimeout = ptr.To(int32(p.i%2)), timeout, timeout
			md.Strategy = &clusterv1.MachineDeploymentStrategy{Type: clusterv1.RollingUpdateMachineDeploymentStrategyType, RollingUpdate: &clusterv1.MachineRollingUpdateDeployment{
				MaxSurge: ptr.To(intstr.FromInt32(int32(1 + p.i%2))), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
			}}
		}},
		{"no health check", func(p *proposal, _ *Subject, random *rand.Rand) {
			p.deployment(random).MachineHealthCheck = &clusterv1.MachineHealthCheckTopology{Enable: ptr.To(false)}
		}},
		{"a health check of its own", func(p *proposal, _ *Subject, random *rand.Rand) {
			p.deployment(random).MachineHealthCheck = &clusterv1.MachineHealthCheckTopology{
				Enable: ptr.To(true), MachineHealthCheckClass: clusterv1.MachineHealthCheckClass{
					MaxUnhealthy:        ptr.To(intstr.FromInt32(int32(p.i))),
					UnhealthyConditions: []clusterv1.UnhealthyCondition{{Type: "Ready", Status: "Unknown", Timeout: metav1.Duration{Duration: time.Hour}}},
				},
			}
		}},
		{"replicas of a MachineDeployment", func(p *proposal, _ *Subject, random *rand.Rand) {
			p.deployment(random).Replicas = ptr.To(random.Int32N(3))
		}},
		{"replicas of the control plane", func(p *proposal, _ *Subject, _ *rand.Rand) {
			p.cluster.Spec.Topology.ControlPlane.Replicas = ptr.To(4 - *p.cluster.Spec.Topology.ControlPlane.Replicas)
		}},
		{"a new MachineDeployment", func(p *proposal, _ *Subject, _ *rand.Rand) {
			p.workers().MachineDeployments = append(p.workers().MachineDeployments,
				clusterv1.MachineDeploymentTopology{Class: "default-worker", Name: fmt.Sprint("new-", p.i), Replicas: ptr.To[int32](1)})
		}},
		{"only one MachineDeployment", func(p *proposal, _ *Subject, _ *rand.Rand) {
			p.workers().MachineDeployments = p.workers().MachineDeployments[:1]
		}},
		{"a MachinePool, or none", func(p *proposal, _ *Subject, _ *rand.Rand) {
			if len(p.workers().MachinePools) > 0 {
				p.workers().MachinePools = []clusterv1.MachinePoolTopology{}
				return
			}
			p.workers().MachinePools = []clusterv1.MachinePoolTopology{{Class: "default-worker", Name: fmt.Sprint("pool-", p.i), Replicas: ptr.To[int32](1)}}
		}},
		{"the version", func(p *proposal, _ *Subject, _ *rand.Rand) {
			p.cluster.Spec.Topology.Version = fmt.Sprint("v1.30.", p.i+6)
		}},
		{"the version, deferred for one MachineDeployment", func(p *proposal, _ *Subject, random *rand.Rand) {
			p.deployment(random).Metadata.Annotations = map[string]string{clusterv1.ClusterTopologyDeferUpgradeAnnotation: ""}
			p.cluster.Spec.Topology.Version = fmt.Sprint("v1.30.", p.i+6)
		}},
		{"the version, and no MachineDeployment is deferred", func(p *proposal, _ *Subject, _ *rand.Rand) {
			for i := range p.workers().MachineDeployments {
				p.workers().MachineDeployments[i].Metadata.Annotations = nil
			}
			p.cluster.Spec.Topology.Version = fmt.Sprint("v1.30.", p.i+6)
		}},
	}
}

func classChanges() []randomChange {
	return []randomChange{
		{"metadata of the class", func(p *proposal, _ *Subject, _ *rand.Rand) {
			p.class.Spec.ControlPlane.Metadata.Labels = map[string]string{"class": strconv.Itoa(p.i)}
			p.class.Spec.Workers.MachineDeployments[0].Template.Metadata.Annotations = map[string]string{"class": strconv.Itoa(p.i)}
		}},
		{"timeouts and strategy of the class", func(p *proposal, _ *Subject, _ *rand.Rand) {
			p.class.Spec.ControlPlane.NodeDeletionTimeout = &metav1.Duration{Duration: time.Duration(p.i+1) * time.Minute}
			p.class.Spec.Workers.MachineDeployments[0].NodeVolumeDetachTimeout = &metav1.Duration{Duration: time.Duration(p.i+1) * time.Minute}
		}},
		{"health checks of the class", func(p *proposal, _ *Subject, _ *rand.Rand) {
			p.class.Spec.ControlPlane.MachineHealthCheck.NodeStartupTimeout = &metav1.Duration{Duration: time.Duration(p.i+1) * time.Minute}
		}},
		{"an inline patch of the class for workers", func(p *proposal, _ *Subject, _ *rand.Rand) {
			p.patch("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfigTemplate", "/spec/template/spec/joinConfiguration/nodeRegistration/kubeletExtraArgs",
				clusterv1.PatchSelectorMatch{MachineDeploymentClass: &clusterv1.PatchSelectorMatchMachineDeploymentClass{Names: []string{"default-worker"}}})
		}},
		{"an inline patch of the class for the control plane", func(p *proposal, _ *Subject, _ *rand.Rand) {
			p.patch("controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlaneTemplate", "/spec/template/spec/kubeadmConfigSpec/joinConfiguration/nodeRegistration/kubeletExtraArgs",
				clusterv1.PatchSelectorMatch{ControlPlane: true})
		}},
		{"another template with the same content", func(p *proposal, c *Subject, _ *rand.Rand) {
			p.rotate(c, p.class.Spec.Workers.MachineDeployments[0].Template.Infrastructure.Ref.Name, nil)
		}},
		{"another template with other content", func(p *proposal, c *Subject, _ *rand.Rand) {
			p.rotate(c, p.class.Spec.Workers.MachineDeployments[0].Template.Infrastructure.Ref.Name, map[string]any{"cpu": strconv.Itoa(p.i + 1)})
		}},
		{"a new class of workers", func(p *proposal, _ *Subject, _ *rand.Rand) {
			class := p.class.Spec.Workers.MachineDeployments[0].DeepCopy()
			class.Class = fmt.Sprint("worker-", p.i)
			p.class.Spec.Workers.MachineDeployments = append(p.class.Spec.Workers.MachineDeployments, *class)
		}},
	}
}

func (p *proposal) workers() *clusterv1.WorkersTopology { return p.cluster.Spec.Topology.Workers }

// deployment returns one of the MachineDeployments.
func (p *proposal) deployment(random *rand.Rand) *clusterv1.MachineDeploymentTopology {
	all := p.workers().MachineDeployments
	return &all[random.IntN(len(all))]
}

// patch sets an inline patch of the class, besides the one of an extension, which is the last. It removes all arguments, or replaces
// them by one: they are a map in v1beta1, and a list in v1beta2.
func (p *proposal) patch(apiVersion, kind, path string, match clusterv1.PatchSelectorMatch) {
	value := "{}"
	if p.i%2 == 0 {
		value = fmt.Sprintf(`{"argument-%d": "set"}`, p.i)
	}
	patch := clusterv1.ClusterClassPatch{Name: "inline-" + kind, Definitions: []clusterv1.PatchDefinition{{
		Selector:    clusterv1.PatchSelector{APIVersion: apiVersion, Kind: kind, MatchResources: match},
		JSONPatches: []clusterv1.JSONPatch{{Op: "add", Path: path, Value: &apiextensionsv1.JSON{Raw: []byte(value)}}},
	}}}
	patches := slices.DeleteFunc(p.class.Spec.Patches, func(old clusterv1.ClusterClassPatch) bool { return old.Name == patch.Name })
	p.class.Spec.Patches = append([]clusterv1.ClusterClassPatch{patch}, patches...)
}

// rotate creates a copy of the workers' machine template, and refers to it.
func (p *proposal) rotate(c *Subject, name string, capacity map[string]any) {
	ref := p.class.Spec.Workers.MachineDeployments[0].Template.Infrastructure.Ref
	old := &unstructured.Unstructured{}
	old.SetGroupVersionKind(ref.GroupVersionKind())
	testenv.Must(p.t, c.Client.Get(p.t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: name}, old))
	copied := &unstructured.Unstructured{Object: map[string]any{"spec": old.Object["spec"]}}
	copied.SetGroupVersionKind(ref.GroupVersionKind())
	copied.SetNamespace(c.Namespace)
	copied.SetName(fmt.Sprint("rotated-", p.i))
	if capacity != nil {
		testenv.Must(p.t, unstructured.SetNestedMap(copied.Object, capacity, "spec", "template", "spec", "capacity"))
	}
	p.templates = append(p.templates, copied)
	for i := range p.class.Spec.Workers.MachineDeployments {
		p.class.Spec.Workers.MachineDeployments[i].Template.Infrastructure.Ref.Name = copied.GetName()
	}
}

// plannedCluster creates a Cluster of a class with an external patch, and waits until it is ready.
func plannedCluster(t *testing.T, w *World) *Subject {
	t.Helper()
	g := newGreeter(t, "planned")
	g.serve(t)
	class := g.register(w)
	c := w.Subject(NewCluster("planned", class.Name).Workers(1).Variable("startupDuration", "0ms").Variable("greeting", "hello").Build())
	c.Eventually("the Cluster becomes ready", Ready, settled)
	return c
}

// propose returns a random proposal.
func (c *Subject) propose(random *rand.Rand, i int) *proposal {
	c.t.Helper()
	p := &proposal{t: c.t, i: i, liveCluster: c.Snapshot().Cluster, liveClass: &clusterv1.ClusterClass{}}
	p.cluster = p.liveCluster.DeepCopy()
	testenv.Must(c.t, c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: p.cluster.Spec.Topology.Class}, p.liveClass))
	p.class = p.liveClass.DeepCopy()
	all, n := clusterChanges(), 1+random.IntN(3)
	if random.IntN(3) == 0 {
		all, n = classChanges(), 1
	}
	for range n {
		one := all[random.IntN(len(all))]
		if !slices.Contains(p.names, one.name) {
			p.names = append(p.names, one.name)
			one.change(p, c, random)
		}
	}
	return p
}

// objects returns the proposal as files have it. What is not in a file stays: no MachinePools are an empty list.
func (p *proposal) objects() []*unstructured.Unstructured {
	cluster := file(p.t, p.cluster, "Cluster")
	if len(p.workers().MachinePools) == 0 {
		testenv.Must(p.t, unstructured.SetNestedSlice(cluster.Object, []any{}, "spec", "topology", "workers", "machinePools"))
	}
	return append(slices.Clone(p.templates), file(p.t, p.class, "ClusterClass"), cluster)
}

// file returns an object as a file has it.
func file(t testing.TB, o client.Object, kind string) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	testenv.Must(t, err)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind))
	u.SetManagedFields(nil)
	unstructured.RemoveNestedField(u.Object, "status")
	return u
}

// carryOut applies a proposal.
func (c *Subject) carryOut(p *proposal) {
	c.t.Helper()
	for _, template := range p.templates {
		testenv.Must(c.t, c.Client.Create(c.t.Context(), template))
	}
	testenv.Must(c.t, c.Client.Patch(c.t.Context(), p.class, client.MergeFrom(p.liveClass)))
	testenv.Must(c.t, c.Client.Patch(c.t.Context(), p.cluster, client.MergeFrom(p.liveCluster)))
}
