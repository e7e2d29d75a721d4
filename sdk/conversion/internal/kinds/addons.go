package kinds

import (
	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1alpha1 "sigs.k8s.io/cluster-api/api/ipam/v1alpha1"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// addonKinds returns the kinds for addons, IP addresses and runtime extensions.
func addonKinds() []*lossless.Kind {
	claim := at[ipamv1.IPAddressClaim](ipamv1.GroupVersion, "IPAddressClaim")
	address := at[ipamv1.IPAddress](ipamv1.GroupVersion, "IPAddress")
	oldest := similar(claim, at[ipamv1alpha1.IPAddressClaim](ipamv1alpha1.GroupVersion, "IPAddressClaim"))
	same := oldest.Up
	oldest.Fill = func(o object) {
		// Clients of v1alpha1 set a label instead of the name.
		name := lossless.At(o, "metadata", "labels")[clusterv1.ClusterNameLabel]
		if spec := lossless.At(o, "spec"); spec != nil && name != nil && spec["clusterName"] == nil {
			spec["clusterName"] = name
		}
	}
	oldest.Up = func(o object) {
		same(o)
		oldest.Fill(o)
	}
	return []*lossless.Kind{
		similar(at[addonsv1.ClusterResourceSet](addonsv1.GroupVersion, "ClusterResourceSet"),
			at[addonsv1beta1.ClusterResourceSet](addonsv1beta1.GroupVersion, "ClusterResourceSet")),
		similar(at[addonsv1.ClusterResourceSetBinding](addonsv1.GroupVersion, "ClusterResourceSetBinding"),
			at[addonsv1beta1.ClusterResourceSetBinding](addonsv1beta1.GroupVersion, "ClusterResourceSetBinding")),
		similar(claim, at[ipamv1beta1.IPAddressClaim](ipamv1beta1.GroupVersion, "IPAddressClaim")),
		oldest,
		similar(address, at[ipamv1beta1.IPAddress](ipamv1beta1.GroupVersion, "IPAddress")),
		similar(address, at[ipamv1alpha1.IPAddress](ipamv1alpha1.GroupVersion, "IPAddress")),
		similar(at[runtimev1.ExtensionConfig](runtimev1.GroupVersion, "ExtensionConfig"),
			at[runtimev1alpha1.ExtensionConfig](runtimev1alpha1.GroupVersion, "ExtensionConfig")),
	}
}

// similar is how a kind is converted that differs in its conditions only.
func similar(hub, spoke lossless.Version) *lossless.Kind {
	return &lossless.Kind{
		Hub: hub, Spoke: spoke,
		Up:       func(o object) { status{}.up(lossless.At(o, "status")) },
		Down:     func(o object, _ lossless.VersionOf) { status{}.down(lossless.At(o, "status")) },
		Verbatim: []string{"spec"},
		Grouping: statusGrouping(),
	}
}
