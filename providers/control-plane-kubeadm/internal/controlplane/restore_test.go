package controlplane

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

// restored returns the only Machine and KubeadmConfig, which restore the control plane.
func (b *bench) restored(t *testing.T) (*clusterv1.Machine, *bootstrapv1.KubeadmConfig) {
	t.Helper()
	machines, configs := &clusterv1.MachineList{}, &bootstrapv1.KubeadmConfigList{}
	testenv.Must(t, b.API.List(t.Context(), machines), b.API.List(t.Context(), configs))
	if len(machines.Items) != 1 || len(configs.Items) != 1 {
		t.Fatalf("%d Machines and %d KubeadmConfigs, want one", len(machines.Items), len(configs.Items))
	}
	m, config := &machines.Items[0], &configs.Items[0]
	if config.Name != m.Name || config.Annotations[fleetv1.RestoreDataAnnotation] != "data" || m.Annotations[fleetv1.RestoreDataAnnotation] != "data" ||
		!kubeadm.Defined(config.Spec.InitConfiguration) || kubeadm.Defined(config.Spec.JoinConfiguration) {
		t.Errorf("KubeadmConfig %+v, want one that runs kubeadm init with the data", config)
	}
	return m, config
}

// TestOneMachineIsRestoredWhereverItIsKilled kills the manager at each of its writes, executed or not, and lets another one go on.
func TestOneMachineIsRestoredWhereverItIsKilled(t *testing.T) {
	names := map[string]bool{}
	for n := 0; ; n++ {
		writes := 0
		for _, executed := range []bool{false, true} {
			b := restoring(t)
			b.hold(t, operation(fleetv1.OperationModeRestore))
			before, killed := b.KCP.DeepCopy(), errors.New("killed")
			writes = 0
			b.API.Before = func(r fakeapi.Request) error {
				if !r.IsWrite() {
					return nil
				}
				if writes++; writes > n+1 || writes == n+1 && !executed {
					return killed
				}
				return nil
			}
			b.API.After = func(r fakeapi.Request, err error) error {
				if writes == n+1 && r.IsWrite() {
					return killed
				}
				return err
			}
			_ = b.reconcile(t)
			b.API.Before, b.API.After = nil, nil
			*b.KCP = *before
			for range 2 {
				_ = b.reconcile(t) // It waits for the Machine.
			}
			m, _ := b.restored(t)
			names[m.Name] = true
		}
		if writes <= n {
			break
		}
	}
	if len(names) != 1 {
		t.Errorf("names %v, want one", names)
	}
}

// The data of etcd has the Node of an earlier Machine with another provider ID.
func TestRestoredMachinesHaveOtherNames(t *testing.T) {
	names := map[string]string{}
	for what, op := range map[string]fleetv1.Operation{
		"an operation": operation(fleetv1.OperationModeRestore), "another operation": {Kind: "ControlPlaneRestore", Name: "tuesday", UID: "other", Mode: fleetv1.OperationModeRestore, DataSecret: "data"},
	} {
		b := restoring(t)
		b.hold(t, op)
		_ = b.reconcile(t)
		m, _ := b.restored(t)
		names[m.Name] = what
	}
	b := restoring(t)
	b.KCP.Status.Initialization.ControlPlaneInitialized = nil
	_ = b.reconcile(t)
	machines := &clusterv1.MachineList{}
	testenv.Must(t, b.API.List(t.Context(), machines))
	for i := range machines.Items {
		names[machines.Items[i].Name] = "the first Machine"
	}
	if len(names) != 3 {
		t.Errorf("names %v, want three", names)
	}
}

func TestRestoreWaits(t *testing.T) {
	other := operation(fleetv1.OperationModeRestore)
	other.UID = "another"
	cases := []struct {
		reason  string
		prepare func(*testing.T, *bench)
		want    string
	}{
		{reason: "another leader has created the Machine", want: "the cache to show Machine m", prepare: func(t *testing.T, b *bench) {
			testenv.Must(t, b.API.Create(t.Context(), kcptest.Machine("m", "cp-uid")))
		}},
		{reason: "the operation has ended", want: "the cache to show", prepare: func(_ *testing.T, b *bench) {
			b.Diverge()
			b.LiveKCP.Annotations = nil
		}},
		{reason: "another operation has begun", want: "the cache to show", prepare: func(t *testing.T, b *bench) {
			b.hold(t, other)
			b.Diverge()
			b.hold(t, operation(fleetv1.OperationModeRestore))
		}},
		{reason: "a Machine could be adopted", want: "Machine unowned, which has no controller, to be deleted", prepare: func(_ *testing.T, b *bench) {
			b.Orphans = []*clusterv1.Machine{kcptest.Machine("unowned", "")}
		}},
		{reason: "external etcd", want: "its own etcd", prepare: func(_ *testing.T, b *bench) {
			b.KCP.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{Endpoints: []string{"https://e"}}
		}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b := restoring(t)
			op := operation(fleetv1.OperationModeRestore)
			b.hold(t, op)
			b.s.operation, b.s.heldBy = holder(b.KCP)
			tc.prepare(t, b)
			result, err := b.take(t.Context(), "hold", "restore")
			if err != nil || !strings.Contains(result.Waiting(), tc.want) {
				t.Errorf("waits for %q, error %v, want %q", result.Waiting(), err, tc.want)
			}
			if len(b.changes()) != 0 {
				t.Errorf("changes %q", b.changes())
			}
		})
	}
}

// A control plane without Machines says what holds it, instead of that it is lost.
func TestLostControlPlaneIsHeld(t *testing.T) {
	b := restoring(t)
	condition.Set(b.KCP, condition.False(controlplanev1.MachinesCreatedV1Beta1Condition, clusterv1.ConditionSeverityError, "x", "all are gone"))
	b.hold(t, operation(fleetv1.OperationModeHold))
	testenv.Must(t, b.reconcile(t))
	for _, kind := range []clusterv1.ConditionType{controlplanev1.MachinesCreatedV1Beta1Condition, controlplanev1.ResizedV1Beta1Condition} {
		if c := condition.Get(b.KCP, kind); c == nil || !strings.Contains(c.Message, "ControlPlaneRestore monday holds the control plane") {
			t.Errorf("condition %s is %+v", kind, c)
		}
	}
	if len(b.changes()) != 0 {
		t.Errorf("changes %q", b.changes())
	}
}

// TestRestoredMachineStays lets the operation end: the Machine is as the spec requires, also the annotations that only it has.
func TestRestoredMachineStays(t *testing.T) {
	b := restoring(t)
	b.KCP.Spec.Replicas = ptr.To[int32](1)
	b.hold(t, operation(fleetv1.OperationModeRestore))
	_ = b.reconcile(t)
	m, config := b.restored(t)
	delete(b.KCP.Annotations, fleetv1.OperationAnnotation)
	testenv.Must(t, b.reconcile(t))
	after, configAfter := b.restored(t)
	if diff := cmp.Diff(m.Spec, after.Spec) + cmp.Diff(m.Annotations, after.Annotations) + cmp.Diff(config, configAfter); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	s, err := b.declared().Scope(t.Context(), b.KCP)
	testenv.Must(t, err)
	if len(s.Machines) != 1 || len(s.Machines[0].Outdated) != 0 {
		t.Errorf("reasons to replace the Machine: %q", s.Machines[0].Outdated)
	}
}
