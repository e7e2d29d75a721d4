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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// dying is a client whose process dies at some write: that write and all after it fail.
type dying struct {
	client.Client
	left int
}

var errDead = errors.New("the process is dead")

func (d *dying) write() error {
	if d.left--; d.left < 0 {
		return errDead
	}
	return nil
}

func (d *dying) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := d.write(); err != nil {
		return err
	}
	return d.Client.Apply(ctx, o, opts...)
}

func (d *dying) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	if err := d.write(); err != nil {
		return err
	}
	return d.Client.Delete(ctx, o, opts...)
}

func (d *dying) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if err := d.write(); err != nil {
		return err
	}
	return d.Client.Patch(ctx, o, p, opts...)
}

func TestDyingAtAnyWrite(t *testing.T) {
	w := newWorld(t)
	whole := w.cluster("c")
	w.created(whole)
	w.reconciled(whole)
	want := sortedAsMade(w.made(whole))
	w.control.clean.Clear()
	for writes := range 9 {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			w := *w
			w.t = t
			c := w.cluster(fmt.Sprintf("c%d", writes))
			w.created(c)
			w.serially(writes, c)
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
				t.Fatal(err)
			}
			w.settle(c)
			for _, u := range w.objects(c) {
				if c.Spec.ControlPlaneRef == nil || c.Spec.InfrastructureRef == nil {
					t.Errorf("%s exists before the Cluster refers to anything", describe(&u))
				}
				if len(u.GetOwnerReferences()) != 1 {
					t.Errorf("%s has no owner that deletes it", describe(&u))
				}
			}
			w.eventually("all is there", func() error {
				if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
					return err
				}
				got := strings.ReplaceAll(strings.Join(sortedAsMade(w.made(c)), "\n"), c.Name, "c")
				if diff := cmp.Diff(strings.Join(want, "\n"), got); diff != "" {
					return errors.New(diff)
				}
				return nil
			})
		})
	}
}

// serially reconciles with a process that dies after this many writes, which are made one at a time.
func (w *world) serially(writes int, c *clusterv1.Cluster) {
	w.t.Helper()
	outside := w.runner.Outside
	outside.Client = &dying{Client: outside.Client, left: writes}
	dead := newController(outside, w.cached, NewClasses(nil))
	dead.serial = true
	if _, err := dead.declared().Runner(dead.Outside).Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err == nil {
		w.t.Errorf("the process survived %d writes", writes)
	}
}

func TestForeignObjectsAreNotTakenOver(t *testing.T) {
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
	w.settle(typed)
	_, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
	if err == nil || !strings.Contains(err.Error(), "is not part of the topology") {
		t.Errorf("err = %v", err)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	got := condition.Get(c, clusterv1.TopologyReconciledCondition)
	if got == nil || got.Reason != clusterv1.TopologyReconcileFailedReason || got.Severity != clusterv1.ConditionSeverityError {
		t.Errorf("condition = %v", got)
	}
}

func TestWhatOthersMayChange(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	infra := w.one("InMemoryCluster", "c", c)
	changed(w, infra, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedMap(u.Object, map[string]any{"host": "example.com", "port": int64(6443)}, "spec", "controlPlaneEndpoint")
	})
	w.expect("the endpoint is the provider's", []string(nil), w.reconciled(c))
	cp := w.one("KubeadmControlPlane", "c", c)
	changed(w, cp, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(3), "spec", "replicas")
		_ = unstructured.SetNestedField(u.Object, "mine", "metadata", "annotations", "note")
	})
	w.expect("what the topology says is put back", []string{"PATCH kubeadmcontrolplanes/c-XXXXX"}, normal(w.reconciled(c)))
	cp = w.one("KubeadmControlPlane", "c", c)
	w.expect("what it does not say stays", []any{int64(1), "mine"}, []any{fieldOf(cp, "spec.replicas"), fieldOf(cp, "metadata.annotations.note")})
}

func TestPausedAndDeleted(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	c.Spec.Paused = true
	w.created(c)
	w.expect("a paused Cluster", []string(nil), w.reconciled(c))
	changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Paused = false })
	w.reconciled(c)
	if err := w.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	w.settle(c)
	w.expect("a Cluster that is being deleted only says so", []string{"PATCH clusters/c/status"}, normal(w.reconciled(c)))
	w.expect("its reason", clusterv1.DeletedReason, condition.Get(c, clusterv1.TopologyReconciledCondition).Reason)
}

func TestDyingInARotation(t *testing.T) {
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
			w.serially(writes, c)
			w.control.clean.Clear() // as in a new process
			w.eventually("one template is left", func() error {
				if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
					return err
				}
				if made := w.made(c); len(made) != 8 {
					return fmt.Errorf("%d: %v", len(made), made)
				}
				md, template := w.one("MachineDeployment", c.Name+"-md-0", c), w.one("InMemoryMachineTemplate", c.Name+"-md-0", c)
				if fieldOf(md, "spec.template.spec.infrastructureRef.name") != template.GetName() {
					return errors.New("it is the wrong one")
				}
				return nil
			})
		})
	}
}

// A MachineSet that goes during a rotation, when its MachineDeployment still names the old template, cannot take that
// template with it.
func TestTemplatesOfMachineSetsThatGo(t *testing.T) {
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
	w.expect("objects while a MachineSet uses the old template", 9, len(w.made(c)))

	if err := w.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	w.eventually("the cache shows that the MachineSet is going", func() error {
		if err := w.cached.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil || old.DeletionTimestamp.IsZero() {
			return fmt.Errorf("deleted at %v: %w", old.DeletionTimestamp, err)
		}
		return nil
	})
	result, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
	if err != nil || result.RequeueAfter != recheckInterval {
		t.Errorf("requeued after %s, %v, want %s", result.RequeueAfter, err, recheckInterval)
	}
	w.expect("objects while the MachineSet is going", 9, len(w.made(c)))

	old.Finalizers = nil
	if err := w.Update(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	w.eventually("the template follows", func() error {
		if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
			return err
		}
		if made := w.made(c); len(made) != 8 {
			return fmt.Errorf("%d: %v", len(made), made)
		}
		return nil
	})
}
