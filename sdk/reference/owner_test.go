package reference_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/sdk/reference"
)

func TestAddOwner(t *testing.T) {
	blue, green := owner("Cluster", "blue", false), owner("Cluster", "green", false)
	for name, c := range map[string]struct {
		reason      string
		owners      []metav1.OwnerReference
		ref         string
		wantFound   bool
		wantPatches int
		want        []metav1.OwnerReference
		wantErr     string
	}{
		"Free":    {"a template without owners gets its first one", nil, "example.com", true, 1, []metav1.OwnerReference{blue}, ""},
		"Shared":  {"other owners are kept", []metav1.OwnerReference{green}, "example.com", true, 1, []metav1.OwnerReference{green, blue}, ""},
		"Ours":    {"what is so already costs no write", []metav1.OwnerReference{blue}, "example.com", true, 0, []metav1.OwnerReference{blue}, ""},
		"Unknown": {"a kind that does not exist is an error, not a missing object", nil, "other.com", false, 0, nil, "CustomResourceDefinition things.other.com does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, thing("one", nil, c.owners...))
			found, err := reference.AddOwner(t.Context(), w.client, w.follow.Reader, to(c.ref, "Thing", "one"), "default", blue)
			if found != c.wantFound || len(w.Writes) != c.wantPatches || !contains(err, c.wantErr) {
				t.Errorf("%s: found = %t, %d writes, err = %v", c.reason, found, len(w.Writes), err)
			}
			if diff := cmp.Diff(c.want, get(t, w, "one").GetOwnerReferences()); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
		})
	}
	w := newWorld(t)
	if found, err := reference.AddOwner(t.Context(), w.client, w.follow.Reader, to("example.com", "Thing", "one"), "default", blue); found || err != nil {
		t.Errorf("an object that does not exist is no error: found = %t, err = %v", found, err)
	}
}
