package topology

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestDeletionWithoutClass deletes a Cluster whose class was deleted before: the hook is called, and the Cluster controller can go on.
func TestDeletionWithoutClass(t *testing.T) {
	w, e, _ := hooked(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	e.take()
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "simple"}}
	testenv.Must(t, w.Delete(t.Context(), class))
	w.eventually("the class is deleted", func() error {
		err := w.cached.Get(t.Context(), client.ObjectKeyFromObject(class), class)
		if err == nil {
			return errors.New("it is in the cache")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	testenv.Must(t, w.Delete(t.Context(), c))
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(c), c))
	w.waitCached(c)
	w.reconciled(c)
	w.expect("the hook", []string{"BeforeClusterDelete"}, e.take())
	_, allowed := c.Annotations[runtimev1.OkToDeleteAnnotation]
	w.expect("the deletion goes on", true, allowed)
	reconciled := condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition)
	w.expect("the condition", clusterv1.DeletedV1Beta1Reason, reconciled.Reason+reconciled.Message)
}
