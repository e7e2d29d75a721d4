package machine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func plane(f fields) *unstructured.Unstructured {
	u := provided("GenericControlPlane", "controlplane.cluster.x-k8s.io", nil, f)
	u.SetName("cp")
	return u
}

func managed(c *clusterv1.Cluster) {
	c.Spec.ControlPlaneRef = &corev1.ObjectReference{APIVersion: "controlplane.cluster.x-k8s.io/v1", Kind: "GenericControlPlane", Name: "cp"}
}

func TestNodeWorkAllowed(t *testing.T) {
	beingDeleted := func(c *clusterv1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: now} }
	remaining := machine(named("cp-1"), object.ControlPlane)
	terminating := plane(nil)
	terminating.SetDeletionTimestamp(&metav1.Time{Time: now})
	terminating.SetFinalizers([]string{"x/y"})
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		cluster *clusterv1.Cluster
		objects []client.Object
		want    bool
	}{
		"AllRemain":         {"Cluster, control plane and a control plane Machine remain", machine(withNode), build.Cluster(managed), []client.Object{plane(nil), remaining}, true},
		"NoNode":            {"there is nothing to drain", machine(withProviderID), build.Cluster(managed), []client.Object{plane(nil), remaining}, false},
		"NoCluster":         {"the Cluster does not exist", machine(withNode), nil, []client.Object{plane(nil), remaining}, false},
		"ClusterDeleting":   {"the Cluster is being deleted", machine(withNode), build.Cluster(managed, beingDeleted), []client.Object{plane(nil), remaining}, false},
		"PlaneDeleting":     {"the control plane is being deleted", machine(withNode), build.Cluster(managed), []client.Object{terminating, remaining}, false},
		"PlaneGone":         {"the control plane object does not exist, but a control plane Machine remains", machine(withNode), build.Cluster(managed), []client.Object{remaining}, true},
		"NoPlane":           {"there is no control plane object, but a control plane Machine remains", machine(withNode), build.Cluster(), []client.Object{remaining}, true},
		"LastOne":           {"the last control plane Machine is being deleted", machine(withNode, object.ControlPlane, deleting), build.Cluster(managed), []client.Object{plane(nil), machine(withNode, object.ControlPlane, deleting)}, false},
		"ExternallyManaged": {"the control plane has no Machines, but remains", machine(withNode), build.Cluster(managed), []client.Object{plane(fields{"status": fields{"externalManagedControlPlane": true}})}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newWorld(t, tc.objects...).nodeWorkAllowed(t.Context(), &scope{machine: tc.machine, cluster: tc.cluster})
			if err != nil || got != tc.want {
				t.Errorf("%s: got %v, err = %v", tc.reason, got, err)
			}
		})
	}
}

// TestNodeWorkWithStaleCache has objects in the API server that are not in the cache.
func TestNodeWorkWithStaleCache(t *testing.T) {
	remaining := machine(named("cp-1"), object.ControlPlane)
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		live    []client.Object
		want    bool
	}{
		"ControlPlane": {"a control plane Machine is not in the cache", build.Cluster(), []client.Object{build.Cluster(), remaining}, true},
		"Cluster":      {"the Cluster is not in the cache", nil, []client.Object{build.Cluster(), remaining}, true},
		"Neither":      {"there is none in the API server", nil, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.live...)
			w.Cache.Hide(tc.live...)
			got, err := w.nodeWorkAllowed(t.Context(), &scope{machine: machine(withNode), cluster: tc.cluster})
			if err != nil || got != tc.want {
				t.Errorf("%s: got %v, err = %v", tc.reason, got, err)
			}
		})
	}
}
