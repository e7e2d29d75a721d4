package topology

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
)

// TestRejectedChanges checks that the error of an object whose validation rejects a change says where the change can be reverted.
func TestRejectedChanges(t *testing.T) {
	const revert = "The change comes from spec.topology of the Cluster, or from its class: revert it there, or create another Cluster"
	object := func(version string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"version": version}}}
	}
	denied := apierrors.NewInvalid(schema.GroupKind{Kind: "KubeadmControlPlane"}, "cp", field.ErrorList{
		field.Forbidden(field.NewPath("spec", "kubeadmConfigSpec", "clusterConfiguration", "networking"), "cannot be changed"),
	})
	for name, c := range map[string]struct {
		reason string
		change plan.Change
		err    error
		want   string
	}{
		"None":   {reason: "it is accepted", change: plan.Change{Live: object("v1.21.2"), Desired: object("v1.22.0")}},
		"Field":  {"a field cannot change", plan.Change{Live: object("v1.21.2"), Desired: object("v1.21.2")}, fmt.Errorf("applying: %w", denied), revert},
		"New":    {"there is nothing to revert", plan.Change{Desired: object("v1.21.2")}, denied, ""},
		"Outage": {"it is not about the change", plan.Change{Live: object("v1.21.2"), Desired: object("v1.22.0")}, errors.New("later"), ""},
		"Version": {"the version is rejected", plan.Change{Live: object("v1.21.2"), Desired: object("v1.22.0")}, denied,
			revert + ". spec.topology.version can go back to v1.21.2 with annotation unsafe.topology.cluster.x-k8s.io/disable-update-version-check"},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := fmt.Sprint(rejected(c.change, c.err)), fmt.Sprint(c.err)
			if c.want != "" {
				want += ". " + c.want
			}
			if got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", c.reason, got, want)
			}
		})
	}
}
