package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// frozen is a cache whose watches of some kinds are stuck: it returns old Clusters and ClusterClasses, and no MachineSets.
type frozen struct {
	client.Reader
	cluster *clusterv1.Cluster
	class   *clusterv1.ClusterClass
	noSets  bool
}

func (f *frozen) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	switch into := into.(type) {
	case *clusterv1.Cluster:
		if f.cluster != nil && key == client.ObjectKeyFromObject(f.cluster) {
			f.cluster.DeepCopyInto(into)
			return nil
		}
	case *clusterv1.ClusterClass:
		if f.class != nil && key == client.ObjectKeyFromObject(f.class) {
			f.class.DeepCopyInto(into)
			return nil
		}
	}
	return f.Reader.Get(ctx, key, into, opts...)
}

func (f *frozen) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if _, ok := into.(*clusterv1.MachineSetList); ok && f.noSets {
		return nil
	}
	return f.Reader.List(ctx, into, opts...)
}

// staleClient is a client that reads from a frozen cache.
type staleClient struct {
	client.Client
	from *frozen
}

func (t staleClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return t.from.Get(ctx, key, into, opts...)
}

func (t staleClient) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	return t.from.List(ctx, into, opts...)
}

// stale returns another leader with a frozen cache.
func (w *world) stale(f *frozen) *world {
	f.Reader = w.cached
	other := *w
	clients := w.runner.Clients
	clients.Client = staleClient{Client: clients.Client, from: f}
	other.control = newController(clients, f, plan.NewClasses(nil))
	other.runner = other.control.declared().Runner(other.control.Clients)
	return &other
}

func TestALeaderWithAStaleCacheRevertsNothing(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	w.provisioned(c)
	oldCluster, oldClass := c.DeepCopy(), &clusterv1.ClusterClass{}
	if err := w.Get(t.Context(), w.key("simple"), oldClass); err != nil {
		t.Fatal(err)
	}
	two := int32(2)
	changed(w, c, func(c *clusterv1.Cluster) {
		c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"20s"`)}}
		workers := c.Spec.Topology.Workers
		workers.MachineDeployments[0].Replicas = &two
		workers.MachineDeployments = append(workers.MachineDeployments, clusterv1.MachineDeploymentTopology{Class: "worker", Name: "md-1", Replicas: &two})
	})
	w.reconciled(c)
	class := oldClass.DeepCopy()
	class.Spec.ControlPlane.Metadata.Labels["of"] = "newer-class"
	if err := w.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	w.eventually("the class is applied", func() error {
		if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
			return err
		}
		if got := w.one("KubeadmControlPlane", "c", c).GetLabels()["of"]; got != "newer-class" {
			return fmt.Errorf("label of = %q", got)
		}
		return nil
	})
	w.expectCached(c, "the first leader reconciled")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	w.waitCached(c)
	made := w.revisions(c)
	for _, tc := range []struct {
		reason string
		cache  *frozen
	}{
		{"a stale Cluster", &frozen{cluster: oldCluster}},
		{"a stale ClusterClass", &frozen{class: oldClass}},
		{"both", &frozen{cluster: oldCluster, class: oldClass}},
	} {
		other := w.stale(tc.cache)
		w.requests.take()
		result, err := other.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		if err != nil || result.RequeueAfter == 0 || result.RequeueAfter > step.CacheBackstop {
			t.Errorf("%s: result %v, %v, want a requeue", tc.reason, result, err)
		}
		w.expect(tc.reason+": writes", false, slices.ContainsFunc(normalized(w.requests.take()), func(r string) bool { return !strings.HasPrefix(r, "DRY-RUN ") }))
		w.expect(tc.reason+": objects", made, w.revisions(c))
		tc.cache.cluster, tc.cache.class = nil, nil
		w.expect(tc.reason+": writes with an up-to-date cache", []string(nil), normalized(other.reconciled(c)))
		if !condition.IsTrue(c, clusterv1.TopologyReconciledV1Beta1Condition) {
			t.Errorf("%s: conditions = %v", tc.reason, c.GetV1Beta1Conditions())
		}
	}
}

func TestALeaderWithAStaleCacheCreatesNoWorkersAgain(t *testing.T) {
	for reason, change := range map[string]func(*world, *clusterv1.Cluster){
		"the Cluster is being deleted, and its workers are deleted": func(w *world, c *clusterv1.Cluster) {
			testenv.Must(w.t, w.Delete(w.t.Context(), c))
		},
		"the workers were removed from the topology": func(w *world, c *clusterv1.Cluster) {
			changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Topology.Workers = clusterv1.WorkersTopology{} })
		},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			c := w.cluster("c")
			w.created(c)
			w.reconciled(c)
			w.provisioned(c)
			before := c.DeepCopy()
			change(w, c)
			workers := w.one("MachineDeployment", "c-md-0", c)
			changed(w, workers, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
			w.removed(workers)
			w.removed(w.one("MachineHealthCheck", "c-md-0", c)) // The garbage collector would delete it.
			w.expectCached(c, "the deletion")
			other := w.stale(&frozen{cluster: before})
			w.requests.take()
			if _, err := other.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
				t.Fatal(err)
			}
			w.expect("writes", []string(nil), normalized(w.requests.take()))
		})
	}
}

func TestALeaderWithAStaleCacheLeavesPausedClustersUnchanged(t *testing.T) {
	for reason, pause := range map[string]func(*clusterv1.Cluster){
		"paused by spec.paused": object.Paused,
		"paused by annotation":  object.PausedByAnnotation[*clusterv1.Cluster],
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			c := w.cluster("c")
			w.created(c)
			w.reconciled(c)
			w.provisioned(c)
			changed(w, c, func(c *clusterv1.Cluster) {
				c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"20s"`)}}
			})
			before := c.DeepCopy()
			changed(w, c, pause)
			other := w.stale(&frozen{cluster: before})
			w.requests.take()
			if _, err := other.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
				t.Fatal(err)
			}
			writes := slices.DeleteFunc(normalized(w.requests.take()), func(r string) bool { return strings.HasPrefix(r, "DRY-RUN ") })
			w.expect("writes", []string{}, writes)
		})
	}
}

func TestReferencesSetByAnotherClientAreNotReplaced(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	c.Finalizers = []string{clusterv1.ClusterFinalizer}
	w.created(c)
	before := c.DeepCopy()
	w.reconciled(c) // as another leader; to the next one the names could be random
	other := w.stale(&frozen{cluster: before})
	w.requests.take()
	if _, err := other.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
		t.Fatal(err)
	}
	w.expect("writes", []string(nil), normalized(w.requests.take()))
}

func TestTemplatesOfUncachedMachineSetsAreKept(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	set := w.machineSet(c)
	w.created(set)
	changed(w, c, func(c *clusterv1.Cluster) {
		c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"20s"`)}}
	})
	other := w.stale(&frozen{noSets: true})
	deletes := func(r string) bool { return strings.HasPrefix(r, "DELETE ") }
	for range 3 { // it rechecks as long as the MachineSet exists
		w.expect("deletions", false, slices.ContainsFunc(other.reconciled(c), deletes))
		w.expectCached(c, "the rotation")
	}
	w.eventually("the template is deleted after its MachineSet", func() error {
		if err := w.Delete(t.Context(), set); client.IgnoreNotFound(err) != nil {
			return err
		}
		if _, err := other.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
			return err
		}
		if made := w.summary(c); len(made) != 8 {
			return errors.New(strings.Join(made, "\n"))
		}
		return nil
	})
}
