package journey

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
)

// simulated returns the manifest of a Plain with the Dev kinds and backend inMemory.
func (p Plain) simulated() string {
	p.Infrastructure = "backend: {inMemory: {}}"
	return strings.NewReplacer(
		"infrastructure.cluster.x-k8s.io/v1alpha1", dockerv1.GroupVersion.String(),
		"InMemoryCluster", "DevCluster", "InMemoryMachineTemplate", "DevMachineTemplate",
		"spec: {template: {spec: {}}}", "spec: {template: {spec: {backend: {inMemory: {vm: {provisioning: {startupDuration: 1s}}}}}}}",
	).Replace(p.String())
}

// TestDevKinds creates, scales and deletes a Cluster whose machines are simulated by the manager of the Docker provider, in a management
// cluster of its own, which has no other infrastructure provider. There is no container runtime.
func TestDevKinds(t *testing.T) {
	t.Parallel()
	tools := *shared.Management(t).Tools
	tools.Infrastructure = "docker"
	s := NewStandalone(t, &tools, "DOCKER_HOST=unix:///nonexistent/docker.sock")
	if err := s.tools.install(t.Context(), s.kubeconfig()); err != nil {
		t.Fatal(err)
	}
	tools.Infrastructure = inMemory // What is expected of Nodes: simulated ones have no addresses.
	w := s.Management().World(t)
	c := w.Plain(Plain{ControlPlanes: 1, Workers: 1}.simulated())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches, c.devMachines(2), c.ExplainsNothing)
	c.plane(func(k *controlplanev1.KubeadmControlPlane) { k.Spec.Replicas = ptr.To[int32](3) })
	c.workers(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = ptr.To[int32](3) })
	c.Eventually("the Cluster grows", Ready, ControlPlanes(3), Workers(3), c.WorkloadMatches, c.devMachines(6))
	c.workers(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = ptr.To[int32](1) })
	c.Eventually("the Cluster shrinks", Ready, ControlPlanes(3), Workers(1), c.WorkloadMatches, c.devMachines(4))
	c.Gone()
}

// devMachines is true when exactly n DevMachines exist in both versions, each provisioned and owned by its Machine.
func (c *Subject) devMachines(n int) Condition {
	return func(*Snapshot) error {
		for version, provisioned := range map[string][]string{
			"v1beta1": {"status", "ready"}, "v1beta2": {"status", "initialization", "provisioned"},
		} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(dockerv1.GroupVersion.WithKind("DevMachineList").GroupKind().WithVersion(version))
			if err := c.Client.List(c.t.Context(), list, client.InNamespace(c.Namespace)); err != nil {
				return err
			}
			if len(list.Items) != n {
				return fmt.Errorf("%d DevMachines, want %d", len(list.Items), n)
			}
			for _, m := range list.Items {
				if err := devMachine(&m, provisioned...); err != nil {
					return fmt.Errorf("DevMachine %s in version %s: %w", m.GetName(), version, err)
				}
			}
		}
		return nil
	}
}

// devMachine returns why a DevMachine is not complete.
func devMachine(m *unstructured.Unstructured, provisioned ...string) error {
	if is, _, _ := unstructured.NestedBool(m.Object, provisioned...); !is {
		return fmt.Errorf("%s is not true", strings.Join(provisioned, "."))
	}
	if id, _, _ := unstructured.NestedString(m.Object, "spec", "providerID"); id == "" {
		return errors.New("it has no provider ID")
	}
	if !slices.Contains(m.GetFinalizers(), dockerv1.DevMachineFinalizer) {
		return fmt.Errorf("its finalizers are %v", m.GetFinalizers())
	}
	if owners := m.GetOwnerReferences(); len(owners) != 1 || owners[0].Kind != "Machine" {
		return fmt.Errorf("its owners are %v", owners)
	}
	return nil
}
