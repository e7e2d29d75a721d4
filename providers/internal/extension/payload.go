package extension

import (
	"context"
	"fmt"
	"reflect"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	hooksv1beta1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// payloads translate requests and responses, which are in v1beta2, for extensions that want v1beta1. Hooks, and how they are called, are
// the same.
type payloads struct {
	// catalog has the hooks with payloads of v1beta1.
	catalog    *runtimecatalog.Catalog
	conversion *conversion.Registry
}

func newPayloads(conversions *conversion.Registry) (*payloads, error) {
	if conversions == nil {
		conversions = conversion.Shared()
	}
	p := &payloads{catalog: runtimecatalog.New(), conversion: conversions}
	return p, hooksv1beta1.AddToCatalog(p.catalog)
}

// Supported reports whether extensions can request a version of payloads. It is v1beta1 if they request none.
func Supported(version string) bool {
	return version == "" || version == clusterv1beta1.GroupVersion.Version || version == clusterv1.GroupVersion.Version
}

// inV1Beta2 reports whether payloads of a hook are in v1beta2 for a handler. Hooks that v1.7 did not have are in v1beta2 only.
func (p *payloads) inV1Beta2(hook runtimecatalog.GroupVersionHook, h handler) bool {
	return h.wantsV1Beta2() || !p.catalog.IsHookRegistered(hook)
}

// request returns a request, which it may change, with its Cluster in v1beta2 or in v1beta1. Other fields are the same.
func (p *payloads) request(
	ctx context.Context, hook runtimecatalog.GroupVersionHook, inV1Beta2 bool, request runtimehooksv1.RequestObject,
) (runtimehooksv1.RequestObject, error) {
	from := reflect.ValueOf(request).Elem()
	if inV1Beta2 {
		for i := range from.NumField() {
			if cluster, ok := from.Field(i).Addr().Interface().(*clusterv1.Cluster); ok {
				delete(cluster.Annotations, conversion.OlderVersionAnnotation) // It is about v1beta1.
			}
		}
		return request, nil
	}
	object, err := p.catalog.NewRequest(hook)
	if err != nil {
		return nil, err
	}
	out, ok := object.(runtimehooksv1.RequestObject)
	if !ok {
		return nil, fmt.Errorf("%T is not a request", object)
	}
	to := reflect.ValueOf(out).Elem()
	for i := range to.NumField() {
		source := from.FieldByName(to.Type().Field(i).Name)
		cluster, ok := source.Addr().Interface().(*clusterv1.Cluster)
		if !ok {
			to.Field(i).Set(source)
			continue
		}
		older, err := p.cluster(ctx, cluster)
		if err != nil {
			return nil, fmt.Errorf("converting Cluster %s to v1beta1: %w", cluster.Name, err)
		}
		to.Field(i).Set(reflect.ValueOf(*older))
	}
	return out, nil
}

// cluster converts a Cluster to v1beta1.
func (p *payloads) cluster(ctx context.Context, in *clusterv1.Cluster) (*clusterv1beta1.Cluster, error) {
	out := &clusterv1beta1.Cluster{}
	err := p.conversion.Convert(ctx, in, out)
	out.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind(clusterv1.ClusterKind))
	return out, err
}

// response returns a response to decode into, and what copies it into the one that was asked for. They are the same, unless the response
// has types of v1beta1.
func (p *payloads) response(
	ctx context.Context, inV1Beta2 bool, into runtimehooksv1.ResponseObject,
) (runtimehooksv1.ResponseObject, func() error) {
	wanted, ok := into.(*runtimehooksv1.DiscoverVariablesResponse)
	if !ok || inV1Beta2 {
		return into, func() error { return nil }
	}
	received := &hooksv1beta1.DiscoverVariablesResponse{}
	return received, func() error {
		older, class := &clusterv1beta1.ClusterClass{}, &clusterv1.ClusterClass{}
		older.Spec.Variables = received.Variables
		if err := p.conversion.Convert(ctx, older, class); err != nil {
			return fmt.Errorf("converting the variables to v1beta2: %w", err)
		}
		*wanted = runtimehooksv1.DiscoverVariablesResponse{
			TypeMeta: received.TypeMeta, CommonResponse: received.CommonResponse, Variables: class.Spec.Variables,
		}
		return nil
	}
}
