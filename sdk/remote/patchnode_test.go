package remote_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestSetTaint(t *testing.T) {
	taint, other := clusterv1.NodeUninitializedTaint, corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoSchedule}
	for name, c := range map[string]struct {
		reason       string
		before, want []corev1.Taint
		on           bool
	}{
		"Add":     {"it is added once, after the others", []corev1.Taint{other}, []corev1.Taint{other, taint}, true},
		"Keep":    {"it exists", []corev1.Taint{taint, other}, []corev1.Taint{taint, other}, true},
		"Remove":  {"others are kept", []corev1.Taint{taint, other}, []corev1.Taint{other}, false},
		"Missing": {"there is nothing to remove", []corev1.Taint{other}, []corev1.Taint{other}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := object.Node("n", func(n *corev1.Node) { n.Spec.Taints = c.before })
			remote.SetTaint(n, taint, c.on)
			if diff := cmp.Diff(c.want, n.Spec.Taints); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestPatchNode writes only changes, and does not overwrite taints that another client set meanwhile.
func TestPatchNode(t *testing.T) {
	api := fakeapi.New(t, fakeapi.Options{})
	w := api.NewWorkload(t, object.Node("n"))
	read := func() *corev1.Node {
		n := object.Node("n")
		testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(n), n))
		return n
	}
	c := w.ForController()
	before := read()
	testenv.Must(t, remote.PatchNode(t.Context(), c, before, before.DeepCopy()))
	if len(w.Requests) > 0 {
		t.Errorf("requests without a change: %q", w.Requests)
	}
	other := read()
	other.Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}}
	other.Annotations = map[string]string{"other": ""}
	testenv.Must(t, w.Client.Update(t.Context(), other))

	annotated := before.DeepCopy()
	annotated.Annotations = map[string]string{"ours": ""}
	testenv.Must(t, remote.PatchNode(t.Context(), c, before, annotated))
	if diff := cmp.Diff(map[string]string{"ours": "", "other": ""}, read().Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	tainted := before.DeepCopy()
	remote.SetTaint(tainted, clusterv1.NodeUninitializedTaint, true)
	if err := remote.PatchNode(t.Context(), c, before, tainted); !apierrors.IsConflict(err) {
		t.Errorf("a change of outdated taints: %v, want a conflict", err)
	}
}
