package machines

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// After an interruption, the KubeadmConfig of a Machine is created once.
func TestAnInterruptedCreationIsContinued(t *testing.T) {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "m", UID: "m-uid",
			Labels:          map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""},
			OwnerReferences: []metav1.OwnerReference{{Kind: "KubeadmControlPlane", Name: "cp", UID: "cp-uid", Controller: ptr.To(true)}},
		},
		Spec: clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{Kind: "KubeadmConfig", Name: "m"}}},
	}
	m.Spec.InfrastructureRef.Name = "not ours"
	b := kcptest.New(t, m)
	b.Machines = []*snapshot.Machine{{Machine: m}}
	if _, err := manager(b).Complete(t.Context(), b.ControlPlane); err != nil {
		t.Fatal(err)
	}
	config := &bootstrapv1.KubeadmConfig{}
	if err := b.API.Get(t.Context(), client.ObjectKeyFromObject(m), config); err != nil || !metav1.IsControlledBy(config, m) {
		t.Errorf("KubeadmConfig %+v, error %v", config.ObjectMeta, err)
	}
	again := kcptest.New(t, m, config)
	again.Machines = []*snapshot.Machine{{Machine: m}}
	if _, err := manager(again).Complete(t.Context(), again.ControlPlane); err != nil {
		t.Errorf("a KubeadmConfig that the cache does not show yet is an error: %v", err)
	}
	foreign := config.DeepCopy()
	foreign.ResourceVersion, foreign.OwnerReferences = "", nil
	again = kcptest.New(t, m, foreign)
	again.Machines = []*snapshot.Machine{{Machine: m}}
	if _, err := manager(again).Complete(t.Context(), again.ControlPlane); err == nil {
		t.Error("a KubeadmConfig without an owner is accepted")
	}
}

// The first Machine initializes the cluster, even without a configuration for that. All others join.
func TestBootstrapConfigs(t *testing.T) {
	full := bootstrapv1.KubeadmConfigSpec{
		ClusterConfiguration: bootstrapv1.ClusterConfiguration{ImageRepository: "r"},
		InitConfiguration:    bootstrapv1.InitConfiguration{SkipPhases: []string{"p"}},
		JoinConfiguration:    bootstrapv1.JoinConfiguration{SkipPhases: []string{"p"}},
	}
	timeouts := bootstrapv1.Timeouts{ControlPlaneComponentHealthCheckSeconds: ptr.To[int32](60)}
	for _, test := range []struct {
		reason      string
		spec        bootstrapv1.KubeadmConfigSpec
		initialized bool
		want        []bool // sections: cluster, init, join
	}{
		{"all sections, first", full, false, []bool{true, true, false}},
		{"all sections, joining", full, true, []bool{false, false, true}},
		{"no sections, first", bootstrapv1.KubeadmConfigSpec{}, false, []bool{false, true, false}},
		{"no sections, joining", bootstrapv1.KubeadmConfigSpec{}, true, []bool{false, false, false}},
		{"clusterConfiguration only, first", bootstrapv1.KubeadmConfigSpec{ClusterConfiguration: full.ClusterConfiguration}, false, []bool{true, false, false}},
		{"timeouts only, first", bootstrapv1.KubeadmConfigSpec{InitConfiguration: bootstrapv1.InitConfiguration{Timeouts: timeouts}}, false, []bool{false, true, true}},
		{"joinConfiguration only, first", bootstrapv1.KubeadmConfigSpec{JoinConfiguration: full.JoinConfiguration}, false, []bool{false, true, false}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			b := kcptest.New(t)
			b.KCP.Spec.KubeadmConfigSpec, b.KCP.Status.Initialization.ControlPlaneInitialized = test.spec, ptr.To(test.initialized)
			m := &snapshot.Machine{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "m"}, Spec: clusterv1.MachineSpec{Version: b.KCP.Spec.Version}}}
			b.Machines = []*snapshot.Machine{m}
			testenv.Must(t, manager(b).createConfig(t.Context(), b.ControlPlane, m, Role(!test.initialized)))
			created := m.Config.Spec
			got := []bool{kubeadm.Defined(created.ClusterConfiguration), kubeadm.Defined(created.InitConfiguration), kubeadm.Defined(created.JoinConfiguration)}
			if !slices.Equal(test.want, got) {
				t.Errorf("cluster, init and join sections: %t, want %t", got, test.want)
			}
			spec, err := snapshot.SpecOf(t.Context(), b.KCP)
			testenv.Must(t, err)
			testenv.Must(t, m.Compare(t.Context(), spec, b.Clock))
			if len(m.Outdated) > 0 {
				t.Errorf("the Machine is outdated from the start: %q", m.Outdated)
			}
		})
	}
}

