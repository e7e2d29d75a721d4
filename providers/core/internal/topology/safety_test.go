package topology

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// crashing is a client whose process crashes: all writes after the first few fail.
type crashing struct {
	client.Client
	left int
}

var errCrashed = errors.New("the process has crashed")

func (d *crashing) write() error {
	if d.left--; d.left < 0 {
		return errCrashed
	}
	return nil
}

func (d *crashing) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := d.write(); err != nil {
		return err
	}
	return d.Client.Apply(ctx, o, opts...)
}

func (d *crashing) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	if err := d.write(); err != nil {
		return err
	}
	return d.Client.Delete(ctx, o, opts...)
}

func (d *crashing) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if err := d.write(); err != nil {
		return err
	}
	return d.Client.Patch(ctx, o, p, opts...)
}

func TestCrashAtAnyWrite(t *testing.T) {
	w := newWorld(t)
	whole := w.cluster("c")
	w.created(whole)
	w.reconciled(whole)
	want := sortedByKind(w.summary(whole))
	w.control.clean.Clear()
	for writes := range 9 {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			w := *w
			w.t = t
			c := w.cluster(fmt.Sprintf("c%d", writes))
			w.created(c)
			w.reconcileUntilCrash(writes, c)
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
				t.Fatal(err)
			}
			w.waitCached(c)
			for _, u := range w.objects(c) {
				if !c.Spec.ControlPlaneRef.IsDefined() || !c.Spec.InfrastructureRef.IsDefined() {
					t.Errorf("%s exists before the Cluster has references", plan.Describe(&u))
				}
				if len(u.GetOwnerReferences()) != 1 {
					t.Errorf("%s has no owner", plan.Describe(&u))
				}
			}
			w.eventually("all objects exist", func() error {
				if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
					return err
				}
				got := strings.ReplaceAll(strings.Join(sortedByKind(w.summary(c)), "\n"), c.Name, "c")
				if diff := cmp.Diff(strings.Join(want, "\n"), got); diff != "" {
					return errors.New(diff)
				}
				return nil
			})
		})
	}
}

// reconcileUntilCrash reconciles in a process that crashes after this many writes, which are sent one at a time.
func (w *world) reconcileUntilCrash(writes int, c *clusterv1.Cluster) {
	w.t.Helper()
	clients := w.runner.Clients
	clients.Client = &crashing{Client: clients.Client, left: writes}
	crashed := newController(clients, w.cached, plan.NewClasses(nil))
	crashed.concurrently = func(functions []func()) {
		for _, f := range functions {
			f()
		}
	}
	if _, err := crashed.declared().Runner(crashed.Clients).Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err == nil {
		w.t.Errorf("the process survived %d writes", writes)
	}
}

func TestUnownedObjectsAreNotTakenOver(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	w.provisioned(c)
	md := w.one("MachineDeployment", "c-md-0", c)
	labels := md.GetLabels()
	delete(labels, clusterv1.ClusterTopologyOwnedLabel)
	md.SetLabels(labels)
	if err := w.Update(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	typed := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: md.GetNamespace(), Name: md.GetName(), ResourceVersion: md.GetResourceVersion()}}
	w.waitCached(typed)
	_, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
	if err == nil || !strings.Contains(err.Error(), "is not part of the topology") {
		t.Errorf("err = %v", err)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	got := condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition)
	if got == nil || got.Reason != clusterv1.TopologyReconcileFailedV1Beta1Reason || got.Severity != clusterv1.ConditionSeverityError {
		t.Errorf("condition = %v", got)
	}
}

func TestChangesByOthers(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	infra := w.one("InMemoryCluster", "c", c)
	changed(w, infra, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedMap(u.Object, map[string]any{"host": "example.com", "port": int64(6443)}, "spec", "controlPlaneEndpoint")
	})
	w.expect("the endpoint belongs to the provider", []string(nil), w.reconciled(c))
	cp := w.one("KubeadmControlPlane", "c", c)
	changed(w, cp, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(3), "spec", "replicas")
		_ = unstructured.SetNestedField(u.Object, "mine", "metadata", "annotations", "note")
	})
	w.expect("fields of the topology are reverted", []string{"PATCH kubeadmcontrolplanes/c-XXXXX"}, normalized(w.reconciled(c)))
	cp = w.one("KubeadmControlPlane", "c", c)
	w.expect("other fields are kept", []any{int64(1), "mine"}, []any{fieldOf(cp, "spec.replicas"), fieldOf(cp, "metadata.annotations.note")})
}

func TestPausedAndDeleted(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	c.Spec.Paused = ptr.To(true)
	w.created(c)
	w.expect("a paused Cluster", []string(nil), w.reconciled(c))
	changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(false) })
	w.reconciled(c)
	if err := w.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	w.waitCached(c)
	w.expect("only the condition of a Cluster that is being deleted is written", []string{"PATCH clusters/c/status"}, normalized(w.reconciled(c)))
	w.expect("the reason", clusterv1.DeletedV1Beta1Reason, condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition).Reason)
}

func TestCrashDuringARotation(t *testing.T) {
	w := newWorld(t)
	for writes := range 3 {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			w := *w
			w.t = t
			c := w.cluster(fmt.Sprintf("c%d", writes))
			w.created(c)
			w.reconciled(c)
			changed(&w, c, func(c *clusterv1.Cluster) {
				c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"20s"`)}}
			})
			w.reconcileUntilCrash(writes, c)
			w.control.clean.Clear() // as in a new process
			w.eventually("the unused template is deleted", func() error {
				if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
					return err
				}
				if made := w.summary(c); len(made) != 8 {
					return fmt.Errorf("%d: %v", len(made), made)
				}
				md, template := w.one("MachineDeployment", c.Name+"-md-0", c), w.one("InMemoryMachineTemplate", c.Name+"-md-0", c)
				if fieldOf(md, "spec.template.spec.infrastructureRef.name") != template.GetName() {
					return errors.New("the wrong template was deleted")
				}
				return nil
			})
		})
	}
}

// The template of a MachineSet that is deleted during a rotation, while its MachineDeployment still refers to the template, is
// not deleted with the MachineSet.
func TestTemplatesOfDeletedMachineSets(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	old := w.machineSet(c)
	old.Finalizers = []string{clusterv1.MachineSetTopologyFinalizer}
	w.created(old)
	changed(w, c, func(c *clusterv1.Cluster) {
		c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"20s"`)}}
	})
	w.reconciled(c)
	w.expect("objects while a MachineSet uses the old template", 9, len(w.summary(c)))

	if err := w.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	w.eventually("the cache has the deletion timestamp of the MachineSet", func() error {
		if err := w.cached.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil || old.DeletionTimestamp.IsZero() {
			return fmt.Errorf("deleted at %v: %w", old.DeletionTimestamp, err)
		}
		return nil
	})
	result, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
	if err != nil || result.RequeueAfter == 0 || result.RequeueAfter > recheckInterval { // Earlier, if a write is held back.
		t.Errorf("requeued after %s, %v, want at most %s", result.RequeueAfter, err, recheckInterval)
	}
	w.expect("objects while the MachineSet is being deleted", 9, len(w.summary(c)))

	old.Finalizers = nil
	if err := w.Update(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	w.eventually("the template is deleted, too", func() error {
		if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
			return err
		}
		if made := w.summary(c); len(made) != 8 {
			return fmt.Errorf("%d: %v", len(made), made)
		}
		return nil
	})
}
