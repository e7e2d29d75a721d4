package topology

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
)

func TestMachinePools(t *testing.T) {
	w := newWorld(t)
	class := &clusterv1.ClusterClass{}
	if err := w.Get(t.Context(), w.key("simple"), class); err != nil {
		t.Fatal(err)
	}
	worker := class.Spec.Workers.MachineDeployments[0]
	class.ObjectMeta = metav1.ObjectMeta{Namespace: w.namespace, Name: "pools"}
	class.Spec.Workers.MachinePools = []clusterv1.MachinePoolClass{{Class: "pool", FailureDomains: []string{"a"},
		Bootstrap: clusterv1.MachinePoolClassBootstrapTemplate(worker.Bootstrap),
		// The kind of the template does not matter to the topology.
		Infrastructure: clusterv1.MachinePoolClassInfrastructureTemplate(worker.Infrastructure),
	}}
	if err := w.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	w.reconciledClass("pools")
	c := w.cluster("c")
	c.Spec.Topology.ClassRef.Name = "pools"
	c.Spec.Topology.Workers = clusterv1.WorkersTopology{MachinePools: []clusterv1.MachinePoolTopology{{Class: "pool", Name: "p"}}}
	w.created(c)
	w.expect("a MachinePool has its own bootstrap and infrastructure objects", []string{
		"PATCH clusters/c", "PATCH clusters/c/status", "PATCH inmemoryclusters/c-XXXXX", "PATCH inmemorymachines/c-p-XXXXX",
		"PATCH inmemorymachinetemplates/c-XXXXX", "PATCH kubeadmconfigs/c-p-XXXXX", "PATCH kubeadmcontrolplanes/c-XXXXX",
		"PATCH machinehealthchecks/c-XXXXX", "PATCH machinepools/c-p-XXXXX",
	}, normalized(w.reconciled(c)))
	w.expectSteady(c, "creation")

	var pools clusterv1.MachinePoolList
	if err := w.List(t.Context(), &pools, plan.Labeled(c)...); err != nil || len(pools.Items) != 1 {
		t.Fatalf("pools = %v, err = %v", pools.Items, err)
	}
	pool := &pools.Items[0]
	w.expect("failure domains", []string{"a"}, pool.Spec.FailureDomains)
	bootstrap := &unstructured.Unstructured{}
	bootstrap.SetGroupVersionKind(schema.GroupVersionKind{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta1", Kind: "KubeadmConfig"})
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: pool.Spec.Template.Spec.Bootstrap.ConfigRef.Name}, bootstrap); err != nil {
		t.Fatal(err)
	}
	w.expect("the topology name label", "p", bootstrap.GetLabels()[clusterv1.ClusterTopologyMachinePoolNameLabel])

	kubelets := []string{"v1.30.0"}
	w.control.Planner.PoolVersions = func(context.Context, *clusterv1.Cluster, *clusterv1.MachinePool) ([]string, error) {
		return kubelets, nil
	}
	w.provisioned(c)
	changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Topology.Version = "v1.31.0" })
	w.expect("the control plane is upgraded first", []string{"PATCH clusters/c/status", "PATCH kubeadmcontrolplanes/c-XXXXX"}, normalized(w.reconciled(c)))
	w.provisioned(c)
	w.expect("then the MachinePool", []string{"PATCH clusters/c/status", "PATCH machinepools/c-p-XXXXX"}, normalized(w.reconciled(c)))

	changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Topology.Workers = clusterv1.WorkersTopology{} })
	w.expect("a removed MachinePool is deleted; its controller deletes its objects",
		[]string{"DELETE machinepools/c-p-XXXXX"}, withoutStatus(normalized(w.reconciled(c))))
}
