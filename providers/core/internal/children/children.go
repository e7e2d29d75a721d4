// Package children deletes what a MachineDeployment or a MachineSet controls before its finalizer is removed, so that the object exists as
// long as its Machines do.
//
// Managers know these finalizers since Cluster API v1.8. New objects get them if v1beta2 is stored: as long as v1beta1 is, users may return
// to v1.7, where nothing would remove them. Existing ones keep what another version, such as v1.8, has set; `clusterctl takeover handback`
// removes it for v1.7.
package children

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Guard decides whether new objects of a kind get a finalizer. With the zero value, none does.
type Guard struct {
	boundary *apiversion.Boundary
	kind     schema.GroupKind
}

// NewGuard returns the guard of a kind of the core group. The client knows which version is stored.
func NewGuard(c client.Client, kind string) Guard {
	return Guard{apiversion.BoundaryOf(c), clusterv1.GroupVersion.WithKind(kind).GroupKind()}
}

// Adds reports whether new objects get the finalizer now, without a request.
func (g Guard) Adds(ctx context.Context) (bool, error) {
	if g.boundary == nil {
		return false, nil
	}
	stored, err := g.boundary.Stored(ctx, g.kind)
	return stored == clusterv1.GroupVersion.Version, err
}

// Selects reports whether a controller reconciles an object: one that is being deleted only while it has the finalizer. The garbage
// collector deletes the children of others.
func Selects(obj client.Object, finalizer string) bool {
	return obj.GetDeletionTimestamp().IsZero() || controllerutil.ContainsFinalizer(obj, finalizer)
}

// Delete deletes the children of an object that is being deleted, and waits until they are gone. If a user deletes the object with
// --cascade=orphan, it waits until the garbage collector has removed the owner references instead.
func Delete[T client.Object](
	ctx context.Context, clients step.Clients, owner client.Object, children []T, what string,
) (step.Result, error) {
	if controllerutil.ContainsFinalizer(owner, metav1.FinalizerOrphanDependents) {
		return step.Wait("the garbage collector to orphan the " + what + "s"), nil
	}
	var errs []error
	for _, child := range children {
		if !child.GetDeletionTimestamp().IsZero() {
			continue
		}
		if err := clients.DeleteAny(ctx, child); err != nil {
			errs = append(errs, fmt.Errorf("deleting %s %s: %w", what, child.GetName(), err))
		}
	}
	if len(children) > 0 {
		return step.Wait(fmt.Sprintf("%d %ss to be deleted", len(children), what)), errors.Join(errs...)
	}
	return step.Done(), nil
}
