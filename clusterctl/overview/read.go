package overview

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// Read returns the Clusters of a namespace, all if it is empty, with their control planes and workers. selector, which may be nil,
// selects Clusters by their labels. It makes one list request per kind: Clusters, MachineDeployments, MachinePools, and the kinds of
// control planes.
func Read(ctx context.Context, c client.Reader, namespace string, selector labels.Selector) (*tree.Objects, error) {
	r := &reader{Reader: c, namespace: namespace, objects: tree.NewObjects()}
	done := map[tree.Selection]bool{}
	for {
		var selections []tree.Selection
		for _, s := range tree.Overview(namespace, r.objects) {
			if !done[s] {
				selections = append(selections, s)
				done[s] = true
			}
		}
		if len(selections) == 0 {
			return r.objects, nil
		}
		// Requests are not canceled when another one fails: the error that users see is the first one of the list.
		errs := make([]error, len(selections))
		var group sync.WaitGroup
		for i, s := range selections {
			group.Go(func() {
				of := selector
				if s.Kind != tree.ClusterKind {
					of = nil
				}
				errs[i] = r.list(ctx, s.Kind, of)
			})
		}
		group.Wait()
		for _, err := range errs {
			if err != nil {
				return r.objects, err
			}
		}
	}
}

type reader struct {
	client.Reader
	namespace string
	mu        sync.Mutex
	objects   *tree.Objects
}

func (r *reader) list(ctx context.Context, kind schema.GroupVersionKind, selector labels.Selector) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	options := []client.ListOption{client.InNamespace(r.namespace)}
	if selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	err := r.List(ctx, list, options...)
	if (meta.IsNoMatchError(err) || apierrors.IsNotFound(err)) && kind != tree.ClusterKind {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot list objects of kind %s: %w", kind.Kind, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list.Items {
		r.objects.Add(&list.Items[i])
	}
	return nil
}
