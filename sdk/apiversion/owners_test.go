package apiversion

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// TestOwners: owner references to kinds of the Registry are written in the stored version, of objects of all kinds.
func TestOwners(t *testing.T) {
	ref := func(apiVersion, kind string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "o", UID: "o"}
	}
	machine := ref("cluster.x-k8s.io/"+older, "Machine")
	others := []metav1.OwnerReference{
		ref("cluster.x-k8s.io/v1alpha3", "Machine"), ref("v1", "Node"), ref("infrastructure.cluster.x-k8s.io/v1beta1", "AWSMachine"),
	}
	want := append([]metav1.OwnerReference{ref("cluster.x-k8s.io/"+newer, "Machine")}, others...)
	refs := append([]metav1.OwnerReference{machine}, others...)
	secret := func() *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}}
	}
	for _, tt := range []struct {
		reason string
		exists client.Object
		write  func(c client.Client) error
		read   client.Object
	}{
		{"a new Secret", nil, func(c client.Client) error {
			s := secret()
			s.OwnerReferences = refs
			return c.Create(t.Context(), s)
		}, secret()},
		{"a Secret that gets owners", secret(), func(c client.Client) error {
			after := secret()
			after.OwnerReferences = refs
			return c.Patch(t.Context(), after, MergeFrom(secret()))
		}, secret()},
		{"a Secret that is replaced", secret(), func(c client.Client) error {
			s := secret()
			s.OwnerReferences = refs
			return c.Update(t.Context(), s)
		}, secret()},
		{"an object that is converted", nil, func(c client.Client) error {
			m := olderMachine()
			m.ResourceVersion, m.OwnerReferences = "", refs
			return c.Create(t.Context(), m)
		}, newerMachine(t)},
		{"one that gets owners", newerMachine(t), func(c client.Client) error {
			m := olderMachine()
			m.ResourceVersion, m.OwnerReferences = "", refs
			before := olderMachine()
			before.ResourceVersion = ""
			return c.Patch(t.Context(), m, MergeFrom(before))
		}, newerMachine(t)},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			tr := newTranslation(t, older, newer)
			server := fake.NewClientBuilder().WithScheme(tr.scheme)
			if tt.exists != nil {
				server = server.WithObjects(tt.exists)
			}
			live := server.Build()
			if err := tt.write(tr.Client(live)); err != nil {
				t.Fatal(err)
			}
			if err := live.Get(t.Context(), client.ObjectKeyFromObject(tt.read), tt.read); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, tt.read.GetOwnerReferences()); diff != "" {
				t.Errorf("owner references (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAppliedOwners: the same for server-side apply.
func TestAppliedOwners(t *testing.T) {
	for _, kind := range []string{clusterv1beta1.MachineKind, "SomeTemplate"} {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind(kind))
		obj.SetName("m")
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/" + older, Kind: "Machine", Name: "o", UID: "o"}})
		applied, err := newTranslation(t, older, newer).Applied(context.Background(), obj)
		if err != nil {
			t.Fatal(err)
		}
		if got := applied.GetOwnerReferences()[0].APIVersion; got != "cluster.x-k8s.io/"+newer {
			t.Errorf("%s: the owner has version %s", kind, got)
		}
		if got := obj.GetOwnerReferences()[0].APIVersion; got != "cluster.x-k8s.io/"+older {
			t.Errorf("%s: the object was changed", kind)
		}
	}
}
