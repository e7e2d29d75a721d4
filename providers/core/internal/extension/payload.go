package extension

import (
	"context"
	"fmt"
	"reflect"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooksv1beta2 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// payloads translate requests and responses for extensions that want v1beta2. Hooks, and how they are called, are the same.
type payloads struct {
	catalog    *runtimecatalog.Catalog
	conversion *conversion.Registry
}

func newPayloads() (*payloads, error) {
	p := &payloads{catalog: runtimecatalog.New(), conversion: conversion.New(nil)}
	return p, hooksv1beta2.AddToCatalog(p.catalog)
}

// Supported reports whether extensions can request a version of payloads. It is v1beta1 if they request none.
func Supported(version string) bool {
	return version == "" || version == clusterv1beta1.GroupVersion.Version || version == clusterv1beta2.GroupVersion.Version
}

// request returns a request with its Cluster in v1beta2. Other fields are the same.
func (p *payloads) request(
	ctx context.Context, hook runtimecatalog.GroupVersionHook, request runtimehooksv1.RequestObject,
) (runtimehooksv1.RequestObject, error) {
	object, err := p.catalog.NewRequest(hook)
	if err != nil {
		return nil, err
	}
	out, ok := object.(runtimehooksv1.RequestObject)
	if !ok {
		return nil, fmt.Errorf("%T is not a request", object)
	}
	from, to := reflect.ValueOf(request).Elem(), reflect.ValueOf(out).Elem()
	for i := range from.NumField() {
		target := to.FieldByName(from.Type().Field(i).Name)
		switch value := from.Field(i).Addr().Interface().(type) {
		case *clusterv1beta1.Cluster:
			cluster, err := p.cluster(ctx, value)
			if err != nil {
				return nil, fmt.Errorf("converting Cluster %s to v1beta2: %w", value.Name, err)
			}
			target.Set(reflect.ValueOf(*cluster))
		default:
			target.Set(from.Field(i))
		}
	}
	return out, nil
}

// cluster converts a Cluster. The result has nothing of v1beta1.
func (p *payloads) cluster(ctx context.Context, in *clusterv1beta1.Cluster) (*clusterv1beta2.Cluster, error) {
	out := &clusterv1beta2.Cluster{}
	if err := p.conversion.Convert(ctx, in, out); err != nil {
		return nil, err
	}
	out.SetGroupVersionKind(clusterv1beta2.GroupVersion.WithKind(clusterv1beta2.ClusterKind))
	delete(out.Annotations, conversion.OlderVersionAnnotation)
	return out, nil
}

// response returns a response to decode into, and what copies it into the one that was asked for. They are the same, unless the response
// has types of v1beta1.
func (p *payloads) response(ctx context.Context, into runtimehooksv1.ResponseObject) (runtimehooksv1.ResponseObject, func() error) {
	wanted, ok := into.(*runtimehooksv1.DiscoverVariablesResponse)
	if !ok {
		return into, func() error { return nil }
	}
	received := &hooksv1beta2.DiscoverVariablesResponse{}
	return received, func() error {
		class, old := &clusterv1beta2.ClusterClass{}, &clusterv1beta1.ClusterClass{}
		class.Spec.Variables = received.Variables
		if err := p.conversion.Convert(ctx, class, old); err != nil {
			return fmt.Errorf("converting the variables to v1beta1: %w", err)
		}
		*wanted = runtimehooksv1.DiscoverVariablesResponse{
			TypeMeta: received.TypeMeta, CommonResponse: received.CommonResponse, Variables: old.Spec.Variables,
		}
		return nil
	}
}
