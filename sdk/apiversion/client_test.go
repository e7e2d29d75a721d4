package apiversion

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// A kind without informers is looked up again when its version is not found, but not when an object is not found.
func TestUnservedVersionsAreNoticed(t *testing.T) {
	tr := newTranslation(t, newer, older)
	d, clock := serves(older, older), clocktesting.NewFakePassiveClock(time.Now())
	tr.Boundary.stored = newStoredVersions(d, newMachines().Versions, clock)
	var versions []string
	server := fake.NewClientBuilder().WithScheme(tr.scheme).WithObjects(newerMachine(t)).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			kind, err := c.GroupVersionKindFor(obj)
			if err != nil {
				return err
			}
			versions = append(versions, kind.Version)
			if _, served := d.resources[kind.Version]; served {
				return c.Get(ctx, key, obj, opts...)
			}
			resource := schema.GroupResource{Group: kind.Group, Resource: "machines"}
			return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, key.Name, "404 page not found", 0, true)
		},
	}).Build()
	reader := tr.Reader(server)
	get := func(name string) error {
		clock.SetTime(clock.Now().Add(time.Minute))
		return reader.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &clusterv1.Machine{})
	}
	if err := get("absent"); !apierrors.IsNotFound(err) || d.requests != 2 {
		t.Fatalf("%v after %d requests, want not found after 2", err, d.requests)
	}
	d.resources = serves(newer, newer).resources
	if err := get("m"); !apierrors.IsNotFound(err) {
		t.Errorf("the first read after the change: %v", err)
	}
	if err := get("m"); err != nil {
		t.Errorf("the second read after the change: %v", err)
	}
	if diff := cmp.Diff([]string{older, older, newer}, versions); diff != "" {
		t.Errorf("versions of requests (-want +got):\n%s", diff)
	}
}
