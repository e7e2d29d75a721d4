package controlplane

import (
	"context"
	"errors"
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
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

const provider = "infrastructure.cluster.x-k8s.io"

// whole is a control plane with three Machines that Reconcile works on from end to end. Its template does not exist.
func whole(t *testing.T) (*bench, *fakeCluster) {
	t.Helper()
	b, f := three(t)
	b.cluster.Status.InfrastructureReady = true
	b.kcp.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(b.cluster, clusterv1.GroupVersion.WithKind("Cluster"))}
	b.kcp.Spec.Replicas = ptr.To[int32](3)
	b.kcp.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"team": "x"}
	b.kcp.Spec.MachineTemplate.InfrastructureRef = corev1.ObjectReference{APIVersion: provider + "/v1", Kind: "TestMachineTemplate", Name: "missing", Namespace: "ns"}
	objects := []client.Object{b.cluster.DeepCopy()}
	for _, plural := range []string{"testmachines", "testmachinetemplates"} {
		objects = append(objects, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: plural + "." + provider, Labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1"},
		}})
	}
	for _, name := range []string{"a", "c"} { // that of b is missing
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
	for _, m := range b.machines {
		m.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: ptr.To("v1.30.0"), InfrastructureRef: corev1.ObjectReference{APIVersion: provider + "/v1", Kind: "TestMachine", Name: m.Name}}
		if err := b.Client.Update(t.Context(), m.Machine); err != nil {
			t.Fatal(err)
		}
	}
	b.Workloads = f
	return b, f
}

// What fails for one Machine, or for what comes next, must not stop the care for those that are there.
func TestWhatFailsStopsNothingElse(t *testing.T) {
	cases := []struct {
		reason string
		fails  string // the Machine whose writes are refused
		secret bool   // a certificate authority is lost
		want   string
		heals  bool
	}{
		{reason: "a template is missing, and what one Machine refers to", want: `testmachinetemplates.infrastructure.cluster.x-k8s.io "missing" not found`, heals: true},
		{reason: "a change of a Machine is refused", fails: "a", want: "refused", heals: true},
		{reason: "without a certificate authority no Machine could replace another", secret: true, want: "restore it from a backup"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := whole(t)
			if !tc.secret {
				b.kcp.Status.Initialized = false // for a moment, so that they are made
				if _, err := b.take(t.Context(), "certificates"); err != nil {
					t.Fatal(err)
				}
				b.kcp.Status.Initialized = true
			}
			b.drained(t, "c") // any status, to read it anew
			failing(t, b, "c")
			f.gone("c")
			real := b.Client.(client.WithWatch)
			b.Client = interceptor.NewClient(real, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
					if obj.GetName() == tc.fails {
						return errors.New("refused")
					}
					return c.Patch(ctx, obj, p, opts...)
				},
			})
			declared := b.declared()
			s, err := b.Controller.scope(t.Context(), b.kcp)
			if err != nil {
				t.Fatal(err)
			}
			_, err = step.Try(t.Context(), b.kcp, s, append(declared.Steps, declared.Report...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			m := &clusterv1.Machine{}
			if err := real.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, m); err != nil {
				t.Fatal(err)
			}
			if !condition.IsFalse(m, controlplanev1.MachineEtcdPodHealthyCondition) {
				t.Error("the Machines were not inspected")
			}
			if healed := m.DeletionTimestamp != nil; healed != tc.heals {
				t.Errorf("the unhealthy Machine was remediated: %t, want %t", healed, tc.heals)
			}
			if created := condition.Get(b.kcp, controlplanev1.MachinesCreatedCondition); !tc.secret && created.Reason != controlplanev1.InfrastructureTemplateCloningFailedReason {
				t.Errorf("condition %+v, want that a Machine misses its infrastructure", created)
			}
		})
	}
}

// failing plays a health check that finds a Machine unhealthy.
func failing(t *testing.T, b *bench, name string) {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, m); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []clusterv1.ConditionType{clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition} {
		condition.Set(m, condition.False(kind, clusterv1.ConditionSeverityWarning, "", ""))
	}
	if err := b.Client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// A Machine that somebody else made gets our hook by one write; one that we make has it from the start.
func TestMachinesThatAreTakenOverGetTheHook(t *testing.T) {
	b, f := three(t)
	b.annotate(t, "b", nil)
	reload(t, b, f)
	for round, want := range []string{"patch b", ""} {
		for _, m := range b.machines {
			m.Labels = b.labels()
			if err := b.Client.Update(t.Context(), m.Machine); err != nil {
				t.Fatal(err)
			}
		}
		b.writes = nil
		if _, err := b.sync(t.Context(), b.scope); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(b.writes, ", "); got != want {
			t.Errorf("round %d: writes %q, want %q", round, got, want)
		}
	}
	infrastructure := &unstructured.Unstructured{}
	infrastructure.SetName("new")
	m, err := b.newMachine(infrastructure, "")
	if err != nil || !hooked(m) {
		t.Errorf("a new Machine has the hook: %t, error %v", hooked(m), err)
	}
	if _, copied := b.belongingTo(m).Annotations[controlplanev1.PreTerminateHookCleanupAnnotation]; copied {
		t.Error("what a Machine refers to has the hook, too")
	}
}
