package conversion

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Older sets older, an empty object, to obj in the older version that a client wrote it in, for what the newest version cannot represent:
// see OlderVersionAnnotation. It returns false, at no cost, if a client wrote none of the fields, which are names such as networking; no
// names mean any field.
func Older(ctx context.Context, obj, older client.Object, fields ...string) (bool, error) {
	kept, found := obj.GetAnnotations()[OlderVersionAnnotation]
	if !found || len(fields) > 0 && !slices.ContainsFunc(fields, func(name string) bool { return strings.Contains(kept, `"`+name+`"`) }) {
		return false, nil
	}
	return true, Shared().Convert(ctx, obj, older)
}

// OlderOfTemplate returns OlderVersionAnnotation of the objects of a template, from that of the template; empty if there is none.
func OlderOfTemplate(template client.Object) string {
	kept := struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       struct {
			Template struct {
				Spec map[string]any `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}{}
	raw, found := template.GetAnnotations()[OlderVersionAnnotation]
	if !found || json.Unmarshal([]byte(raw), &kept) != nil || len(kept.Spec.Template.Spec) == 0 {
		return ""
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": kept.APIVersion, "kind": strings.TrimSuffix(kept.Kind, "Template"), "spec": kept.Spec.Template.Spec,
	})
	if err != nil {
		return ""
	}
	return string(data)
}
