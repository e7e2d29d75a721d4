// Package webhook validates InClusterIPPools and GlobalInClusterIPPools: their addresses must be valid, and addresses in use cannot be
// removed.
package webhook

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/space"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-ipam-cluster-x-k8s-io-v1alpha2-inclusterippool,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=ipam.cluster.x-k8s.io,resources=inclusterippools,versions=v1alpha2,name=validation.inclusterippool.ipam.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-ipam-cluster-x-k8s-io-v1alpha2-globalinclusterippool,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=ipam.cluster.x-k8s.io,resources=globalinclusterippools,versions=v1alpha2,name=validation.globalinclusterippool.ipam.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// namedAddresses is the number of addresses in an error.
const namedAddresses = 10

// Register adds the webhooks of both kinds to a manager. The indexes of poolref must exist.
func Register(mgr ctrl.Manager) error {
	namespaced := validator[*inclusterv1.InClusterIPPool]{kind: inclusterv1.InClusterIPPoolKind, cached: mgr.GetClient()}
	if err := webhooks.Register(mgr, &inclusterv1.InClusterIPPool{}, nil, namespaced); err != nil {
		return err
	}
	global := validator[*inclusterv1.GlobalInClusterIPPool]{kind: inclusterv1.GlobalInClusterIPPoolKind, cached: mgr.GetClient()}
	return webhooks.Register(mgr, &inclusterv1.GlobalInClusterIPPool{}, nil, global)
}

type validator[T poolref.Pool] struct {
	kind string
	// cached reads IPAddresses. Those that it does not have yet are counted as out of range later.
	cached client.Reader
}

// ValidateCreate implements Validator.
func (v validator[T]) ValidateCreate(_ context.Context, pool T) (admission.Warnings, error) {
	_, errs := space.Parse(pool.PoolSpec(), field.NewPath("spec"))
	return nil, v.invalid(pool, errs)
}

// ValidateUpdate implements Validator. A spec that does not change is not validated again, so that the finalizer of a pool that is
// invalid can be removed.
func (v validator[T]) ValidateUpdate(ctx context.Context, old, pool T) (admission.Warnings, error) {
	if equality.Semantic.DeepEqual(old.PoolSpec(), pool.PoolSpec()) {
		return nil, nil
	}
	after, errs := space.Parse(pool.PoolSpec(), field.NewPath("spec"))
	if len(errs) > 0 {
		return nil, v.invalid(pool, errs)
	}
	before, errs := space.Parse(old.PoolSpec(), field.NewPath("spec"))
	if len(errs) > 0 {
		return nil, nil // No address was allocated.
	}
	lost, err := v.lost(ctx, old, before, after)
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	return nil, v.invalid(pool, field.ErrorList{field.Forbidden(field.NewPath("spec"),
		"addresses in use cannot be removed: "+list(lost)+": delete their IPAddressClaims first")})
}

// ValidateDelete implements Validator. The finalizer delays the deletion of pools in use.
func (validator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

func (v validator[T]) invalid(pool T, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(inclusterv1.GroupVersion.WithKind(v.kind).GroupKind(), pool.GetName(), errs)
}

// lost returns the addresses in use that only the old spec has, sorted.
func (v validator[T]) lost(ctx context.Context, old T, before, after space.Space) ([]netip.Addr, error) {
	allocated, err := poolref.Addresses(ctx, v.cached, poolref.Key{Kind: v.kind, NamespacedName: client.ObjectKeyFromObject(old)})
	if err != nil {
		return nil, err
	}
	var lost []netip.Addr
	use := func(text string) {
		if a, err := netip.ParseAddr(text); err == nil && before.Contains(a) && !after.Contains(a) {
			lost = append(lost, a)
		}
	}
	for i := range allocated {
		use(allocated[i].Spec.Address)
	}
	for _, r := range ptr.Deref(old.PoolStatus().Reservations, inclusterv1.Reservations{}).Items {
		use(r.Address)
	}
	slices.SortFunc(lost, netip.Addr.Compare)
	return slices.Compact(lost), nil
}

func list(addresses []netip.Addr) string {
	var texts []string
	for _, a := range addresses[:min(namedAddresses, len(addresses))] {
		texts = append(texts, a.String())
	}
	if len(addresses) > namedAddresses {
		texts = append(texts, fmt.Sprintf("and %d more", len(addresses)-namedAddresses))
	}
	return strings.Join(texts, ", ")
}
