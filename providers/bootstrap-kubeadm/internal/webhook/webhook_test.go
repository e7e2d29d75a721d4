package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestDefault(t *testing.T) {
	spec := bootstrapv1.KubeadmConfigSpec{
		InitConfiguration: bootstrapv1.InitConfiguration{SkipPhases: []string{"x"}}, JoinConfiguration: bootstrapv1.JoinConfiguration{CACertPath: "/x"},
	}
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

// Clients of v1beta1 get defaults and errors for what v1beta2 does not have.
func TestOlder(t *testing.T) {
	spec := bootstrapv1beta1.KubeadmConfigSpec{
		Format: bootstrapv1beta1.Ignition, InitConfiguration: &bootstrapv1beta1.InitConfiguration{}, UseExperimentalRetryJoin: true,
	}
	config, template := &bootstrapv1.KubeadmConfig{}, &bootstrapv1.KubeadmConfigTemplate{}
	testenv.Must(t, conversion.Shared().Convert(t.Context(), &bootstrapv1beta1.KubeadmConfig{Spec: spec}, config),
		conversion.Shared().Convert(t.Context(), &bootstrapv1beta1.KubeadmConfigTemplate{Spec: bootstrapv1beta1.KubeadmConfigTemplateSpec{
			Template: bootstrapv1beta1.KubeadmConfigTemplateResource{Spec: spec}}}, template))
	testenv.Must(t, configs{}.Default(t.Context(), config), templates{}.Default(t.Context(), template))
	want := bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.Ignition}
	want.InitConfiguration.NodeRegistration.ImagePullPolicy = "IfNotPresent"
	if diff := cmp.Diff([]bootstrapv1.KubeadmConfigSpec{want, want}, []bootstrapv1.KubeadmConfigSpec{config.Spec, template.Spec.Template.Spec}); diff != "" {
		t.Errorf("defaults, -want +got:\n%s", diff)
	}
	_, err := configs{true}.ValidateCreate(t.Context(), config)
	_, errOfTemplate := templates{true}.ValidateCreate(t.Context(), template)
	wantFields := []string{"spec.useExperimentalRetryJoin", "spec.template.spec.useExperimentalRetryJoin"}
	if diff := cmp.Diff(wantFields, append(fields(t, err), fields(t, errOfTemplate)...)); diff != "" {
		t.Errorf("invalid fields, -want +got:\n%s", diff)
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
