package bounds_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestReference(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		node   *corev1.Node
		want   *corev1.ObjectReference
	}{
		"Valid": {"name and UID are valid", object.Node("n"), &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: "node-n"}},
		"Name":  {"the name is invalid", object.Node("n", func(n *corev1.Node) { n.Name = "../" + strings.Repeat("x", 300) }), nil},
		"UID":   {"the UID is too long", object.Node("n", func(n *corev1.Node) { n.UID = types.UID(strings.Repeat("x", 300)) }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := bounds.NodeReference(c.node)
			if diff := cmp.Diff(c.want, got); diff != "" || (err == nil) != (c.want != nil) {
				t.Errorf("%s: err = %v, -want +got:\n%s", c.reason, err, diff)
			}
		})
	}
}
