package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// deployment returns a MachineDeployment with all defaults, changed by change.
func deployment(change ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
	labels := func() map[string]string {
		return map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "d"}
	}
	md := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "c", Replicas: ptr.To(int32(1)),
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
				Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
					MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
				},
			}},
			Selector: metav1.LabelSelector{MatchLabels: labels()},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: labels()},
				Spec:       clusterv1.MachineSpec{ClusterName: "c", Version: "v1.30.0", MinReadySeconds: ptr.To(int32(0))},
			},
		},
	}
	for _, f := range change {
		f(md)
	}
	return md
}

func autoscaledDeployment(n *int32) func(*clusterv1.MachineDeployment) {
	return func(md *clusterv1.MachineDeployment) {
		md.Spec.Replicas = n
		md.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "2", clusterv1.AutoscalerMaxSizeAnnotation: "4"}
	}
}

func onDelete(md *clusterv1.MachineDeployment) {
	md.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}
}

func ownSelector(md *clusterv1.MachineDeployment) {
	md.Spec.Selector.MatchLabels = map[string]string{"own": "label", clusterv1.ClusterNameLabel: "c"}
	md.Spec.Template.Labels = map[string]string{"own": "label", clusterv1.ClusterNameLabel: "c"}
}

func TestMachineDeploymentDefault(t *testing.T) {
	cases := map[string]struct {
		reason        string
		old, md, want *clusterv1.MachineDeployment
	}{
		"Complete": {reason: "all defaults are set already", md: deployment(), want: deployment()},
		"Bare": {
			reason: "all defaults are set",
			md: &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d"}, Spec: clusterv1.MachineDeploymentSpec{
				ClusterName: "c", Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{ClusterName: "c", Version: "1.30.0"}},
			}},
			want: deployment(),
		},
		"OnDelete": {reason: "the strategy has no rolling update settings", md: deployment(onDelete), want: deployment(onDelete)},
		"OwnSelector": {
			reason: "only the cluster name label is added",
			md: deployment(func(md *clusterv1.MachineDeployment) {
				md.Spec.Selector.MatchLabels = map[string]string{"own": "label"}
				md.Spec.Template.Labels = map[string]string{"own": "label"}
			}),
			want: deployment(ownSelector),
		},
		"Autoscaled": {
			reason: "an update without replicas keeps the number of the autoscaler",
			old:    deployment(autoscaledDeployment(ptr.To(int32(3)))), md: deployment(autoscaledDeployment(nil)), want: deployment(autoscaledDeployment(ptr.To(int32(3)))),
		},
		"AutoscaledNew": {reason: "a new object starts at the lower limit of the autoscaler", md: deployment(autoscaledDeployment(nil)), want: deployment(autoscaledDeployment(ptr.To(int32(2))))},
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
			if err := (MachineDeployment{}).Default(ctx, tc.md); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.md); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMachineDeploymentValidate(t *testing.T) {
	prefix := func(name string) string { return `MachineDeployment.cluster.x-k8s.io "` + name + `" is invalid: ` }
	long := strings.Repeat("d", 64)
	cases := map[string]struct {
		reason  string
		old, md *clusterv1.MachineDeployment
		want    string
	}{
		"Valid":    {reason: "the MachineDeployment is valid", md: deployment()},
		"OnDelete": {reason: "OnDelete is valid", md: deployment(onDelete)},
		"Selector": {reason: "the selector may change", old: deployment(), md: deployment(ownSelector)},
		"Name": {reason: "the name must be a valid label value", md: deployment(func(md *clusterv1.MachineDeployment) { md.Name = long }),
			want: prefix(long) + `metadata.name: Invalid value: "` + long + `": must be a valid label value: must be no more than 63 bytes`},
		"Labels": {reason: "the selector does not match the template", md: deployment(func(md *clusterv1.MachineDeployment) { md.Spec.Template.Labels = nil }),
			want: prefix("d") + `spec.template.metadata.labels: Invalid value: null: must match spec.selector "cluster.x-k8s.io/cluster-name=c,cluster.x-k8s.io/deployment-name=d"`},
		"Bounds": {reason: "maxSurge is a string without percent sign", md: deployment(func(md *clusterv1.MachineDeployment) {
			rolling := &md.Spec.Rollout.Strategy.RollingUpdate
			rolling.MaxSurge, rolling.MaxUnavailable = ptr.To(intstr.FromString("1")), ptr.To(intstr.FromString("10%"))
		}), want: prefix("d") + `spec.rollout.strategy.rollingUpdate.maxSurge: Invalid value: "1": must be a number or a percentage`},
		"Version": {reason: "the version is invalid", md: deployment(func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.Version = "v1" }),
			want: prefix("d") + `spec.template.spec.version: Invalid value: "v1": must be a Kubernetes version with a leading "v", such as v1.30.2`},
		"Annotations": {reason: "the annotation is invalid", md: deployment(func(md *clusterv1.MachineDeployment) {
			md.Spec.Template.Annotations = map[string]string{"a b": ""}
		}), want: prefix("d") + `spec.template.metadata.annotations: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},
		"Cluster": {reason: "the Cluster cannot be changed", old: deployment(), md: deployment(func(md *clusterv1.MachineDeployment) { md.Spec.ClusterName = "e" }),
			want: prefix("d") + `spec.clusterName: Forbidden: cannot be changed: create a new object for the other Cluster`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			if tc.old == nil {
				_, err = MachineDeployment{}.ValidateCreate(t.Context(), tc.md)
			} else {
				_, err = MachineDeployment{}.ValidateUpdate(t.Context(), tc.old, tc.md)
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
