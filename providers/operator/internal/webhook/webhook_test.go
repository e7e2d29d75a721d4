package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
)

func provider(t *testing.T, spec string) *operatorv1.CoreProvider {
	t.Helper()
	p := &operatorv1.CoreProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "cluster-api"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct{ reason, before, after, want string }{
		{"an empty spec", "", `{}`, ""},
		{"a version", "", `{version: v1.7.4}`, ""},
		{"a version without its prefix", "", `{version: 1.7.4}`, `spec.version: Invalid value: "1.7.4": must be a semantic version with the prefix v, such as v1.7.4`},
		{"an invalid selector", "", `{fetchConfig: {selector: {matchExpressions: [{key: a, operator: Is}]}}}`,
			`spec.fetchConfig.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Is"}]}: "Is" is not a valid label selector operator`},
		{"a container twice", "", `{deployment: {containers: [{name: a}, {name: a}]}}`, `spec.deployment.containers[1].name: Duplicate value: "a"`},
		{"a container of another Deployment twice", "", `{additionalDeployments: {d: {deployment: {containers: [{name: a}, {name: a}]}}}}`,
			`spec.additionalDeployments[d].deployment.containers[1].name: Duplicate value: "a"`},
		{"a change while debug is true", `{manager: {debug: true, verbosity: 1}}`, `{manager: {debug: true, verbosity: 2}}`,
			`spec.manager: Forbidden: other fields cannot be changed while debug is true: set it to false first`},
		{"debug is set to false with a change", `{manager: {debug: true, verbosity: 1}}`, `{manager: {debug: false, verbosity: 2}}`, ""},
		{"another part is changed while debug is true", `{manager: {debug: true}}`, `{paused: true, manager: {debug: true}}`, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var before *operatorv1.CoreProvider
			if tc.before != "" {
				before = provider(t, tc.before)
			}
			got := ""
			if err := validate(t.Context(), before, provider(t, tc.after)).ToAggregate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestDefault(t *testing.T) {
	p := provider(t, `{configSecret: {name: s}, additionalManifests: {name: m, namespace: other}}`)
	if err := (defaulter[*operatorv1.CoreProvider]{}).Default(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(provider(t, `{configSecret: {name: s, namespace: "n"}, additionalManifests: {name: m, namespace: other}}`).Spec, p.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
