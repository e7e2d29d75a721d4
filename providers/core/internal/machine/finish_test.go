package machine

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestFinish(t *testing.T) {
	cases := map[string]struct {
		reason string
		live   client.Object
		waits  bool
	}{
		"Gone":           {"no objects are left", nil, false},
		"Infrastructure": {"an infrastructure machine that is not in the cache must not be orphaned", infraMachine(nil), true},
		"Config":         {"a bootstrap config that is not in the cache must not be orphaned", config(nil), true},
		"Foreign":        {"it belongs to another Machine", provided("GenericMachine", infrastructure, machine(named("m-2")), nil), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.live != nil {
				objects = append(objects, tc.live)
			}
			w, m := newWorld(t, objects...), machine(deleting)
			w.Cache.Hide(objects...)
			r, err := w.step(t, "finish", &scope{machine: m})
			if err != nil || r.Ends() != tc.waits || (len(m.Finalizers) > 0) != tc.waits || (r.After() > 0) != tc.waits {
				t.Errorf("%s: waits for %q, finalizers are %q, err = %v", tc.reason, r.Waiting(), m.Finalizers, err)
			}
		})
	}
}

// TestDeleteWithoutKinds deletes a Machine whose kinds are not installed any more, and neither is that of the control plane.
func TestDeleteWithoutKinds(t *testing.T) {
	gone := func(group string) clusterv1.ContractVersionedObjectReference {
		return *object.Reference(kindOf("Gone", group), "m-1")
	}
	cluster := build.Cluster(object.Initialized, func(c *clusterv1.Cluster) { c.Spec.ControlPlaneRef = gone("controlplane.cluster.x-k8s.io") })
	m := machine(deleting, func(m *clusterv1.Machine) {
		m.Spec.InfrastructureRef, m.Spec.Bootstrap.ConfigRef = gone(infrastructure), gone(bootstrapping)
	})
	for _, with := range []func(*clusterv1.Machine){func(*clusterv1.Machine) {}, withNode} {
		m := m.DeepCopy()
		with(m)
		w := newWorld(t, cluster)
		w.workload.Err = nil
		s := &scope{machine: m, cluster: cluster}
		if _, err := steptest.Run(t.Context(), m, s, w.declared().Deletion...); err != nil || len(m.Finalizers) > 0 {
			t.Errorf("finalizers are %q, err = %v", m.Finalizers, err)
		}
	}
}
