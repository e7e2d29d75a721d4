package source

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
)

// Input is a Secret or ConfigMap that a spec refers to, or those of a namespace that it selects: their contents determine the components.
type Input struct {
	// Kind is Secret or ConfigMap.
	Kind, Namespace string
	// Name is empty if Selector selects objects by their labels.
	Name, Selector string
}

// GroupVersionKind returns the kind.
func (i Input) GroupVersionKind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind(i.Kind)
}

// Labels returns the Selector.
func (i Input) Labels() (labels.Selector, error) {
	selector, err := labels.Parse(i.Selector)
	if err != nil {
		return nil, fmt.Errorf("invalid selector %q: %w", i.Selector, err)
	}
	return selector, nil
}

// Inputs returns what a provider object refers to.
func Inputs(p providerobject.Provider) []Input {
	var list []Input
	add := func(kind string, key client.ObjectKey) {
		list = append(list, Input{Kind: kind, Namespace: cmp.Or(key.Namespace, p.GetNamespace()), Name: key.Name})
	}
	if key, _, ok := secretOf(p); ok {
		add("Secret", key)
	}
	if ref := p.GetSpec().AdditionalManifests; ref != nil {
		add("ConfigMap", client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	}
	if isInCluster(p) {
		if selector, err := metav1.LabelSelectorAsSelector(p.GetSpec().FetchConfig.Selector); err == nil {
			list = append(list, Input{Kind: "ConfigMap", Namespace: p.GetNamespace(), Selector: selector.String()})
		}
	}
	return list
}
