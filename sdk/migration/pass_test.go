package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apiServer has objects 0, 1, 2 and so on, and lists two of them per page.
type apiServer struct {
	client.Client
	objects int
	// fails returns the error of a patch.
	fails func(name string) error
	// expires is after how many lists the API server has forgotten the list.
	expires int

	patched []string
	lists   int
}

func (a *apiServer) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	if a.lists++; a.lists == a.expires {
		return apierrors.NewResourceExpired("too old")
	}
	first, _ := strconv.Atoi(o.Continue)
	into := list.(*metav1.PartialObjectMetadataList)
	for i := first; i < min(first+2, a.objects); i++ {
		name := strconv.Itoa(i)
		into.Items = append(into.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}})
	}
	if first+2 < a.objects {
		into.Continue = strconv.Itoa(first + 2)
	}
	return nil
}

func (a *apiServer) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	a.patched = append(a.patched, o.GetName())
	if a.fails == nil {
		return nil
	}
	return a.fails(o.GetName())
}

func TestPass(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "x", nil)
	failing := func(err error, names ...string) func(string) error {
		return func(name string) error {
			if slices.Contains(names, name) {
				return err
			}
			return nil
		}
	}
	for _, tc := range []struct {
		reason string
		server apiServer
		// want are the patches of one pass after the other, until one succeeds.
		want [][]string
		errs []string
	}{
		{"all pages are visited", apiServer{objects: 5}, [][]string{{"0", "1", "2", "3", "4"}}, []string{""}},
		{"there is nothing to do", apiServer{}, [][]string{nil}, []string{""}},
		{"a list that has expired is read again, without what is done", apiServer{objects: 4, expires: 2}, [][]string{{"0", "1", "2", "3"}}, []string{""}},
		{"an object that is gone needs nothing", apiServer{objects: 2, fails: failing(apierrors.NewNotFound(schema.GroupResource{}, "0"), "0")}, [][]string{{"0", "1"}}, []string{""}},
		{
			"one that cannot be saved does not keep the others, and is tried again alone", apiServer{objects: 4, fails: failing(invalid, "1")},
			[][]string{{"0", "1", "2", "3"}, {"1"}},
			[]string{"cannot store Thing ns/1 in version v1: the API server answered 422 Unprocessable Entity", "cannot store Thing ns/1 in version v1: the API server answered 422 Unprocessable Entity"},
		},
		{
			"too many in a row end the pass, and the next one tries the others first", apiServer{objects: 6, fails: failing(invalid, "0", "1", "2", "4")},
			[][]string{{"0", "1"}, {"2", "3", "4", "5"}, {"0", "1"}},
			[]string{
				"2 objects cannot be saved, such as: cannot store Thing ns/0 in version v1: the API server answered 422 Unprocessable Entity",
				"2 objects cannot be saved, such as: cannot store Thing ns/2 in version v1: the API server answered 422 Unprocessable Entity",
				"2 objects cannot be saved, such as: cannot store Thing ns/0 in version v1: the API server answered 422 Unprocessable Entity",
			},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			pass := Pass{
				Kind: schema.GroupVersionKind{Version: "v1", Kind: "Thing"}, Parallel: 1, Failures: 2,
				Patch: func(*metav1.PartialObjectMetadata) ([]byte, error) { return Unchanged(), nil },
			}
			visited := &Visited{}
			var patches [][]string
			var errs []string
			for range tc.want {
				tc.server.patched = nil
				err := pass.Run(t.Context(), &tc.server, &tc.server, visited)
				text := ""
				if err != nil {
					text = err.Error()
				}
				patches, errs = append(patches, tc.server.patched), append(errs, text)
			}
			if diff := cmp.Diff(tc.want, patches); diff != "" {
				t.Errorf("patches, -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.errs, errs); diff != "" {
				t.Errorf("errors, -want +got:\n%s", diff)
			}
		})
	}
}

// A pass of a process that ends does not count its requests as failures of objects.
func TestInterruptedPass(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := &apiServer{objects: 4, fails: func(string) error { cancel(); return context.Canceled }}
	pass := Pass{Parallel: 1, Failures: 9, Patch: func(*metav1.PartialObjectMetadata) ([]byte, error) { return Unchanged(), nil }}
	err := pass.Run(ctx, server, server, &Visited{})
	if failed := (*ObjectsError)(nil); errors.As(err, &failed) || !errors.Is(err, context.Canceled) || len(server.patched) != 1 {
		t.Errorf("got error %v after patches %v", err, server.patched)
	}
}

func TestDuePatches(t *testing.T) {
	reported := 0
	server := &apiServer{objects: 3}
	pass := Pass{
		Parallel: 1, Failures: 1, Report: func(saved int) { reported = saved },
		Retry: func(ctx context.Context, do func(context.Context) error) error { return do(ctx) },
		Patch: func(o *metav1.PartialObjectMetadata) ([]byte, error) {
			if o.Name == "1" {
				return nil, nil
			}
			return Unchanged(), nil
		},
	}
	if err := pass.Run(t.Context(), server, server, &Visited{}); err != nil || reported != 3 {
		t.Errorf("got %v, reported %d objects", err, reported)
	}
	if got := fmt.Sprint(server.patched); got != "[0 2]" {
		t.Errorf("patched %s, want all but the one for which nothing is due", got)
	}
}
