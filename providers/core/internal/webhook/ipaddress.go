package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// The API server converts objects of v1alpha1 for this webhook, because its matchPolicy is Equivalent.
// +kubebuilder:webhook:verbs=create;update,path=/validate-ipam-cluster-x-k8s-io-v1beta1-ipaddress,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=ipam.cluster.x-k8s.io,resources=ipaddresses,versions=v1beta1;v1beta2,name=validation.ipaddress.ipam.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// IPAddress validates IPAddresses.
type IPAddress struct {
	// Claims reads IPAddressClaims. A cache is sufficient: a claim that it does not have yet is allowed to be missing.
	Claims client.Reader
}

func (w IPAddress) validator() webhooks.Validator[*ipamv1.IPAddress] {
	return webhooks.Fixed[*ipamv1.IPAddress]{
		Kind: ipamv1.GroupVersion.WithKind(ipamv1.IPAddressKind), Instead: "delete the IPAddressClaim and create another one",
		Spec: func(address *ipamv1.IPAddress) any { return address.Spec },
		Wrong: func(ctx context.Context, address *ipamv1.IPAddress) (field.ErrorList, error) {
			mismatch, err := w.validateClaim(ctx, address)
			return append(validateAddress(&address.Spec, field.NewPath("spec")), mismatch...), err
		},
	}
}

func validateAddress(spec *ipamv1.IPAddressSpec, path *field.Path) field.ErrorList {
	errs := validatePool(spec.PoolRef, path.Child("poolRef"))
	if spec.ClaimRef.Name == "" {
		errs = append(errs, field.Required(path.Child("claimRef", "name"), "must be the name of the IPAddressClaim"))
	}
	address, err := parseAddress(spec.Address)
	if err != nil {
		errs = append(errs, field.Invalid(path.Child("address"), spec.Address, err.Error()))
	}
	// The limit of an address that is invalid is unknown.
	most, family := int32(128), "IPv6"
	if err == nil && address.Is4() {
		most, family = 32, "IPv4"
	}
	if prefix := ptr.Deref(spec.Prefix, 0); prefix < 0 || prefix > most {
		errs = append(errs,
			field.Invalid(path.Child("prefix"), prefix, fmt.Sprintf("must be between 0 and %d for an %s address", most, family)))
	}
	if spec.Gateway != "" {
		if _, err := parseAddress(spec.Gateway); err != nil {
			errs = append(errs, field.Invalid(path.Child("gateway"), spec.Gateway, err.Error()))
		}
	}
	return errs
}

// parseAddress parses an address without a zone, which has a meaning on one machine only.
func parseAddress(text string) (netip.Addr, error) {
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return address, errors.New("must be an IPv4 or IPv6 address, such as 10.0.0.5 or fd00::5")
	}
	return address, nil
}

// validateClaim validates that the address is from the pool of its claim, if the claim exists.
func (w IPAddress) validateClaim(ctx context.Context, address *ipamv1.IPAddress) (field.ErrorList, error) {
	claim := &ipamv1.IPAddressClaim{}
	key := client.ObjectKey{Namespace: address.Namespace, Name: address.Spec.ClaimRef.Name}
	if err := w.Claims.Get(ctx, key, claim); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading IPAddressClaim %s: %w", key, err)
	}
	if address.Spec.PoolRef == claim.Spec.PoolRef {
		return nil, nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "poolRef"), describePool(address.Spec.PoolRef),
		fmt.Sprintf("must be the pool of IPAddressClaim %s: %s", claim.Name, describePool(claim.Spec.PoolRef)))}, nil
}

func describePool(ref ipamv1.IPPoolReference) string {
	return fmt.Sprintf("%s.%s %s", ref.Kind, ref.APIGroup, ref.Name)
}
