package kubelet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// object returns an object of YAML.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPatch(t *testing.T) {
	for _, tc := range []struct {
		reason, current, desired string
		path                     []string
		want                     string
	}{
		{
			reason:  "a flag that may change is patched, with the others as they are",
			current: "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: '100'}, {name: node-ip, value: '::'}]}}}",
			desired: "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: node-ip, value: '::'}, {name: max-pods, value: '50'}]}}}",
			want:    "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: node-ip, value: '::'}, {name: max-pods, value: '50'}]}}}",
		},
		{
			reason:  "flags are a map in v1beta1",
			current: "spec: {initConfiguration: {nodeRegistration: {kubeletExtraArgs: {max-pods: '100'}}}}",
			desired: "spec: {initConfiguration: {nodeRegistration: {kubeletExtraArgs: {max-pods: '50'}}}}",
			want:    "spec: {initConfiguration: {nodeRegistration: {kubeletExtraArgs: {max-pods: '50'}}}}",
		},
		{
			reason:  "a flag that is new is patched",
			current: "spec: {joinConfiguration: {}}",
			desired: "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: '50'}]}}}",
			want:    "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: '50'}]}}}",
		},
		{
			reason:  "flags that disappear are removed",
			current: "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: '50'}]}}}",
			desired: "spec: {joinConfiguration: {nodeRegistration: {name: n}}}",
			want:    "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: null}}}",
		},
		{
			reason:  "a flag that must not change rules the change out",
			current: "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: '100'}, {name: node-ip, value: '::'}]}}}",
			desired: "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: '50'}, {name: node-ip, value: '::1'}]}}}",
		},
		{
			reason:  "a value with characters that shells interpret rules the change out",
			current: "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: '100'}]}}}",
			desired: "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: '$(reboot)'}]}}}",
		},
		{
			reason:  "nothing but flags is patched",
			current: "spec: {files: [a], joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: '100'}]}}}",
			desired: "spec: {files: [b], joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: '100'}]}}}",
		},
		{
			reason:  "templates have the fields further down",
			current: "spec: {template: {spec: {}}}", path: []string{"spec", "template"},
			desired: "spec: {template: {spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: '50'}]}}}}}",
			want:    "spec: {template: {spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: '50'}]}}}}}",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := Patch(object(t, tc.current), object(t, tc.desired), []string{"max-pods"}, tc.path...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, tc.want), got); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPatchOfInvalidFlags(t *testing.T) {
	for wrong, want := range map[string]string{
		"text":   "desired spec.joinConfiguration.nodeRegistration.kubeletExtraArgs: must be a map or a list, not string",
		"[text]": "desired spec.joinConfiguration.nodeRegistration.kubeletExtraArgs: [0] must be an object with name and value",
	} {
		desired := object(t, "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: "+wrong+"}}}")
		if _, err := Patch(map[string]any{}, desired, []string{"max-pods"}); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %q", wrong, err, want)
		}
	}
}

func TestDesired(t *testing.T) {
	for _, tc := range []struct {
		reason, config string
		want           []Flag
		err            string
	}{
		{reason: "without a configuration, there are no flags", config: "spec: {}"},
		{
			reason: "only flags with these names are returned, sorted",
			config: "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: v, value: '2'}, {name: node-ip, value: '::'}, {name: max-pods, value: '50'}]}}}",
			want:   []Flag{{"max-pods", "50"}, {"v", "2"}},
		},
		{
			reason: "the first machine of a cluster has them elsewhere",
			config: "spec: {initConfiguration: {nodeRegistration: {kubeletExtraArgs: {max-pods: '50'}}}}",
			want:   []Flag{{"max-pods", "50"}},
		},
		{
			reason: "a value that cannot be written is an error, which does not quote it",
			config: "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {max-pods: '5 0'}}}}",
			err:    "spec.joinConfiguration.nodeRegistration.kubeletExtraArgs: the value of max-pods has characters other than letters, digits and ._:/,=%+-",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := Desired(object(t, tc.config), []string{"max-pods", "v"})
			if (err != nil) != (tc.err != "") || err != nil && err.Error() != tc.err {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" && err == nil {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}
