package docker

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/enginetest"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestMachine runs the manager over a real API server, with the permissions of a release, until the bootstrap data of a worker has
// run in a container runtime in memory, and its container is removed by others. There is no workload cluster.
func TestMachine(t *testing.T) {
	e := server.Start(t, "providers/core/config/crd/*.yaml", "providers/infrastructure-docker/config/crd/*.yaml")
	scheme := testenv.Scheme(t, dockerv1.AddToScheme)
	c, namespace := e.NewClient(t, scheme), e.Namespace(t)
	grant(t, e, c)
	containers := enginetest.New()
	containers.OnExec = func(_ string, command engine.Command) error {
		_, err := io.WriteString(command.Stdout, "1\n0\nyes\n\n") // The output of a successful attempt.
		return err
	}
	run(t, e.Config, containers)

	labels := map[string]string{clusterv1.ClusterNameLabel: "demo"}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	}
	cluster := &clusterv1.Cluster{ObjectMeta: meta("demo")}
	cluster.Spec.ClusterNetwork.ServiceDomain = "cluster.local" // A Cluster must have a spec.
	data := &corev1.Secret{ObjectMeta: meta("data"), Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": []byte("#cloud-config\nruncmd: [kubeadm join]\n")}}
	owner := &clusterv1.Machine{ObjectMeta: meta("w"), Spec: clusterv1.MachineSpec{
		ClusterName: "demo", Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: dockerv1.GroupVersion.Group, Kind: "DockerMachine", Name: "w"},
	}}
	create(t, c, cluster, data, owner)
	machine := &dockerv1.DockerMachine{ObjectMeta: meta("w")}
	machine.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("Machine"))}
	create(t, c, machine)
	key := client.ObjectKeyFromObject(machine)
	eventually := func(what string, holds func(*dockerv1.DockerMachine) bool) {
		t.Helper()
		testenv.Eventually(t, what, func() error {
			got, err := fetch(t.Context(), c, key, &dockerv1.DockerMachine{})
			if err == nil && !holds(got) {
				err = fmt.Errorf("spec %+v, status %+v", got.Spec, got.Status)
			}
			return err
		})
	}
	reason := func(m *dockerv1.DockerMachine) string {
		if found := condition.Get(m, dockerv1.ContainerProvisionedV1Beta1Condition); found != nil {
			return found.Reason
		}
		return ""
	}
	eventually("the machine to wait for its cluster", func(m *dockerv1.DockerMachine) bool {
		return reason(m) == dockerv1.WaitingForClusterInfrastructureV1Beta1Reason
	})
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	if err := c.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	eventually("the machine to be bootstrapped", func(m *dockerv1.DockerMachine) bool {
		return condition.IsTrue(m, dockerv1.BootstrapExecSucceededV1Beta1Condition)
	})
	if got := containers.Containers(); !slices.Equal(got, []string{"demo-w"}) {
		t.Errorf("containers %v", got)
	}
	if err := containers.Remove(context.WithoutCancel(t.Context()), "demo-w"); err != nil {
		t.Fatal(err)
	}
	eventually("the removed container to be reported", func(m *dockerv1.DockerMachine) bool { return reason(m) == dockerv1.ContainerDeletedV1Beta1Reason })
	if err := c.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the machine to be gone", func() error {
		if _, err := fetch(t.Context(), c, key, &dockerv1.DockerMachine{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it exists, error %w", err)
		}
		return nil
	})
	if left := containers.Containers(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
