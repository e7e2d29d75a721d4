package classes

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// named is a reader whose errors are its name.
type named struct {
	cache.Cache
	name string
}

func (n named) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New(n.name)
}

func (n named) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New(n.name)
}

func TestElsewhere(t *testing.T) {
	own, rest := named{name: "own"}, named{name: "rest"}
	e, err := NewElsewhere("ours", func(o cache.Options) (cache.Cache, error) {
		if got := o.DefaultLabelSelector.String(); got != "!cluster.x-k8s.io/cluster-name" {
			t.Errorf("the cache selects %s, want all but the copies of templates", got)
		}
		return named{name: "classes"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	object := func(kind string) client.Object {
		u := &unstructured.Unstructured{}
		u.SetKind(kind)
		return u
	}
	tests := []struct {
		reason, namespace string
		into              client.Object
		want              string
	}{
		{"the namespace of the manager", "ours", &clusterv1.ClusterClass{}, "own"},
		{"objects without namespace, such as CRDs", "", object("CustomResourceDefinition"), "own"},
		{"a template of the own namespace", "ours", object("KubeadmConfigTemplate"), "own"},
		{"a class of another namespace", "theirs", &clusterv1.ClusterClass{}, "classes"},
		{"a template of another namespace", "theirs", object("KubeadmConfigTemplate"), "classes"},
		{"another object, for a webhook", "theirs", object("KubeadmControlPlane"), "rest"},
		{"the same of a Go type", "theirs", &clusterv1.Machine{}, "rest"},
	}
	r := e.Over(own, rest)
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			err := r.Get(t.Context(), client.ObjectKey{Namespace: tc.namespace, Name: "n"}, tc.into)
			if err == nil || !strings.HasSuffix(err.Error(), tc.want) {
				t.Errorf("read from %v, want %s", err, tc.want)
			}
			if tc.want == "classes" && !strings.Contains(err.Error(), "theirs/n is in another namespace than ours, which the manager has as --namespace: grant its ServiceAccount a ClusterRole") {
				t.Errorf("the error does not say what to do: %v", err)
			}
		})
	}
	for namespace, want := range map[string]string{"": "own", "ours": "own", "theirs": "rest"} {
		if err := r.List(t.Context(), &clusterv1.MachineList{}, client.InNamespace(namespace)); err == nil || err.Error() != want {
			t.Errorf("Machines of namespace %q are listed from %v, want %s", namespace, err, want)
		}
	}
	if r := (*Elsewhere)(nil).Over(own, rest); r != client.Reader(own) {
		t.Error("a manager of all namespaces reads all from its own cache")
	}
}

// unsynced never lists a kind, for example because that is forbidden.
type unsynced struct{ cache.Cache }

func (unsynced) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestElsewhereWithoutPermission(t *testing.T) {
	e := &Elsewhere{namespace: "ours", cache: unsynced{}, timeout: time.Millisecond}
	err := e.Over(nil, nil).Get(t.Context(), client.ObjectKey{Namespace: "theirs", Name: "n"}, &clusterv1.ClusterClass{})
	if err == nil || !strings.Contains(err.Error(), "ClusterRole") || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read ends with what to do, got %v", err)
	}
}
