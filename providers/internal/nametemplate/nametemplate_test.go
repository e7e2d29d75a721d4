package nametemplate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestRender(t *testing.T) {
	data := OfMachine("demo", "machineSet", strings.Repeat("s", 40))
	for source, want := range map[string]string{
		"{{ .cluster.name }}-{{ .random }}":                           "demo-bcdfg",
		"node-{{ .random }}.{{ .cluster.name }}":                      "node-bcdfg.demo",
		"{{ .machineSet.name }}-{{ .machineSet.name }}-{{ .random }}": strings.Repeat("s", 40) + "-" + strings.Repeat("s", 17) + "bcdfg",
	} {
		if got, err := Render(source, data, "bcdfg"); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", source, got, err, want)
		}
	}
}

func TestCheckMachine(t *testing.T) {
	for name, tc := range map[string]struct{ reason, source, want string }{
		"Default":  {"nothing is set", "", ""},
		"Valid":    {"all variables", "{{ .cluster.name }}-{{ .machineSet.name }}-{{ .random }}", ""},
		"Constant": {"all Machines would have the same name", "{{ .machineSet.name }}", "must contain {{ .random }}"},
		"Unknown":  {"a variable of another kind", "{{ .kubeadmControlPlane.name }}-{{ .random }}", "kubeadmControlPlane"},
		"Invalid":  {"not a name", "{{ .random }}_x", "yields invalid names"},
		"Broken":   {"not a template", "{{ .random", "unclosed action"},
		"Endless":  {"too much output", `{{ printf "%9999d" 1 }}{{ .random }}`, "spec.machineNaming.template"},
	} {
		errs := CheckMachine(tc.source, "machineSet", field.NewPath("spec", "machineNaming", "template"))
		if text := errs.ToAggregate(); (text == nil) != (tc.want == "") || text != nil && !strings.Contains(text.Error(), tc.want) {
			t.Errorf("%s: %s: got %v, want %q", name, tc.reason, text, tc.want)
		}
	}
}
