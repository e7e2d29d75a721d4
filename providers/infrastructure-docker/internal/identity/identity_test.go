package identity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
)

func TestAssign(t *testing.T) {
	m := &dockerv1.DockerMachine{ObjectMeta: metav1.ObjectMeta{UID: "first"}}
	if Of(m) != "first" {
		t.Errorf("identity %q before it is assigned", Of(m))
	}
	Assign(m)
	m.UID = "second" // It was moved.
	Assign(m)
	if Of(m) != "first" {
		t.Errorf("identity %q after a move", Of(m))
	}
}

func TestLabels(t *testing.T) {
	m := &dockerv1.DockerMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "uid"}}
	claim := Claim{Kind: "DockerMachine", Object: m, Cluster: "c", Role: Worker}
	want := map[string]string{
		"io.x-k8s.kind.cluster": "c", "io.x-k8s.kind.role": "worker", "docker.cluster.x-k8s.io/kind": "DockerMachine",
		"docker.cluster.x-k8s.io/namespace": "ns", "docker.cluster.x-k8s.io/name": "m", "docker.cluster.x-k8s.io/identity": "uid",
	}
	if diff := cmp.Diff(want, claim.Labels()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := claim.Check("c-m", claim.Labels()); err != nil {
		t.Error(err)
	}
	old := map[string]string{ClusterLabel: "c", RoleLabel: "worker"}
	if err := claim.Check("c-m", old); err == nil {
		t.Error("a container without labels of an object belongs to one that had none")
	}
	claim.Had = true
	if err := claim.Check("c-m", old); err != nil {
		t.Error(err)
	}
	for _, labels := range []map[string]string{{ClusterLabel: "c", RoleLabel: "control-plane"}, {ClusterLabel: "d", RoleLabel: "worker"}, nil} {
		if err := claim.Check("c-m", labels); err == nil {
			t.Errorf("a container with labels %v belongs to a worker of Cluster c", labels)
		}
	}
}

func TestNames(t *testing.T) {
	for machine, want := range map[string]string{"m": "c-m", "c-m": "c-m", "cm": "c-cm", "c": "c-c"} {
		if got := MachineContainer("c", machine); got != want {
			t.Errorf("machine %s: container %s, want %s", machine, got, want)
		}
	}
}
