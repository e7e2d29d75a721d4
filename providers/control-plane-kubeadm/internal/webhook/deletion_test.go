package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// doomed is a control plane with the healthy Machines a and b, and c, which is not healthy, while a user deletes a.
type doomed struct {
	cluster  *clusterv1.Cluster
	kcp      *controlplanev1.KubeadmControlPlane
	machines map[string]*clusterv1.Machine
	user     string
	options  metav1.DeleteOptions
	dryRun   bool
	failing  error
}

func newDoomed() *doomed {
	d := &doomed{
		cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cluster"}},
		kcp: &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp", UID: "cp", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "cluster"},
		}}},
		machines: map[string]*clusterv1.Machine{}, user: "jane",
	}
	for _, name := range []string{"a", "b", "c"} {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d.kcp, controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"))},
		}, Spec: clusterv1.MachineSpec{ClusterName: "cluster"}, Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: name}}}
		if name != "c" {
			condition.Set(m, condition.True(controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition))
		}
		d.machines[name] = m
	}
	return d
}

// webhook returns the webhook, with everything in its cache.
func (d *doomed) webhook(t *testing.T) (*deletions, *clocktesting.FakeClock) {
	t.Helper()
	scheme := runtime.NewScheme()
	testenv.Must(t, clusterv1.AddToScheme(scheme))
	testenv.Must(t, controlplanev1.AddToScheme(scheme))
	objects := []client.Object{}
	if d.cluster != nil {
		objects = append(objects, d.cluster)
	}
	if d.kcp != nil {
		objects = append(objects, d.kcp)
	}
	for _, m := range d.machines {
		objects = append(objects, m)
	}
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&clusterv1.Machine{}, snapshot.ClusterIndex, snapshot.ByCluster).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if d.failing != nil {
				return d.failing
			}
			return c.List(ctx, list, opts...)
		}}).Build()
	clock := clocktesting.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	return &deletions{reader: cached, clock: clock}, clock
}

// request is the deletion of a Machine.
func (d *doomed) request(t *testing.T, name string) admission.Request {
	t.Helper()
	raw, err := json.Marshal(d.machines[name])
	testenv.Must(t, err)
	options, err := json.Marshal(d.options)
	testenv.Must(t, err)
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "ns", Name: name, Operation: admissionv1.Delete, UserInfo: authenticationv1.UserInfo{Username: d.user}, DryRun: ptr.To(d.dryRun),
		OldObject: runtime.RawExtension{Raw: raw}, Options: runtime.RawExtension{Raw: options},
	}}
}