// A stale cache is not reported in a condition.
func TestInterruptedInitializationWithAStaleCache(t *testing.T) {
	b, _ := kcptest.Three(t)
	b.KCP.Status.Initialization.ControlPlaneInitialized = nil
	b.Diverge()
	b.LiveKCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true) // by another leader
	first := b.Machines[:1]
	first[0].Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{Kind: "KubeadmConfig", Name: first[0].Name}
	b.Machines, b.API.Writes = first, nil
	complete := step.Do("complete", manager(b).Complete).Sets(controlplanev1.MachinesCreatedV1Beta1Condition)
	_, err := steptest.Run(t.Context(), b.KCP, b.ControlPlane, complete)
	if err == nil || !step.IsStale(err) {
		t.Errorf("error %v, want a stale one", err)
	}
	if len(b.API.Writes) > 0 || condition.Has(b.KCP, controlplanev1.MachinesCreatedV1Beta1Condition) {
		t.Errorf("writes %q, conditions %+v, want none", b.API.Writes, b.KCP.GetV1Beta1Conditions())
	}
}

// Before the first Machine may initialize the cluster, that is checked live. Joining Machines cost no live reads.
func TestInterruptedCreationWithAStaleCache(t *testing.T) {
	interrupted := func(name string) *clusterv1.Machine {
		m := kcptest.Machine(name, "cp-uid")
		m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{Kind: "KubeadmConfig", Name: name}
		m.Spec.InfrastructureRef.Name = "not ours"
		return m
	}
	cases := []struct {
		reason   string
		machines []string
		live     func(*kcptest.World)
		stale    bool
		created  []string
		reads    int
	}{
		{reason: "it is the first", machines: []string{"m"}, live: func(*kcptest.World) {}, created: []string{"create KubeadmConfig m"}, reads: 3},
		{
			reason: "another leader has initialized the cluster", machines: []string{"m"}, stale: true, reads: 2,
			live: func(w *kcptest.World) { w.LiveKCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true) },
		},
		{reason: "the Cluster is initialized", machines: []string{"m"}, stale: true, reads: 1, live: func(w *kcptest.World) {
			condition.Set(w.LiveCluster, condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition))
		}},
		{reason: "the Cluster is being deleted", machines: []string{"m"}, stale: true, reads: 1, live: func(w *kcptest.World) {
			w.LiveCluster.DeletionTimestamp = &metav1.Time{Time: object.Now()}
		}},
		{
			reason: "Machines that join", machines: []string{"m", "n"}, created: []string{"create KubeadmConfig m", "create KubeadmConfig n"},
			live: func(w *kcptest.World) { w.LiveKCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true) },
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			var objects []client.Object
			for _, name := range tc.machines {
				objects = append(objects, interrupted(name))
			}
			w := kcptest.New(t, objects...)
			w.Reload(t)
			w.Diverge()
			tc.live(w)
			_, err := manager(w).Complete(t.Context(), w.ControlPlane)
			if step.IsStale(err) != tc.stale || (err != nil) != tc.stale {
				t.Errorf("error %v, want a stale one: %t", err, tc.stale)
			}
			if !slices.Equal(w.API.Writes, tc.created) || len(w.API.LiveReads) != tc.reads {
				t.Errorf("writes %q, want %q; %d live reads, want %d", w.API.Writes, tc.created, len(w.API.LiveReads), tc.reads)
			}
		})
	}
}
