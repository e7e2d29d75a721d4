package kubeadm

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/gotemplate"
)

// Limits of the content of a file with the format Template: bytes rendered, and work in units of gotemplate.Budget, about 10 ms.
const (
	maxContent     = corev1.MaxSecretSize
	maxContentWork = 4 << 20
)

// ContentTemplate is the content of a file with the format Template.
type ContentTemplate struct{ parsed *gotemplate.Template }

// ParseContent parses the content of a file with the format Template.
func ParseContent(content string) (ContentTemplate, error) {
	parser := gotemplate.NewParser(gotemplate.Options{Name: "content", Strict: true, Output: maxContent, Work: maxContentWork})
	parsed, err := parser.Parse(content)
	return ContentTemplate{parsed}, err
}

// Render returns the content. version is that of the control plane; empty if it is unknown: .controlPlane is then false in conditions, and
// an error elsewhere.
func (t ContentTemplate) Render(version string) (string, error) {
	data := map[string]any{"controlPlane": nil}
	if version != "" {
		data["controlPlane"] = map[string]any{"version": version}
	}
	content, err := t.parsed.Execute(data, nil)
	return string(content), err
}

// validateTemplates reports files whose content is not a template although they have the format Template. spec may be nil.
func validateTemplates(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	if spec == nil {
		return nil
	}
	var all field.ErrorList
	for i, f := range spec.Files {
		if f.ContentFormat != bootstrapv1.FileContentFormatTemplate {
			continue
		}
		if _, err := ParseContent(f.Content); err != nil {
			at := path.Child("files").Index(i).Child("content")
			all = append(all, field.Invalid(at, fmt.Sprintf("content of %s", f.Path), err.Error()))
		}
	}
	return all
}
