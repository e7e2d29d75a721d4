package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// The API server converts objects of v1alpha1 for this webhook, because its matchPolicy is Equivalent.
// +kubebuilder:webhook:verbs=create;update,path=/validate-ipam-cluster-x-k8s-io-v1beta1-ipaddressclaim,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=ipam.cluster.x-k8s.io,resources=ipaddressclaims,versions=v1beta1;v1beta2,name=validation.ipaddressclaim.ipam.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

func claimValidator() webhooks.Validator[*ipamv1.IPAddressClaim] {
	return webhooks.Fixed[*ipamv1.IPAddressClaim]{
		Kind: ipamv1.GroupVersion.WithKind(ipamv1.IPAddressClaimKind), Instead: "create another IPAddressClaim",
		Spec: func(claim *ipamv1.IPAddressClaim) any { return claim.Spec },
		Wrong: func(_ context.Context, claim *ipamv1.IPAddressClaim) (field.ErrorList, error) {
			return validatePool(claim.Spec.PoolRef, field.NewPath("spec", "poolRef")), nil
		},
	}
}

// validatePool validates a reference to a pool.
func validatePool(ref ipamv1.IPPoolReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref.APIGroup == "" {
		errs = append(errs, field.Required(path.Child("apiGroup"), "must be the API group of the pool, such as ipam.cluster.x-k8s.io"))
	}
	if ref.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), "must be the kind of the pool, such as InClusterIPPool"))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "must be the name of the pool"))
	}
	return errs
}
