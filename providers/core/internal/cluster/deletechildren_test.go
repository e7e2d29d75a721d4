package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestDeleteChildren(t *testing.T) {
	terminating := owned(build.MachineDeployment("terminating"))
	terminating.DeletionTimestamp, terminating.Finalizers = &metav1.Time{Time: now}, []string{"x/y"}
	foreign := owned(build.Machine("foreign"))
	foreign.Labels[clusterv1.ClusterNameLabel] = "other"
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		objects []client.Object
		writes  []string
		waits   bool
	}{
		"None": {"nothing is left", build.Cluster(withPlane), nil, nil, false},
		"All": {"direct children of every kind are deleted", build.Cluster(withPlane), []client.Object{
			owned(build.MachinePool("pool")), owned(build.MachineDeployment("md")),
			owned(build.MachineSet("set")), owned(build.Machine("worker")),
		}, []string{"delete MachinePool pool", "delete MachineDeployment md", "delete MachineSet set", "delete Machine worker"}, true},
		"Grandchild":   {"its controller deletes it, the Cluster waits", build.Cluster(withPlane), []client.Object{build.MachineSet("set")}, nil, true},
		"Deleting":     {"it is being deleted already", build.Cluster(withPlane), []client.Object{terminating}, nil, true},
		"ManagedPlane": {"the control plane object deletes its Machines later", build.Cluster(withPlane), []client.Object{controlPlaneMachine("cp")}, nil, false},
		"MachinesOnly": {"without control plane object they are direct children", build.Cluster(), []client.Object{controlPlaneMachine("cp")}, []string{"delete Machine cp"}, true},
		"OtherCluster": {"it belongs to another Cluster", build.Cluster(withPlane), []client.Object{foreign}, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.objects...)
			r, err := w.step(t, "delete-children", tc.cluster)
			if err != nil || r.Ends() != tc.waits {
				t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
