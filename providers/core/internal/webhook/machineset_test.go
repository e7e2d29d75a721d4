package webhook

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// machineSet returns a MachineSet with all defaults, changed by change.
func machineSet(change ...func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
	labels := map[string]string{clusterv1.MachineSetNameLabel: "s"}
	out := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Spec: clusterv1.MachineSetSpec{
			ClusterName: "c", Replicas: ptr.To(int32(1)), Deletion: clusterv1.MachineSetDeletionSpec{Order: "Random"}, Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{clusterv1.MachineSetNameLabel: "s"}},
				Spec:       clusterv1.MachineSpec{ClusterName: "c", Version: "v1.30.0"},
			},
		},
	}
	for _, f := range change {
		f(out)
	}
	return out
}

func autoscaledSet(s *clusterv1.MachineSet) {
	s.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "2", clusterv1.AutoscalerMaxSizeAnnotation: "4"}
}

func withReplicas(n int32) func(*clusterv1.MachineSet) {
	return func(s *clusterv1.MachineSet) { s.Spec.Replicas = &n }
}

func TestMachineSetDefault(t *testing.T) {
	own := func(s *clusterv1.MachineSet) {
		s.Spec.Selector.MatchLabels = map[string]string{"own": "label"}
		s.Spec.Template.Labels = map[string]string{"own": "label"}
	}
	cases := map[string]struct {
		reason    string
		old, set  *clusterv1.MachineSet
		want      *clusterv1.MachineSet
		wantError bool
	}{
		"Complete": {reason: "all defaults are set already", set: machineSet(), want: machineSet()},
		"Bare": {
			reason: "label, replicas, policy, selector and leading v are set",
			set: &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}, Spec: clusterv1.MachineSetSpec{
				ClusterName: "c", Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{ClusterName: "c", Version: "1.30.0"}},
			}},
			want: machineSet(),
		},
		"OwnSelector": {reason: "a selector is kept, without the cluster name label", set: machineSet(own), want: machineSet(own)},
		"Autoscaled": {
			reason: "an update without replicas keeps the number of the autoscaler",
			old:    machineSet(autoscaledSet, withReplicas(3)), set: machineSet(autoscaledSet, func(s *clusterv1.MachineSet) { s.Spec.Replicas = nil }), want: machineSet(autoscaledSet, withReplicas(3)),
		},
		"BadBounds": {reason: "the limits are not numbers", wantError: true, set: machineSet(func(s *clusterv1.MachineSet) {
			s.Spec.Replicas = nil
			s.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "few", clusterv1.AutoscalerMaxSizeAnnotation: "many"}
		})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tc.old != nil {
				raw, err := json.Marshal(tc.old)
				if err != nil {
					t.Fatal(err)
				}
				ctx = admission.NewContextWithRequest(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{OldObject: runtime.RawExtension{Raw: raw}}})
			}
			err := MachineSet{}.Default(ctx, tc.set)
			if (err != nil) != tc.wantError {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if tc.wantError {
				return
			}
			if diff := cmp.Diff(tc.want, tc.set); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMachineSetValidate(t *testing.T) {
	const prefix = `MachineSet.cluster.x-k8s.io "s" is invalid: `
	skip := func(checks string) func(*clusterv1.MachineSet) {
		return func(s *clusterv1.MachineSet) {
			s.Annotations = map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: checks}
		}
	}
	cases := map[string]struct {
		reason    string
		preflight bool
		old, set  *clusterv1.MachineSet
		want      string
	}{
		"Valid": {reason: "the MachineSet is valid", preflight: true, set: machineSet(skip("KubeadmVersionSkew, ControlPlaneIsStable"))},
		"Labels": {reason: "the selector does not match the template", set: machineSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Labels = nil }),
			want: prefix + `spec.template.metadata.labels: Invalid value: null: must match spec.selector "cluster.x-k8s.io/set-name=s"`},
		"BadLabel": {reason: "the label is invalid", set: machineSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Labels["-"] = "" }),
			want: prefix + `spec.template.metadata.labels: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},
		"Version": {reason: "the version is invalid", set: machineSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.Version = "v1" }),
			want: prefix + `spec.template.spec.version: Invalid value: "v1": must be a Kubernetes version with a leading "v", such as v1.30.2`},
		"UnknownCheck": {reason: "the check is unknown", preflight: true, set: machineSet(skip("All,Any")),
			want: prefix + `metadata.annotations[machineset.cluster.x-k8s.io/skip-preflight-checks]: Invalid value: "Any": unknown preflight check, must be one of [All KubeadmVersionSkew KubernetesVersionSkew ControlPlaneIsStable ControlPlaneVersionSkew]`},
		"GateOff": {reason: "the annotation is not used", set: machineSet(skip("All,Any"))},
		"Cluster": {reason: "the Cluster cannot be changed", old: machineSet(), set: machineSet(func(s *clusterv1.MachineSet) { s.Spec.ClusterName = "d" }),
			want: prefix + `spec.clusterName: Forbidden: cannot be changed: create a new object for the other Cluster`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, err := MachineSet{Preflight: tc.preflight}, error(nil)
			if tc.old == nil {
				_, err = w.ValidateCreate(t.Context(), tc.set)
			} else {
				_, err = w.ValidateUpdate(t.Context(), tc.old, tc.set)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
