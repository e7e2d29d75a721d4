package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// pool returns a MachinePool with all defaults, changed by change.
func pool(change ...func(*clusterv1.MachinePool)) *clusterv1.MachinePool {
	p := &clusterv1.MachinePool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Spec: clusterv1.MachinePoolSpec{
			ClusterName: "c", Replicas: ptr.To(int32(1)),
			Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
				ClusterName: "c", Version: "v1.30.0", MinReadySeconds: ptr.To(int32(0)),
				Bootstrap:         clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{Kind: "KubeadmConfig", Name: "p"}},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "DockerMachinePool", Name: "p"},
			}},
		},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// withDataSecret gives a pool a user's bootstrap data.
func withDataSecret(p *clusterv1.MachinePool) {
	p.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("data")}
}

func TestMachinePoolDefault(t *testing.T) {
	bare := func(p *clusterv1.MachinePool) {
		p.Labels, p.Spec.Replicas, p.Spec.Template.Spec.MinReadySeconds = nil, nil, nil
		p.Spec.Template.Spec.Version = "1.30.0"
	}
	set := func(p *clusterv1.MachinePool) {
		p.Spec.Replicas, p.Spec.Template.Spec.MinReadySeconds = ptr.To(int32(0)), ptr.To(int32(5))
	}
	autoscaled := func(p *clusterv1.MachinePool) {
		p.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "3", clusterv1.AutoscalerMaxSizeAnnotation: "5"}
	}
	replicas := func(n *int32) func(*clusterv1.MachinePool) {
		return func(p *clusterv1.MachinePool) { p.Spec.Replicas = n }
	}
	for name, tc := range map[string]struct {
		reason        string
		old, in, want *clusterv1.MachinePool
		err           string
	}{
		"Complete": {reason: "all defaults are set already", in: pool(), want: pool()},
		"Bare":     {reason: "all defaults are set", in: pool(bare), want: pool()},
		"Set":      {reason: "values are kept, also zero", in: pool(set), want: pool(set)},
		"OwnData":  {reason: "there is no bootstrap config", in: pool(bare, withDataSecret), want: pool(withDataSecret)},
		"NewGroup": {reason: "a new node group of the autoscaler starts at its lower limit", in: pool(autoscaled, replicas(nil)), want: pool(autoscaled, replicas(ptr.To[int32](3)))},
		"Autoscaled": {
			reason: "an update without replicas keeps the number of the autoscaler",
			old:    pool(autoscaled, replicas(ptr.To[int32](4))), in: pool(autoscaled, replicas(nil)), want: pool(autoscaled, replicas(ptr.To[int32](4))),
		},
		"BadLimits": {
			reason: "the limits are not numbers", err: "must be an integer",
			in: pool(replicas(nil), autoscaled, func(p *clusterv1.MachinePool) { p.Annotations[clusterv1.AutoscalerMinSizeAnnotation] = "few" }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tc.old != nil {
				raw, err := json.Marshal(tc.old)
				if err != nil {
					t.Fatal(err)
				}
				ctx = admission.NewContextWithRequest(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{OldObject: runtime.RawExtension{Raw: raw}}})
			}
			err := (MachinePool{Enabled: true}).Default(ctx, tc.in)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.in); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMachinePoolValidate(t *testing.T) {
	const prefix = `MachinePool.cluster.x-k8s.io "p" is invalid: `
	const disabled = prefix + "spec: Forbidden: MachinePools require the feature gate MachinePool"
	deleting := func(p *clusterv1.MachinePool) { p.DeletionTimestamp = ptr.To(metav1.Now()) }
	template := func(f func(*clusterv1.MachineTemplateSpec)) *clusterv1.MachinePool {
		return pool(func(p *clusterv1.MachinePool) { f(&p.Spec.Template) })
	}
	for name, tc := range map[string]struct {
		reason   string
		disabled bool
		old, in  *clusterv1.MachinePool
		want     string
	}{
		"Valid":           {reason: "the MachinePool is valid", in: pool()},
		"OwnData":         {reason: "a user's data replaces a config", in: pool(withDataSecret)},
		"Updated":         {reason: "an update is valid", old: pool(), in: pool(withDataSecret)},
		"Disabled":        {reason: "the gate is disabled", disabled: true, in: pool(), want: disabled},
		"DisabledUpdate":  {reason: "also for updates", disabled: true, old: pool(), in: pool(), want: disabled},
		"DisabledRelease": {reason: "except those that remove finalizers", disabled: true, old: pool(deleting), in: pool(deleting)},
		"NoBootstrap": {reason: "machines need data", in: template(func(m *clusterv1.MachineTemplateSpec) {
			m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{}
		}),
			want: prefix + "spec.template.spec.bootstrap: Required value: either configRef or dataSecretName must be set"},
		"Version": {reason: "the version is invalid", in: template(func(m *clusterv1.MachineTemplateSpec) { m.Spec.Version = "v1" }),
			want: prefix + `spec.template.spec.version: Invalid value: "v1": must be a Kubernetes version with a leading "v", such as v1.30.2`},
		"Labels": {reason: "the label is invalid", in: template(func(m *clusterv1.MachineTemplateSpec) { m.Labels = map[string]string{"a": "b c"} }),
			want: prefix + `spec.template.metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		"NoInfra": {reason: "machines need infrastructure", in: template(func(m *clusterv1.MachineTemplateSpec) { m.Spec.InfrastructureRef.Name = "" }),
			want: prefix + "spec.template.spec.infrastructureRef: Required value: must reference an infrastructure machine pool, with apiGroup, kind and name"},
		"Replicas": {reason: "no number of Machines is negative", in: pool(func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To(int32(-1)) }),
			want: prefix + "spec.replicas: Invalid value: -1: must not be negative"},
		"Ready": {reason: "no time is negative", in: pool(func(p *clusterv1.MachinePool) { p.Spec.Template.Spec.MinReadySeconds = ptr.To(int32(-1)) }),
			want: prefix + "spec.template.spec.minReadySeconds: Invalid value: -1: must not be negative"},
		"NegativeDeleting": {reason: "finalizers can be removed", old: pool(deleting), in: pool(deleting, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To(int32(-1)) })},
		"Cluster": {reason: "the Cluster cannot be changed", old: pool(), in: pool(func(p *clusterv1.MachinePool) { p.Spec.ClusterName = "d" }),
			want: prefix + "spec.clusterName: Forbidden: cannot be changed: create a new object for the other Cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := MachinePool{Enabled: !tc.disabled}, error(nil)
			if tc.old == nil {
				_, err = w.ValidateCreate(t.Context(), tc.in)
			} else {
				_, err = w.ValidateUpdate(t.Context(), tc.old, tc.in)
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
	if _, err := (MachinePool{}).ValidateDelete(t.Context(), pool()); err != nil {
		t.Errorf("deleting: %v", err)
	}
}
