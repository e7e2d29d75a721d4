package topology

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// machine returns a Machine of a MachineDeployment of the topology.
func (w *world) machine(c *clusterv1.Cluster, topologyName, version string) *clusterv1.Machine {
	labels := desired.ClusterLabels(c)
	labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] = topologyName
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: c.Name + "-" + topologyName + "-" + version, Labels: labels},
		Spec:       clusterv1.MachineSpec{ClusterName: c.Name, Version: version},
	}
	secret := "data"
	m.Spec.Bootstrap.DataSecretName = &secret
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "InMemoryMachine", Name: "infra"}
	return m
}

// versions returns the versions in the specs of the control plane and the MachineDeployments, and the condition's reason.
func (w *world) versions(c *clusterv1.Cluster) []any {
	w.t.Helper()
	reason := ""
	if current := condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition); current != nil {
		reason = current.Reason
	}
	return []any{
		fieldOf(w.one("KubeadmControlPlane", "c", c), "spec.version"),
		fieldOf(w.one("MachineDeployment", "c-md-0", c), "spec.template.spec.version"),
		fieldOf(w.one("MachineDeployment", "c-md-1", c), "spec.template.spec.version"),
		reason,
	}
}

func TestUpgrade(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	c.Spec.Topology.Workers.MachineDeployments = append(c.Spec.Topology.Workers.MachineDeployments,
		clusterv1.MachineDeploymentTopology{Class: "worker", Name: "md-1"})
	w.created(c)
	w.reconciled(c)
	w.provisioned(c)
	old0, old1 := w.machine(c, "md-0", "v1.30.0"), w.machine(c, "md-1", "v1.30.0")
	w.created(old0)
	w.created(old1)
	const old, next = "v1.30.0", "v1.31.0"
	steps := []struct {
		reason string
		event  func()
		want   []any
	}{
		{"the control plane is upgraded first", func() {
			changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Topology.Version = next })
		}, []any{next, old, old, clusterv1.TopologyReconciledMachineDeploymentsUpgradePendingV1Beta1Reason}},
		{"workers wait for the control plane", func() {}, []any{next, old, old, clusterv1.TopologyReconciledMachineDeploymentsUpgradePendingV1Beta1Reason}},
		{"then the first workers are upgraded", func() { w.provisioned(c) },
			[]any{next, next, old, clusterv1.TopologyReconciledMachineDeploymentsUpgradePendingV1Beta1Reason}},
		{"the second workers wait for the first", func() { w.created(w.machine(c, "md-0", next)) },
			[]any{next, next, old, clusterv1.TopologyReconciledMachineDeploymentsUpgradePendingV1Beta1Reason}},
		{"and are upgraded once those have no old Machine", func() { w.removed(old0) }, []any{next, next, next, ""}},
	}
	for _, step := range steps {
		step.event()
		w.reconciled(c)
		w.expect(step.reason, step.want, w.versions(c))
		w.expectSteady(c, step.reason)
	}
	if !condition.IsTrue(c, clusterv1.TopologyReconciledV1Beta1Condition) {
		t.Errorf("conditions = %v", c.GetV1Beta1Conditions())
	}
}

// removed deletes an object and waits until the cache does not have it.
func (w *world) removed(o client.Object) {
	w.t.Helper()
	if err := w.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
	w.eventually(o.GetName()+" is deleted", func() error {
		err := w.cached.Get(w.t.Context(), client.ObjectKeyFromObject(o), o)
		if err == nil {
			return errors.New("it still exists")
		}
		return client.IgnoreNotFound(err)
	})
}
