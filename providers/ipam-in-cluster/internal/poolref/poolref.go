// Package poolref finds the pool of a claim or an address, and the claims and addresses of a pool, for both kinds of pools.
//
// What is done with them does not belong here.
package poolref

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Field is the name of the indexes of IPAddressClaims and IPAddresses by their pool.
const Field = "spec.poolRef"

// Pool is a pool of either kind.
type Pool interface {
	step.Object
	PoolSpec() *inclusterv1.InClusterIPPoolSpec
	PoolStatus() *inclusterv1.InClusterIPPoolStatus
}

// Key identifies a pool. The namespace of a GlobalInClusterIPPool is empty.
type Key struct {
	Kind string
	types.NamespacedName
}

// String returns the kind and the name, for messages.
func (k Key) String() string { return k.Kind + " " + k.Name }

// index returns the value in the indexes.
func (k Key) index() string { return k.Kind + "/" + k.NamespacedName.String() }

// Reference returns a reference to the pool.
func (k Key) Reference() ipamv1.IPPoolReference {
	return ipamv1.IPPoolReference{APIGroup: inclusterv1.GroupVersion.Group, Kind: k.Kind, Name: k.Name}
}

// Of returns the pool that an object in a namespace references. ok is false for pools of other providers.
func Of(namespace string, ref ipamv1.IPPoolReference) (key Key, ok bool) {
	if ref.APIGroup != inclusterv1.GroupVersion.Group {
		return Key{}, false
	}
	switch ref.Kind {
	case inclusterv1.InClusterIPPoolKind:
		return Key{ref.Kind, types.NamespacedName{Namespace: namespace, Name: ref.Name}}, true
	case inclusterv1.GlobalInClusterIPPoolKind:
		return Key{ref.Kind, types.NamespacedName{Name: ref.Name}}, true
	}
	return Key{}, false
}

// OfObject is Of for an IPAddressClaim or an IPAddress.
func OfObject(obj client.Object) (key Key, ok bool) {
	switch o := obj.(type) {
	case *ipamv1.IPAddressClaim:
		return Of(o.Namespace, o.Spec.PoolRef)
	case *ipamv1.IPAddress:
		return Of(o.Namespace, o.Spec.PoolRef)
	}
	return Key{}, false
}

// Indexes returns the indexes that Claims and Addresses list by.
func Indexes() []step.Index {
	values := func(obj client.Object) []string {
		if key, ok := OfObject(obj); ok {
			return []string{key.index()}
		}
		return nil
	}
	return []step.Index{
		{Object: &ipamv1.IPAddressClaim{}, Field: Field, Values: values},
		{Object: &ipamv1.IPAddress{}, Field: Field, Values: values},
	}
}

// Get reads a pool. It returns nil without an error if it does not exist.
func Get(ctx context.Context, from client.Reader, key Key) (Pool, error) {
	var pool Pool = &inclusterv1.InClusterIPPool{}
	if key.Kind == inclusterv1.GlobalInClusterIPPoolKind {
		pool = &inclusterv1.GlobalInClusterIPPool{}
	}
	err := from.Get(ctx, key.NamespacedName, pool)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return pool, nil
}

// Claims lists the claims of a pool in a cache. They must not be changed.
func Claims(ctx context.Context, cached client.Reader, key Key) ([]ipamv1.IPAddressClaim, error) {
	list := &ipamv1.IPAddressClaimList{}
	if err := cached.List(ctx, list, inCache(key)...); err != nil {
		return nil, fmt.Errorf("listing the IPAddressClaims of %s: %w", key, err)
	}
	return list.Items, nil
}

// Addresses lists the addresses of a pool in a cache. They must not be changed.
func Addresses(ctx context.Context, cached client.Reader, key Key) ([]ipamv1.IPAddress, error) {
	list := &ipamv1.IPAddressList{}
	if err := cached.List(ctx, list, inCache(key)...); err != nil {
		return nil, fmt.Errorf("listing the IPAddresses of %s: %w", key, err)
	}
	return list.Items, nil
}

func inCache(key Key) []client.ListOption {
	return []client.ListOption{client.InNamespace(key.Namespace), client.MatchingFields{Field: key.index()}, client.UnsafeDisableDeepCopy}
}

// LiveAddresses lists the addresses of a pool in the API server, with one request for all IPAddresses of the namespace, or of the
// cluster if the pool is global.
func LiveAddresses(ctx context.Context, live client.Reader, key Key) ([]ipamv1.IPAddress, error) {
	list := &ipamv1.IPAddressList{}
	if err := live.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("listing IPAddresses: %w", err)
	}
	var all []ipamv1.IPAddress
	for i := range list.Items {
		if of, ok := OfObject(&list.Items[i]); ok && of == key {
			all = append(all, list.Items[i])
		}
	}
	return all, nil
}
