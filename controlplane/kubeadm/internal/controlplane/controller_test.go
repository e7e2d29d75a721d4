package controlplane

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

const provider = "infrastructure.cluster.x-k8s.io"

// whole returns a control plane with three Machines that all steps can work with. Its template does not exist.
func whole(t *testing.T) (*bench, *kcptest.Workload) {
	t.Helper()
	b, f := three(t)
	b.Cluster.Status.InfrastructureReady = true
	b.KCP.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(b.Cluster, clusterv1.GroupVersion.WithKind("Cluster"))}
	b.KCP.Spec.Replicas = ptr.To[int32](3)
	b.KCP.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"team": "x"}
	b.KCP.Spec.MachineTemplate.InfrastructureRef = corev1.ObjectReference{APIVersion: provider + "/v1", Kind: "TestMachineTemplate", Name: "missing", Namespace: "ns"}
	objects := []client.Object{b.Cluster.DeepCopy()}
	for _, plural := range []string{"testmachines", "testmachinetemplates"} {
		objects = append(objects, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: plural + "." + provider, Labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1"},
		}})
	}
	for _, name := range []string{"a", "c"} { // b has none
		infrastructure := &unstructured.Unstructured{Object: map[string]any{"apiVersion": provider + "/v1", "kind": "TestMachine"}}
		infrastructure.SetNamespace("ns")
		infrastructure.SetName(name)
		objects = append(objects, infrastructure)
	}
	for _, obj := range objects {
		if err := b.Client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range b.Machines {
		m.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: ptr.To("v1.30.0"), InfrastructureRef: corev1.ObjectReference{APIVersion: provider + "/v1", Kind: "TestMachine", Name: m.Name}}
		if err := b.Client.Update(t.Context(), m.Machine); err != nil {
			t.Fatal(err)
		}
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
				b.KCP.Status.Initialized = false // for a moment, so that they are created
				if _, err := b.take(t.Context(), "certificates"); err != nil {
					t.Fatal(err)
				}
				b.KCP.Status.Initialized = true
			}
			b.Drained(t, "c") // any change of its status
			b.Unhealthy(t, "c")
			f.Gone("c")
			direct := b.Client.(client.WithWatch)
			b.Client = interceptor.NewClient(direct, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
					if obj.GetName() == tc.fails {
						return errors.New("rejected")
					}
					return c.Patch(ctx, obj, p, opts...)
				},
			})
			declared := b.declared()
			s, err := declared.Scope(t.Context(), b.KCP)
			if err != nil {
				t.Fatal(err)
			}
			_, err = step.Try(t.Context(), b.KCP, s, append(declared.Steps, declared.Report...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			m := &clusterv1.Machine{}
			if err := direct.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, m); err != nil {
				t.Fatal(err)
			}
			if !condition.IsFalse(m, controlplanev1.MachineEtcdPodHealthyCondition) {
				t.Error("the Machines were not inspected")
			}
			if healed := m.DeletionTimestamp != nil; healed != tc.heals {
				t.Errorf("the unhealthy Machine was remediated: %t, want %t", healed, tc.heals)
			}
			if maintained := slices.Contains(f.Actions(), "maintain v1.30.0"); maintained != tc.maintains {
				t.Errorf("the workload cluster was maintained: %t, want %t", maintained, tc.maintains)
			}
			if created := condition.Get(b.KCP, controlplanev1.MachinesCreatedCondition); !tc.secret && created.Reason != controlplanev1.InfrastructureTemplateCloningFailedReason {
				t.Errorf("condition %+v, want that the infrastructure machine cannot be created", created)
			}
		})
	}
}
