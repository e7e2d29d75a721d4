package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// TestDeleteOnStaleCache has objects in the API server that are not in the cache.
func TestDeleteOnStaleCache(t *testing.T) {
	machineSet, worker, ofPlane := build.MachineSet("set"), owned(build.Machine("worker")), controlPlaneMachine("cp")
	ofPlane.SetOwnerReferences(nil)
	pool := owned(build.MachinePool("pool"))
	cases := map[string]struct {
		reason       string
		cached, live []client.Object
		writes       []string
		left         bool // whether the finalizer is kept
	}{
		"Nothing":      {"nothing is left", nil, nil, nil, false},
		"Plane":        {"no workers are left: the control plane is deleted", []client.Object{controlPlaneObject(nil)}, nil, []string{"delete GenericControlPlane c-plane"}, true},
		"PlaneNeeded":  {"a MachineSet is left: the control plane is kept", []client.Object{controlPlaneObject(nil)}, []client.Object{machineSet}, nil, true},
		"ChildFound":   {"a worker that is not in the cache is deleted", []client.Object{controlPlaneObject(nil)}, []client.Object{worker}, []string{"delete Machine worker"}, true},
		"OwnMachines":  {"the control plane deletes its own Machines", []client.Object{controlPlaneObject(nil)}, []client.Object{ofPlane}, []string{"delete GenericControlPlane c-plane"}, true},
		"PlaneLacking": {"the control plane is not in the cache, but exists", []client.Object{infraCluster(nil)}, []client.Object{controlPlaneObject(nil)}, []string{"delete GenericControlPlane c-plane"}, true},
		"Infra":        {"no Machines are left: the infrastructure is deleted", []client.Object{infraCluster(nil)}, nil, []string{"delete GenericCluster c-infra"}, true},
		"InfraNeeded":  {"a Machine is left: the infrastructure is kept", []client.Object{infraCluster(nil)}, []client.Object{ofPlane}, nil, true},
		"InfraLacking": {"the infrastructure is not in the cache, but exists", nil, []client.Object{infraCluster(nil)}, []string{"delete GenericCluster c-infra"}, true},
		"Needed":       {"a Machine is left: the Cluster is kept", nil, []client.Object{ofPlane}, nil, true},
		"PoolFound":    {"a MachinePool is left: the control plane is kept", []client.Object{controlPlaneObject(nil)}, []client.Object{pool}, []string{"delete MachinePool pool"}, true},
		"InfraPool":    {"a MachinePool is left: the infrastructure is kept", []client.Object{infraCluster(nil)}, []client.Object{pool}, []string{"delete MachinePool pool"}, true},
		"NeededByPool": {"a MachinePool is left: the Cluster is kept", nil, []client.Object{pool}, []string{"delete MachinePool pool"}, true},
		"NeededBySets": {"a MachineSet is left: it could create Machines", nil, []client.Object{machineSet}, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, c := newWorld(t, append(tc.live, tc.cached...)...), build.Cluster(withPlane, withInfra, object.Deleting)
			w.Cache.Hide(tc.live...)
			if _, err := w.all(t, c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			if left := len(c.Finalizers) > 0; left != tc.left {
				t.Errorf("%s: the finalizers are %v", tc.reason, c.Finalizers)
			}
		})
	}
}

// TestReadsOfDeletion counts the reads from the API server during deletion.
func TestReadsOfDeletion(t *testing.T) {
	w, c := newWorld(t, controlPlaneObject(nil), infraCluster(nil)), build.Cluster(withPlane, withInfra, object.Deleting)
	for _, moment := range []struct {
		reason string
		gone   client.Object
		want   int
	}{
		{"no workers are left: the control plane is deleted", nil, 4},
		{"the Cluster waits for the control plane", nil, 0},
		{"the control plane and all Machines are gone: the infrastructure is deleted", controlPlaneObject(nil), 5},
		{"the Cluster waits for the infrastructure", nil, 0},
		{"the infrastructure is gone, and no Machines were created meanwhile", infraCluster(nil), 5},
	} {
		w.LiveReads = nil
		if moment.gone != nil {
			before := moment.gone.DeepCopyObject().(client.Object)
			moment.gone.SetFinalizers(nil)
			testenv.Must(t, w.Client.Patch(t.Context(), moment.gone, client.MergeFrom(before)))
		}
		if _, err := w.all(t, c); err != nil {
			t.Fatal(err)
		}
		if len(w.LiveReads) != moment.want {
			t.Errorf("%s: reads %q, want %d", moment.reason, w.LiveReads, moment.want)
		}
	}
	if len(c.Finalizers) > 0 {
		t.Errorf("the finalizers are %v", c.Finalizers)
	}
}
