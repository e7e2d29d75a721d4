package machines

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

// An error of one Machine does not affect the others.
func TestPropagateContinuesAfterErrors(t *testing.T) {
	b, _ := kcptest.Three(t)
	b.Reload(t)
	b.KCP.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"new": "label"}
	b.API.Before = func(r fakeapi.Request) error {
		if r.Verb == "patch" && r.Name == "a" {
			return errors.New("rejected")
		}
		return nil
	}
	if _, err := manager(b).Propagate(t.Context(), b.ControlPlane); err == nil {
		t.Error("the error is not returned")
	}
	if want := []string{"patch Machine b", "patch Machine c"}; !slices.Equal(b.API.Writes, want) {
		t.Errorf("writes %q, want %q", b.API.Writes, want)
	}
}

// An adopted Machine gets our hook with one write. Machines are created with it.
func TestAdoptedMachinesGetTheHook(t *testing.T) {
	b, _ := kcptest.Three(t)
	b.Annotate(t, "b", nil)
	b.Reload(t)
	for round, want := range []string{"patch Machine b", ""} {
		for _, m := range b.Machines {
			m.Labels = b.MachineLabels()
			testenv.Must(t, b.API.Update(t.Context(), m.Machine))
		}
		b.API.Writes = nil
		if _, err := manager(b).Propagate(t.Context(), b.ControlPlane); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(b.API.Writes, ", "); got != want {
			t.Errorf("round %d: writes %q, want %q", round, got, want)
		}
	}
	infrastructure := &unstructured.Unstructured{}
	infrastructure.SetName("new")
	m, err := newMachine(b.ControlPlane, "new", infrastructure, "")
	if err != nil || !membership.HasHook(m) {
		t.Errorf("a new Machine has the hook: %t, error %v", membership.HasHook(m), err)
	}
	if _, copied := dependent(b.ControlPlane, m).Annotations[controlplanev1.PreTerminateHookCleanupAnnotation]; copied {
		t.Error("objects that are created for a Machine have the hook, too")
	}
}
