package controlplane

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// kind returns a kind of an infrastructure provider.
func kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: name}
}

// whole returns a control plane with three Machines that all steps can work with. Its template does not exist.
func whole(t *testing.T) (*bench, *kcptest.Workload) {
	t.Helper()
	b, f := three(t)
	b.Cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	b.KCP.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(b.Cluster, clusterv1.GroupVersion.WithKind("Cluster"))}
	b.KCP.Spec.Replicas = ptr.To[int32](3)
	b.KCP.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"team": "x"}
	b.KCP.Spec.MachineTemplate.Spec.InfrastructureRef = *object.Reference(kind("TestMachineTemplate"), "missing")
	objects := []client.Object{b.Cluster.DeepCopy(), object.CRD(kind("TestMachine")), object.CRD(kind("TestMachineTemplate"))}
	for _, name := range []string{"a", "c"} { // b has none
		objects = append(objects, kcptest.Build().Provided(kind("TestMachine"), name, nil))
	}
	for _, obj := range objects {
		testenv.Must(t, b.API.Create(t.Context(), obj))
	}
	for _, m := range b.Machines {
		m.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: "v1.30.0", InfrastructureRef: *object.Reference(kind("TestMachine"), m.Name)}
		testenv.Must(t, b.API.Update(t.Context(), m.Machine))
	}
	b.Workloads = workloads{f}
	return b, f
}

// Errors of one Machine, or of a step that new Machines depend on, must not affect the other Machines.
func TestErrorsAreIsolated(t *testing.T) {
	cases := []struct {
		reason    string
		fails     string // the Machine whose writes fail
		secret    bool   // a CA does not exist
		want      string
		heals     bool
		maintains bool // not before remediations
	}{
		{reason: "the template does not exist, and neither does an infrastructure machine", want: `testmachinetemplates.infrastructure.cluster.x-k8s.io "missing" not found`, heals: true},
		{reason: "a change of a Machine is rejected", fails: "a", want: "rejected", heals: true},
		{reason: "without a CA no Machine can be replaced", secret: true, want: "restore it from a backup", maintains: true},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := whole(t)
			if !tc.secret {
				b.KCP.Status.Initialization.ControlPlaneInitialized = nil // for a moment, so that they are created
				if _, err := b.take(t.Context(), "certificates"); err != nil {
					t.Fatal(err)
				}
				b.KCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
			}
			b.Drained(t, "c") // any change of its status
			b.Unhealthy(t, "c")
			f.Gone("c")
			b.API.Before = func(r fakeapi.Request) error {
				if r.Verb == "patch" && r.Subresource == "" && r.Name == tc.fails {
					return errors.New("rejected")
				}
				return nil
			}
			declared := b.declared()
			s, err := declared.Scope(t.Context(), b.KCP)
			if err != nil {
				t.Fatal(err)
			}
			_, err = steptest.Run(t.Context(), b.KCP, s, append(declared.Steps, declared.Report...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			m := &clusterv1.Machine{}
			testenv.Must(t, b.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, m))
			if !condition.IsFalse(m, controlplanev1.MachineEtcdPodHealthyV1Beta1Condition) {
				t.Error("the Machines were not inspected")
			}
			if healed := m.DeletionTimestamp != nil; healed != tc.heals {
				t.Errorf("the unhealthy Machine was remediated: %t, want %t", healed, tc.heals)
			}
			if maintained := slices.Contains(f.Actions(), "maintain v1.30.0"); maintained != tc.maintains {
				t.Errorf("the workload cluster was maintained: %t, want %t", maintained, tc.maintains)
			}
			if created := condition.Get(b.KCP, controlplanev1.MachinesCreatedV1Beta1Condition); !tc.secret && created.Reason != controlplanev1.InfrastructureTemplateCloningFailedV1Beta1Reason {
				t.Errorf("condition %+v, want that the infrastructure machine cannot be created", created)
			}
		})
	}
}
