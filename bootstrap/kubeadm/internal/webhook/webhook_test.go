package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
)

func TestDefault(t *testing.T) {
	spec := bootstrapv1.KubeadmConfigSpec{InitConfiguration: &bootstrapv1.InitConfiguration{}, JoinConfiguration: &bootstrapv1.JoinConfiguration{}}
	want := *spec.DeepCopy()
	want.Format = bootstrapv1.CloudConfig
	want.InitConfiguration.NodeRegistration.ImagePullPolicy = "IfNotPresent"
	want.JoinConfiguration.NodeRegistration.ImagePullPolicy = "IfNotPresent"

	config := &bootstrapv1.KubeadmConfig{Spec: *spec.DeepCopy()}
	template := &bootstrapv1.KubeadmConfigTemplate{}
	template.Spec.Template.Spec = *spec.DeepCopy()
	if err := (configs{}).Default(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := (templates{}).Default(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, config.Spec); diff != "" {
		t.Errorf("a config gets its defaults, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, template.Spec.Template.Spec); diff != "" {
		t.Errorf("a template gets those of a config, -want +got:\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	twice := bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{Path: "/a"}, {Path: "/a"}}}
	ignition := bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.Ignition}
	tests := []struct {
		reason string
		spec   bootstrapv1.KubeadmConfigSpec
		gate   bool
		// field is the invalid one, below spec of a config; empty: the spec is valid.
		field string
	}{
		{reason: "nothing is required"},
		{reason: "paths are unique", spec: twice, field: "files[1].path"},
		{reason: "ignition needs its gate", spec: ignition, field: "format"},
		{reason: "and has it here", spec: ignition, gate: true},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			config := &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: tt.spec}
			template := &bootstrapv1.KubeadmConfigTemplate{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
			template.Spec.Template.Spec = tt.spec
			var got []string
			_, err := configs{tt.gate}.ValidateCreate(t.Context(), config)
			got = append(got, fields(t, err)...)
			_, err = configs{tt.gate}.ValidateUpdate(t.Context(), &bootstrapv1.KubeadmConfig{}, config)
			got = append(got, fields(t, err)...)
			_, err = templates{tt.gate}.ValidateCreate(t.Context(), template)
			got = append(got, fields(t, err)...)
			_, err = templates{tt.gate}.ValidateUpdate(t.Context(), &bootstrapv1.KubeadmConfigTemplate{}, template)
			got = append(got, fields(t, err)...)
			var want []string
			if tt.field != "" {
				want = []string{"spec." + tt.field, "spec." + tt.field, "spec.template.spec." + tt.field, "spec.template.spec." + tt.field}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("invalid fields, -want +got:\n%s", diff)
			}
		})
	}
}

// fields are what an Invalid answer names.
func fields(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	status, ok := err.(apierrors.APIStatus) // The error itself must be one.
	if !ok || !apierrors.IsInvalid(err) {
		t.Fatalf("%v is not an Invalid answer", err)
	}
	var out []string
	for _, cause := range status.Status().Details.Causes {
		out = append(out, cause.Field)
	}
	return out
}

func TestWarnings(t *testing.T) {
	cloudConfig, ignition := bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.CloudConfig}, bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.Ignition}
	tests := []struct {
		reason        string
		before, after *bootstrapv1.KubeadmConfigSpec
		want          bool
	}{
		{reason: "a new one with ignition", after: &ignition, want: true},
		{reason: "one that turns to ignition", before: &cloudConfig, after: &ignition, want: true},
		{reason: "one that had it", before: &ignition, after: &ignition},
		{reason: "one without", after: &cloudConfig},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			of := func(spec *bootstrapv1.KubeadmConfigSpec) (*bootstrapv1.KubeadmConfig, *bootstrapv1.KubeadmConfigTemplate) {
				template := &bootstrapv1.KubeadmConfigTemplate{}
				template.Spec.Template.Spec = *spec
				return &bootstrapv1.KubeadmConfig{Spec: *spec}, template
			}
			config, template := of(tt.after)
			w, tw := configs{true}, templates{true}
			got, err := w.ValidateCreate(t.Context(), config)
			gotTemplate, errTemplate := tw.ValidateCreate(t.Context(), template)
			if tt.before != nil {
				oldConfig, oldTemplate := of(tt.before)
				got, err = w.ValidateUpdate(t.Context(), oldConfig, config)
				gotTemplate, errTemplate = tw.ValidateUpdate(t.Context(), oldTemplate, template)
			}
			if err != nil || errTemplate != nil {
				t.Fatal(err, errTemplate)
			}
			var want, wantTemplate []string
			const says = ": ignition is accepted, but generating bootstrap data in that format is not implemented yet: Machines with it get no data, and their KubeadmConfigs report that"
			if tt.want {
				want, wantTemplate = []string{"spec.format" + says}, []string{"spec.template.spec.format" + says}
			}
			if diff := cmp.Diff([][]string{want, wantTemplate}, [][]string{got, gotTemplate}); diff != "" {
				t.Errorf("warnings, -want +got:\n%s", diff)
			}
		})
	}
}
