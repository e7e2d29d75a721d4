package topology

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/templates"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/classes"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestInAManager runs the controllers in a manager, so that only events trigger them.
func TestInAManager(t *testing.T) {
	w := newWorld(t)
	e := server.Start(t)
	e.Run(t, testenv.Scheme(t), w.namespace, func(mgr ctrl.Manager) error {
		return errors.Join(classes.Index(t.Context(), mgr.GetFieldIndexer()), Setup(t.Context(), mgr, Options{Concurrency: 2}), templates.Setup(t.Context(), mgr, templates.Options{Concurrency: 2}))
	})

	c := w.cluster("c")
	w.created(c)
	w.eventuallyHas(c, 8)
	w.eventually("the condition is True", func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil || !condition.IsTrue(c, clusterv1.TopologyReconciledV1Beta1Condition) {
			return fmt.Errorf("conditions %v: %w", c.GetV1Beta1Conditions(), err)
		}
		return nil
	})

	// A template that a user deletes is created again with the same name.
	template := w.one("InMemoryMachineTemplate", "c", c)
	testenv.Must(t, w.Delete(t.Context(), template))
	w.eventually("the template is created again", func() error {
		return w.Get(t.Context(), client.ObjectKeyFromObject(template), template)
	})

	// A template is kept until the last MachineSet that uses it is deleted.
	old := w.machineSet(c)
	testenv.Must(t, w.Create(t.Context(), old))
	w.eventually("the MachineSet has the finalizer", func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil || len(old.Finalizers) != 1 {
			return fmt.Errorf("finalizers %v: %w", old.Finalizers, err)
		}
		return nil
	})
	w.waitCached(old)
	w.retry(c, func() {
		c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"20s"`)}}
	})
	w.eventuallyHas(c, 9)
	testenv.Must(t, w.Delete(t.Context(), old))
	w.eventuallyHas(c, 8)

	// Removed workers are deleted with all of their objects.
	w.retry(c, func() { c.Spec.Topology.Workers = clusterv1.WorkersTopology{} })
	w.eventuallyHas(c, 4)
}

// machineSet returns a MachineSet with the current template of the Cluster's MachineDeployment.
func (w *world) machineSet(c *clusterv1.Cluster) *clusterv1.MachineSet {
	w.t.Helper()
	md := &clusterv1.MachineDeployment{}
	testenv.Must(w.t, w.Get(w.t.Context(), client.ObjectKeyFromObject(w.one("MachineDeployment", "c-md-0", c)), md))
	labels := map[string]string{clusterv1.MachineDeploymentNameLabel: md.Name}
	maps.Copy(labels, md.Labels)
	return &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: md.Name + "-old", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(md, clusterv1.GroupVersion.WithKind("MachineDeployment"))}},
		Spec: clusterv1.MachineSetSpec{ClusterName: c.Name, Selector: md.Spec.Selector, Template: md.Spec.Template},
	}
}

// retry changes a Cluster, and retries on conflicts with controllers.
func (w *world) retry(c *clusterv1.Cluster, change func()) {
	w.t.Helper()
	w.eventually("the Cluster is written", func() error {
		if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		change()
		return w.Update(w.t.Context(), c)
	})
}

func (w *world) eventuallyHas(c *clusterv1.Cluster, n int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d objects", n), func() error {
		if made := w.summary(c); len(made) != n {
			return fmt.Errorf("%d: %v", len(made), made)
		}
		return nil
	})
}
