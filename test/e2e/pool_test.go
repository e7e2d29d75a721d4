package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// TestMachinePool scales a MachinePool from 1 to 2 and back, replaces a machine that is deleted, rolls out a new template, and deletes
// everything.
func TestMachinePool(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	const name = "pooled"
	var c *journey.Subject
	stage(t, "1 control plane machine and a pool of 1", func() {
		c = subject(t, w, &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: clusterv1.ClusterSpec{
				ClusterNetwork:    &clusterv1.ClusterNetwork{Pods: &clusterv1.NetworkRanges{CIDRBlocks: []string{"192.168.0.0/16"}}},
				InfrastructureRef: &corev1.ObjectReference{APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: "DockerCluster", Name: name},
				ControlPlaneRef:   &corev1.ObjectReference{APIVersion: "controlplane.cluster.x-k8s.io/v1beta1", Kind: "KubeadmControlPlane", Name: name},
			},
		})
		r := w.Tools.Kubectl(t.Context(), "", "--kubeconfig", w.Kubeconfig, "--namespace", w.Namespace, "apply", "--filename", filepath.Join("testdata", "pool.yaml"))
		if r.Failed {
			t.Fatal(r)
		}
		network(t, c)
		c.Eventually("the pool runs", pooled(t, c, 1))
	})
	stage(t, "scaled the pool from 1 to 2", func() {
		patched(t, c, &clusterv1.MachinePool{}, `{"spec":{"replicas":2}}`)
		c.Eventually("the pool is scaled up", pooled(t, c, 2), c.WorkloadMatches)
	})
	stage(t, "scaled the pool from 2 to 1", func() {
		patched(t, c, &clusterv1.MachinePool{}, `{"spec":{"replicas":1}}`)
		c.Eventually("the pool is scaled down", pooled(t, c, 1), c.WorkloadMatches)
	})
	victim := c.Snapshot().Workers()[0]
	stage(t, "replaced a machine that was deleted", func() {
		if err := c.Client.Delete(t.Context(), &victim); err != nil {
			t.Fatal(err)
		}
		c.Eventually("the machine is replaced", pooled(t, c, 1, victim.Name), c.WorkloadMatches)
	})
	victim = c.Snapshot().Workers()[0]
	stage(t, "replaced the machine of the old template", func() {
		template := &unstructured.Unstructured{}
		template.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta1")
		template.SetKind("DockerMachinePool")
		patched(t, c, template, `{"spec":{"template":{"extraMounts":[{"containerPath":"/mnt/tmp","hostPath":"/tmp","readOnly":true}]}}}`)
		c.Eventually("the machine is replaced", pooled(t, c, 1, victim.Name), c.WorkloadMatches)
	})
	stage(t, "deleted", func() { gone(t, c) })
}

// pooled is a Condition: the MachinePool runs with this many machines, which are neither of those without.
func pooled(t *testing.T, c *journey.Subject, replicas int, without ...string) journey.Condition {
	return func(p *journey.Snapshot) error {
		pool := &clusterv1.MachinePool{}
		if err := c.Client.Get(t.Context(), types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, pool); err != nil {
			return err
		}
		workers := p.Workers()
		if pool.Status.Phase != "Running" || int(pool.Status.ReadyReplicas) != replicas || len(pool.Spec.ProviderIDList) != replicas || len(workers) != replicas {
			return fmt.Errorf("phase %s, %d ready, %d provider IDs, %d Machines", pool.Status.Phase, pool.Status.ReadyReplicas, len(pool.Spec.ProviderIDList), len(workers))
		}
		for _, m := range workers {
			for _, name := range without {
				if m.Name == name {
					return fmt.Errorf("Machine %s still exists", name)
				}
			}
		}
		return nil
	}
}

// patched patches an object with the name of the Cluster.
func patched(t *testing.T, c *journey.Subject, obj client.Object, patch string) {
	t.Helper()
	obj.SetNamespace(c.Namespace)
	obj.SetName(c.Name)
	if err := c.Client.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}