func TestDeletionsThatAreChecked(t *testing.T) {
	annotate := func(obj client.Object, key, value string) { obj.SetAnnotations(map[string]string{key: value}) }
	deleting := func(obj client.Object) {
		obj.SetDeletionTimestamp(&metav1.Time{Time: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)})
		obj.SetFinalizers([]string{"x.io/y"})
	}
	tests := []struct {
		reason  string
		arrange func(*doomed)
		refused bool
	}{
		{"a user's", func(*doomed) {}, true},
		{"a dry run", func(d *doomed) { d.dryRun = true }, true},
		{"another program's, which has not looked at this version", func(d *doomed) {
			d.user, d.options.Preconditions = "system:serviceaccount:ns:x", &metav1.Preconditions{UID: ptr.To(types.UID("a"))}
		}, true},
		{"the control plane controller's", func(d *doomed) {
			d.options.Preconditions = &metav1.Preconditions{ResourceVersion: ptr.To("1")}
		}, false},
		{"the garbage collector's", func(d *doomed) { d.user = "system:serviceaccount:kube-system:generic-garbage-collector" }, false},
		{"that of a namespace", func(d *doomed) { d.user = "system:serviceaccount:kube-system:namespace-controller" }, false},
		{"one that the user wants in any case", func(d *doomed) { annotate(d.machines["a"], controlplanev1.AllowQuorumLossAnnotation, "") }, false},
		{"a move's", func(d *doomed) { annotate(d.machines["a"], deleteForMove, "") }, false},
		{"a paused Machine's", func(d *doomed) { annotate(d.machines["a"], clusterv1.PausedAnnotation, "") }, false},
		{"a worker's", func(d *doomed) { d.machines["a"].Labels = nil }, false},
		{"one that has begun", func(d *doomed) { deleting(d.machines["a"]) }, false},
		{"of a Machine without a control plane", func(d *doomed) { d.machines["a"].OwnerReferences = nil }, false},
		{"of one of another kind", func(d *doomed) { d.machines["a"].OwnerReferences[0].Kind = "Other" }, false},
		{"its control plane is gone", func(d *doomed) { d.kcp = nil }, false},
		{"its control plane was replaced", func(d *doomed) { d.kcp.UID = "other" }, false},
		{"its control plane is being deleted", func(d *doomed) { deleting(d.kcp) }, false},
		{"its control plane is paused", func(d *doomed) { annotate(d.kcp, clusterv1.PausedAnnotation, "") }, false},
		{"an operation holds it", func(d *doomed) {
			annotate(d.kcp, fleetv1.OperationAnnotation, `{"kind": "ControlPlaneRecovery", "name": "r", "uid": "u", "mode": "Hold"}`)
		}, false},
		{"an operation that cannot be read holds it", func(d *doomed) { annotate(d.kcp, fleetv1.OperationAnnotation, "{") }, false},
		{"a rotation of CAs does not hold it", func(d *doomed) {
			annotate(d.kcp, fleetv1.OperationAnnotation, `{"kind": "CertificateAuthorityRotation", "name": "r", "uid": "u", "mode": "Rotate"}`)
		}, true},
		{"etcd is external", func(d *doomed) { d.kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.CAFile = "ca" }, false},
		{"the Cluster is gone", func(d *doomed) { d.cluster = nil }, false},
		{"the Cluster is being deleted", func(d *doomed) { deleting(d.cluster) }, false},
		{"the Cluster is paused", func(d *doomed) { d.cluster.Spec.Paused = ptr.To(true) }, false},
		{"all are healthy", func(d *doomed) {
			condition.Set(d.machines["c"], condition.True(controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition))
		}, false},
		{"the other one is joining", func(d *doomed) { d.machines["c"].Status.NodeRef = clusterv1.MachineNodeReference{} }, false},
		{"the cache does not respond", func(d *doomed) { d.failing = errors.New("no response") }, false},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			d := newDoomed()
			tt.arrange(d)
			webhook, _ := d.webhook(t)
			response := webhook.Handle(t.Context(), d.request(t, "a"))
			if response.Allowed == tt.refused {
				t.Errorf("allowed %t: %+v", response.Allowed, response.Result)
			}
			if tt.refused && !strings.Contains(response.Result.Message, controlplanev1.AllowQuorumLossAnnotation) {
				t.Errorf("message %q", response.Result.Message)
			}
		})
	}
}

// Several Machines are deleted before the cache shows that the first is.
func TestDeletionsAreRemembered(t *testing.T) {
	d := newDoomed()
	condition.Set(d.machines["c"], condition.True(controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition))
	d.machines["d"] = d.machines["c"].DeepCopy()
	d.machines["d"].Name, d.machines["d"].UID, d.machines["d"].Status.Conditions = "d", "d", nil
	d.machines["d"].Status.Deprecated = nil
	webhook, clock := d.webhook(t)
	request := func(name string, want bool) {
		t.Helper()
		if got := webhook.Handle(t.Context(), d.request(t, name)); got.Allowed != want {
			t.Errorf("Machine %s: allowed %t: %+v", name, got.Allowed, got.Result)
		}
	}
	d.dryRun = true
	request("a", true)
	request("b", true)
	d.dryRun = false
	request("a", true)
	request("a", true)
	request("b", false)
	clock.Step(deletionLag)
	request("b", true)
}
