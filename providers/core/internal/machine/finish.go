package machine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// cacheBackstop bounds the wait for the event of an object that is not in the cache yet.
const cacheBackstop = 5 * time.Second

// finish removes the finalizer. It waits if the API server has an object of the Machine that is not in the cache yet: it may
// have been created right before the Machine was deleted.
func (c *Controller) finish(ctx context.Context, s *scope) (step.Result, error) {
	live := external.Reader{Client: c.Live, Versions: c.follow.Reader.Versions}
	for _, ref := range reference.OfMachine(&s.machine.Spec) {
		obj, err := live.Get(ctx, ref, s.machine.Namespace)
		if gone, err := contract.KindGone(ctx, c.Live, client.IgnoreNotFound(err)); err != nil {
			return step.Done(), err
		} else if gone {
			continue
		}
		if err == nil && !controlledByOther(obj, s.machine) {
			return step.WaitAtMost(cacheBackstop, ref.Kind+" "+ref.Name+" to appear in the cache and to be deleted"), nil
		}
	}
	c.attempts.Delete(s.machine.UID)
	controllerutil.RemoveFinalizer(s.machine, clusterv1.MachineFinalizer)
	return step.Done(), nil
}

// controlledByOther reports whether another Machine controls an object.
func controlledByOther(obj metav1.Object, m *clusterv1.Machine) bool {
	controller := metav1.GetControllerOf(obj)
	return controller != nil && controller.Kind == clusterv1.MachineKind && controller.UID != m.UID
}
