// Package providerobject has what the kinds of provider objects have in common. What an object means for a management cluster does not
// belong here.
package providerobject

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Object is an object of any kind.
type Object interface {
	step.Object

	// GetSpec returns the spec, to read and to change.
	GetSpec() *operatorv1.ProviderSpec
	// GetStatus returns the status, to read and to change.
	GetStatus() *operatorv1.ProviderStatus
}

// Kind is a kind of provider objects, one per type of provider. The name of the kind is that of the type.
type Kind struct {
	Type clusterctlv1.ProviderType
	// New returns an empty object.
	New func() Object
	// NewList returns an empty list.
	NewList func() client.ObjectList
}

// Kinds returns all kinds, in install order.
func Kinds() []Kind {
	return []Kind{
		{clusterctlv1.CoreProviderType, func() Object { return &operatorv1.CoreProvider{} },
			func() client.ObjectList { return &operatorv1.CoreProviderList{} }},
		{clusterctlv1.BootstrapProviderType, func() Object { return &operatorv1.BootstrapProvider{} },
			func() client.ObjectList { return &operatorv1.BootstrapProviderList{} }},
		{clusterctlv1.ControlPlaneProviderType, func() Object { return &operatorv1.ControlPlaneProvider{} },
			func() client.ObjectList { return &operatorv1.ControlPlaneProviderList{} }},
		{clusterctlv1.InfrastructureProviderType, func() Object { return &operatorv1.InfrastructureProvider{} },
			func() client.ObjectList { return &operatorv1.InfrastructureProviderList{} }},
		{clusterctlv1.IPAMProviderType, func() Object { return &operatorv1.IPAMProvider{} },
			func() client.ObjectList { return &operatorv1.IPAMProviderList{} }},
		{clusterctlv1.RuntimeExtensionProviderType, func() Object { return &operatorv1.RuntimeExtensionProvider{} },
			func() client.ObjectList { return &operatorv1.RuntimeExtensionProviderList{} }},
		{clusterctlv1.AddonProviderType, func() Object { return &operatorv1.AddonProvider{} },
			func() client.ObjectList { return &operatorv1.AddonProviderList{} }},
	}
}

// Provider is a provider object with its type.
type Provider struct {
	Type clusterctlv1.ProviderType
	Object
}

// Identity returns the provider, without the URL of its releases.
func (p Provider) Identity() packages.Provider {
	return packages.Provider{Name: p.GetName(), Type: p.Type}
}

// String returns kind and key, for messages.
func (p Provider) String() string {
	return fmt.Sprintf("%s %s/%s", p.Type, p.GetNamespace(), p.GetName())
}

// List returns all provider objects, in install order.
func List(ctx context.Context, c client.Reader) ([]Provider, error) {
	var all []Provider
	for _, k := range Kinds() {
		list := k.NewList()
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing %ss: %w", k.Type, err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			object, ok := o.(Object)
			if !ok {
				return fmt.Errorf("%T is not a provider object", o)
			}
			all = append(all, Provider{Type: k.Type, Object: object})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
